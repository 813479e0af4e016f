"""How much a run tries: ``--quick``, neither, or ``--thorough``.

========================  ===============  =====================  ==========
option                    ``--quick``      none                   ``--thorough``
========================  ===============  =====================  ==========
tests marked `thorough`   no               no                     yes
tests marked `slow`       no               yes                    yes
tests marked `spark`      no               yes                    yes
loops                     asyncio          both, where a loop     both
                                           can matter
`scaled` budgets          a fortieth       a fortieth             all
========================  ===============  =====================  ==========

`SCHEDULES` in the environment multiplies the number of orders: ``SCHEDULES=20``.
"""

import os
from enum import Enum

import pytest
from hypothesis import HealthCheck, settings

__all__ = ("Effort", "effort", "scaled")


class Effort(Enum):
    """The share of its budget that an exploration gets, and the examples of Hypothesis."""

    QUICK = (1 / 40, 20)
    NORMAL = (1 / 40, 40)
    THOROUGH = (1.0, 1000)


_efforts = [Effort.NORMAL]


def effort() -> Effort:
    """The effort of this run."""
    return _efforts[-1]


def scaled(budget: int) -> int:
    """The part of *budget* that this run spends."""
    share, _ = effort().value
    return max(1, round(budget * share * float(os.environ.get("SCHEDULES", "1"))))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("effort")
    either = "one loop, small budgets, no test marked slow or spark"
    group.addoption("--quick", action="store_true", help=either)
    every = "every loop, full budgets, and the tests marked thorough"
    group.addoption("--thorough", action="store_true", help=every)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick") and config.getoption("--thorough"):
        raise pytest.UsageError("--quick and --thorough exclude each other: give one of them")
    if config.getoption("--quick"):
        _efforts.append(Effort.QUICK)
    if config.getoption("--thorough"):
        _efforts.append(Effort.THOROUGH)
    configure_hypothesis()


def pytest_unconfigure() -> None:
    del _efforts[1:]


def configure_hypothesis() -> None:
    """The same examples on each run in CI; new ones on each run elsewhere."""
    # No deadline: a first example pays for imports and caches, and machines get busy.
    settings.register_profile(
        "reactive_aio",
        deadline=None,
        print_blob=True,
        # A test of a class has an instance for each loop that it runs on.
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
        derandomize="CI" in os.environ,
        max_examples=effort().value[1],
    )
    settings.load_profile("reactive_aio")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that this run leaves out."""
    left_out: set[str] = set()
    if effort() is not Effort.THOROUGH:
        left_out.add("thorough")
    if effort() is Effort.QUICK:
        left_out |= {"slow", "spark"}
    deselected = [item for item in items if left_out & {mark.name for mark in item.iter_markers()}]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        without = set(deselected)
        items[:] = [item for item in items if item not in without]
