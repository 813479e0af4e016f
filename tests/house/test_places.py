"""An operator is found by one name: of its module, its heading in flow.py and its test file.

Each failure says which name to change. Adding an operator touches its module, its line in flow.py
under the heading of that module, and the test file of that module.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "reactive_aio"
TESTED: Final = {"_operators": "operators", "_sinks": "sinks", "_sources": "sources"}
"""Rooms of the package in which each module has a test file, and the folder of the test files."""
SEVERAL_MODULES: Final = {"conservation": "all operators that hold elements"}
"""Test files that test no single module, and what they test."""
HEADING: Final = re.compile(r"    # (\w+)")
METHOD: Final = re.compile(r"    (\w+): Final = _(\w+)\.(\w+)")


def modules(room: str) -> set[str]:
    return {path.stem for path in (PACKAGE / room).glob("[a-z]*.py")}


def files_in(folder: str) -> set[str]:
    return {path.stem.removeprefix("test_") for path in (ROOT / "tests" / folder).glob("test_*.py")}


def misplaced_methods(flow: str, operators: set[str], sinks: set[str]) -> Iterator[str]:
    """The headings and methods in the source of flow.py that do not match a module."""
    heading = ""
    headings: list[str] = []
    for number, line in enumerate(flow.splitlines(), 1):
        if found := HEADING.fullmatch(line):
            heading = found[1]
            if heading in headings:
                yield f"flow.py:{number}: move this to the first heading '# {heading}'"
            headings.append(heading)
        elif found := METHOD.match(line):
            method, module, function = found.groups()
            if module != heading:
                yield f"flow.py:{number}: move {method} under the heading '# {module}'"
            if method != function:
                yield f"flow.py:{number}: give {method} and _{module}.{function} one name"
    for heading in dict.fromkeys(headings):
        if heading not in operators | sinks:
            better = suggestion(heading, operators | sinks)
            yield f"flow.py: rename the heading '# {heading}'{better}"
    for module in sorted(operators - set(headings)):
        yield f"flow.py: add a heading '# {module}' with the methods of _operators/{module}.py"


def misnamed_test_files(room: str, folder: str, names: set[str], files: set[str]) -> Iterator[str]:
    """The modules of a room without a test file, and the test files without a module."""
    for name in sorted(names - files):
        others = files - names
        yield f"tests/{folder}/test_{name}.py is missing for {room}/{name}.py" + (
            f": rename one of {sorted(others)}?" if others else ""
        )
    for file in sorted(files - names):
        yield f"tests/{folder}/test_{file}.py: rename it{suggestion(file, names)}"


def suggestion(name: str, names: set[str]) -> str:
    close = get_close_matches(name, names, 1, 0.4)
    return f" to '{close[0]}'" if close else f" to one of {sorted(names)}"


def test_each_method_of_a_flow_is_under_the_heading_of_its_module() -> None:
    flow = (PACKAGE / "flow.py").read_text("utf-8")
    found = misplaced_methods(flow, modules("_operators"), modules("_sinks"))
    assert not (lines := [*found]), "\n".join(lines)


def test_each_module_has_the_test_file_of_its_name() -> None:
    lines = [
        line
        for room, folder in TESTED.items()
        for line in misnamed_test_files(
            room, folder, modules(room), files_in(folder) - SEVERAL_MODULES.keys()
        )
    ]
    assert not lines, "\n".join(lines)


def test_each_difference_is_reported_with_what_to_change() -> None:
    flow = """class Flow:
    # transform
    map: Final = _transform.map
    take: Final = _select.take
    first: Final = _sinks.first_of
    # trasform
    # transform
"""
    assert [*misplaced_methods(flow, {"transform", "select"}, {"sinks"})] == [
        "flow.py:4: move take under the heading '# select'",
        "flow.py:5: move first under the heading '# sinks'",
        "flow.py:5: give first and _sinks.first_of one name",
        "flow.py:7: move this to the first heading '# transform'",
        "flow.py: rename the heading '# trasform' to 'transform'",
        "flow.py: add a heading '# select' with the methods of _operators/select.py",
    ]
    assert [*misnamed_test_files("_operators", "operators", {"time"}, {"timed"})] == [
        "tests/operators/test_time.py is missing for _operators/time.py: rename one of ['timed']?",
        "tests/operators/test_timed.py: rename it to 'time'",
    ]
