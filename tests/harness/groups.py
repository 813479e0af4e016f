"""Which tests share a worker when pytest-xdist runs them on all cores.

The tests of one file share a worker, since they share fixtures. The tests of one `xdist_group` do,
in whatever files they are: all that use the Spark session are one group, so that one JVM serves
them. Groups and slow files start first, since whatever starts last keeps the other workers waiting.
"""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadGroupScheduling

SPARK = "spark"
"""The fixture that starts the JVM, and the name of its group."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before xdist puts the names of groups into the names of tests."""
    for item in items:
        if SPARK in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(SPARK))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "LoadGroupScheduling | None":
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class GroupsAndFiles(LoadGroupScheduling):  # type: ignore[misc]  # it has no types
        """A test without a group is of the group of its file."""

        def _split_scope(self, nodeid: str) -> str:
            scope: str = super()._split_scope(nodeid)
            return scope.partition("::")[0]

    return GroupsAndFiles(config, log)
