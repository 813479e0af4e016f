"""Find a smaller plan that fails as well."""

from collections.abc import Callable
from typing import Final

from .judge import check_alone
from .pipeline import Plan

__all__ = ("failure_of", "shrunk")

MOST_RUNS: Final = 300


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
    left = MOST_RUNS
    while left > 0:
        for simpler in plan.simpler():
            left -= 1
            if fails(simpler):
                plan = simpler
                break
            if not left:
                break
        else:
            break
    return plan
