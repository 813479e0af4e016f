"""Which tests reach which lines: ``python -m tests.guards.reach FILE PYTEST-ARGUMENTS`` writes it.

A test that takes more than some seconds is left out, since it would be run for hundreds of places.
What runs before the first test, as most decorators do, is reached by `BEFORE_ALL`.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import coverage
import pytest

from tests.guards.changes import ROOT
from tests.guards.sites import ROOMS

SLOW: Final = 10.0
"""Seconds."""
BEFORE_ALL: Final = ""
"""What coverage calls what no test has reached."""


class Recorder:
    """Tells coverage which test is running, and keeps how long each took."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self._measured = measured
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._measured.switch_context(item.nodeid)
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if not report.passed:
            self.failed.add(report.nodeid)


def main(target: str, *arguments: str) -> int:
    places = [str(ROOT / "reactive_aio" / room / "*") for room in ROOMS]
    measured = coverage.Coverage(data_file=None, include=places, config_file=False)
    measured.start()
    recorder = Recorder(measured)
    code = pytest.main([*arguments], plugins=[recorder])
    measured.stop()
    quick = {test for test, took in recorder.seconds.items() if took < SLOW} - recorder.failed
    quick.add(BEFORE_ALL)
    data = measured.get_data()
    reached: dict[str, dict[int, list[str]]] = {}
    for file in data.measured_files():
        lines: dict[int, list[Any]] = data.contexts_by_lineno(file)
        reached[str(Path(file).relative_to(ROOT))] = {
            line: sorted(quick.intersection(tests), key=recorder.seconds.__getitem__)
            for line, tests in lines.items()
        }
    Path(target).write_text(json.dumps(reached))
    return int(code)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
