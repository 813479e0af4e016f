"""Which tests share a worker when pytest-xdist runs them on all cores.

The tests of one file share a worker, since they share fixtures (``--dist loadfile``). So do all
files whose paths start alike, as `SHARED` says: one Spark session serves them. They start first,
and slow files next, because the file that starts last keeps the other workers waiting. The files
with the most tests share no fixtures, and are handed out in parts.
"""

from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadFileScheduling

SHARED: Final = {
    "tests/spark/test_lost_sessions": "other Spark sessions",
    "tests/spark/": "Spark session",
    "tests/recipes/": "servers",
    "tests/connectors/": "servers",
}
"""Groups of files that share a session fixture that is expensive to make, as a JVM is."""

MANY_TESTS: Final = (
    "tests/conformance/test_library.py",
    "tests/schedules/test_parts.py",
)
"""Files that take long, though none of their tests does, and that have no fixtures to share."""


def group_of(nodeid: str) -> str:
    """The folder, the file or the part of a file of a test: its group runs in one worker."""
    file = nodeid.partition("::")[0]
    if file in MANY_TESTS:
        # The function, and the first of its parameters: the module of an operator, or a scenario.
        return nodeid.partition("-")[0]
    return next((group for start, group in SHARED.items() if file.startswith(start)), file)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the tests of a worker; xdist starts them in this order."""
    if hasattr(config, "workerinput"):
        slow = {group_of(item.nodeid) for item in items if item.get_closest_marker("slow")}
        slow |= {group_of(item.nodeid) for item in items if item.nodeid.startswith(MANY_TESTS)}
        items.sort(key=lambda item: rank(group_of(item.nodeid), slow))


def rank(group: str, slow: set[str]) -> int:
    """Spark's groups are the longest of all, and tests of servers wait more than they compute."""
    if group in SHARED.values():
        return 0 if "Spark" in group else 1
    return 2 if group in slow else 3


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "LoadFileScheduling | None":
    # xdist's own `xdist_group` renames tests, which it cannot do with pytest 9.
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Groups(LoadFileScheduling):  # type: ignore[misc]  # it has no types
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False  # the workers have ordered the tests
    return Groups(config, log)
