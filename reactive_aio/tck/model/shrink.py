"""Find a smaller plan that fails as well."""

from collections.abc import Callable
from time import monotonic
from typing import Final

from .judge import check_alone
from .pipeline import Plan

__all__ = ("failure_of", "shrunk")

MOST_RUNS: Final = 300
WITHIN: Final = 20.0
"""Seconds of real time after which no smaller plan is looked for: some plans do not end."""


def failure_of(plan: Plan) -> BaseException | None:
    """What is wrong with the pipeline of *plan*."""
    pipeline = plan.pipeline()
    try:
        check_alone(pipeline.program, pipeline.expected, pipeline.kind, plan.vocabulary.run)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return error
    return None


def shrunk(plan: Plan, fails: Callable[[Plan], object] = failure_of) -> Plan:
    """The smallest plan to which the failing *plan* can be brought step by step."""
    left, deadline = MOST_RUNS, monotonic() + WITHIN
    while left > 0 and monotonic() < deadline:
        for simpler in plan.simpler():
            left -= 1
            if fails(simpler):
                plan = simpler
                break
            if not left or monotonic() > deadline:
                break
        else:
            break
    return plan
