"""docs/operators.md is complete and up to date, and its examples and diagrams are true."""

from pathlib import Path
from typing import Final

import pytest

import reactive_aio as rx
from publishing.reference.docstrings import Docstring
from publishing.reference.example_runs import REAL_TIME, forgotten, names, printed, text
from publishing.reference.libraries import ELSEWHERE, FUNCTIONS, foreign_names
from publishing.reference.needs import NEEDS, THEMES, merged
from publishing.reference.page import COMMAND, PAGE, PICTURES, page, picture_path, section, sections
from publishing.reference.parameters import parameter_rows
from publishing.reference.vocabulary import ENTRIES, Entry
from reactive_aio import Flow
from reactive_aio._shared.foreign_names import (
    FOREIGN_NAMES,
    FOREIGN_SOURCES,
    NO_EQUIVALENT,
    in_snake_case,
)
from tests.harness.one_run import in_one_run

ADD_NEED: Final = """\
{name} is not in the decision list. Add a plain need that it meets to {file}:
    NEEDS = {{"a theme of publishing/reference/needs.py": {{"a plain need": "{name}"}}}}
then run python -m publishing.reference."""
OUT_OF_DATE: Final = f"run {COMMAND}"
TESTS: Final = Path(__file__).parents[1]
COMMITTED: Final = PAGE.read_text("utf-8")
SECTIONS: Final = sections(COMMITTED)
DRAWN: Final = {path.stem: path.read_text("utf-8") for path in PICTURES.glob("*.svg")}
EXAMPLE_OF: Final = {name: text(entry) for name, entry in ENTRIES.items() if not forgotten(entry)}


# -- what an operator needs ------------------------------------------------------------------------
@in_one_run
@pytest.mark.parametrize("name", ENTRIES)
def test_an_operator_has_an_example(name: str) -> None:
    missing = forgotten(ENTRIES[name])
    assert not missing, missing


@in_one_run
@pytest.mark.parametrize("name", ENTRIES)
def test_the_decision_list_names_an_operator(name: str) -> None:
    assert name in needed(), ADD_NEED.format(name=name, file=ENTRIES[name].test_file)


def test_the_decision_list_names_nothing_else() -> None:
    assert not (unknown := needed() - ENTRIES.keys()), f"NEEDS of a test file has {unknown}"


def test_each_need_has_a_theme_of_the_page() -> None:
    assert (*NEEDS,) == THEMES, (
        "add the theme to THEMES in publishing/reference/needs.py, at its place"
    )


def needed() -> set[str]:
    return {name for needs in NEEDS.values() for each in needs.values() for name in each.split()}


def test_each_example_is_in_the_test_file_of_its_module() -> None:
    files = [path.relative_to(TESTS.parent).as_posix() for path in TESTS.glob("*/test_*.py")]
    lines = [misplaced(name, file) for file in files for name in names(file)]
    assert not any(lines), "\n".join(filter(None, lines))


def misplaced(name: str, file: str) -> str:
    """What to do with the example of *name* in *file*; empty if it belongs there."""
    if name not in ENTRIES:
        return f"rename example_{name} in {file}: no operator, source or sink has that name"
    right = ENTRIES[name].test_file
    return "" if file == right else f"move example_{name} from {file} to {right}"


# -- the page --------------------------------------------------------------------------------------
@pytest.mark.virtual_time
@pytest.mark.parametrize("name", sorted(EXAMPLE_OF.keys() - REAL_TIME))
async def test_the_section_and_the_picture_are_up_to_date(name: str) -> None:
    await check_section(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(REAL_TIME))
async def test_the_section_of_an_operator_in_real_time_is_up_to_date(name: str) -> None:
    await check_section(name)


async def check_section(name: str) -> None:
    body, drawn = await section(ENTRIES[name], EXAMPLE_OF[name])
    assert SECTIONS.get(name) == body, OUT_OF_DATE
    assert DRAWN.get(name, "") == drawn, f"{picture_path(ENTRIES[name])}: {OUT_OF_DATE}"


def test_the_rest_of_the_page_is_up_to_date() -> None:
    given = dict.fromkeys(ENTRIES, "a section that is missing\n") | SECTIONS
    assert page(given) == COMMITTED, OUT_OF_DATE


def test_there_is_no_picture_of_anything_else() -> None:
    assert ENTRIES.keys() >= DRAWN.keys(), OUT_OF_DATE


# -- the index -------------------------------------------------------------------------------------
def test_a_flow_suggests_its_name_for_each_method_of_another_library() -> None:
    here: dict[str, set[str]] = {}
    for library, table in ELSEWHERE.items():
        for ours, theirs in table.items():
            if library not in FUNCTIONS and ours in vars(Flow):
                for name in filter(is_method, theirs.split()):
                    here.setdefault(in_snake_case(name), set()).add(ours)
    unknown = {name for name in here if not hasattr(Flow, name) and name not in FOREIGN_NAMES}
    assert not unknown, "add them to reactive_aio/_shared/foreign_names.py"
    assert not {
        name for name in here.keys() & FOREIGN_NAMES.keys() if FOREIGN_NAMES[name] not in here[name]
    }


def test_the_package_suggests_its_name_for_each_source_of_another_library() -> None:
    here: dict[str, set[str]] = {}
    for library, table in ELSEWHERE.items():
        for ours, theirs in table.items():
            if library not in FUNCTIONS and ours in rx.__all__:
                for name in filter(str.isidentifier, theirs.split()):
                    here.setdefault(in_snake_case(name).strip("_"), set()).add(ours)
    known = {*FOREIGN_SOURCES, *(name for name in here if hasattr(rx, name) or hasattr(Flow, name))}
    assert not here.keys() - known - FOREIGN_NAMES.keys(), "add them to FOREIGN_SOURCES"
    assert not {
        name
        for name in here.keys() & FOREIGN_SOURCES.keys()
        if FOREIGN_SOURCES[name] not in here[name]
    }
    assert not [ours for ours in FOREIGN_SOURCES.values() if not hasattr(rx, ours)]


def is_method(name: str) -> bool:
    """Whether it may follow the dot of a flow: not a keyword, a class or a path."""
    return name.isidentifier() and name[0].islower() and name not in ("as", "async", "from")


def test_the_index_has_every_name_that_a_flow_knows() -> None:
    rows = {(in_snake_case(row.there), row.here) for row in foreign_names()}
    there = {name for name, _ in rows}
    assert there >= FOREIGN_NAMES.keys()
    assert not there & NO_EQUIVALENT.keys()


def test_the_index_has_no_name_that_is_the_same_here() -> None:
    assert not [row for row in foreign_names() if in_snake_case(row.there) == row.here]


# -- faults ----------------------------------------------------------------------------------------
def test_a_forgotten_example_is_reported_with_its_file() -> None:
    def brand_new() -> None: ...

    brand_new.__module__ = "reactive_aio._sources.values"
    expected = "add an example of brand_new: .* at the end of tests/sources/test_values.py"
    with pytest.raises(LookupError, match=expected):
        text(Entry("brand_new", brand_new))


def test_a_misplaced_example_is_reported_with_its_place() -> None:
    here = ENTRIES["map"].test_file
    assert misplaced("map", "tests/sinks/test_collect.py") == (
        f"move example_map from tests/sinks/test_collect.py to {here}"
    )
    assert misplaced("pam", here).startswith(f"rename example_pam in {here}")
    assert not misplaced("map", here)


def test_operators_of_several_files_may_meet_one_need_and_no_theme_is_lost() -> None:
    one, other = {"Errors": {"try again": "retry"}}, {"Errors": {"try again": "map_async"}}
    assert merged([one, other])["Errors"] == {"try again": "retry map_async"}
    assert [*merged([{"Something new": {"try again": "retry"}}])] == [*THEMES, "Something new"]


async def test_an_example_prints_what_its_program_prints() -> None:
    assert await printed("import asyncio\nawait asyncio.sleep(0)\nprint(1)\n") == "1\n"
    with pytest.raises(ZeroDivisionError):
        await printed("1 // 0")


def test_an_example_brings_only_the_imports_that_it_needs() -> None:
    assert text(ENTRIES["do_on_next"]).splitlines()[:2] == ["import reactive_aio as rx", ""]
    assert text(ENTRIES["log"]).splitlines()[:4] == [
        "import logging",
        "import sys",
        "",
        "import reactive_aio as rx",
    ]


def test_an_example_calls_the_package_rx_and_keeps_other_names() -> None:
    program = text(ENTRIES["with_latest_from"])
    assert program.startswith("import reactive_aio as rx\n\nrate = rx.LatestProcessor(")
    assert "lambda price, r: price * r" in program


def test_an_example_uses_nothing_of_the_tests() -> None:
    imports = [
        f"{name}: {line}: readers of the page do not have it"
        for name, example in EXAMPLE_OF.items()
        for line in example.splitlines()
        if line.startswith("from tests")
    ]
    assert not imports, "\n".join(imports)


def test_the_docstrings_say_what_each_option_is() -> None:
    """By its name in stars: the first such sentence stands in the table of parameters."""
    rows = {
        name: parameter_rows(entry, Docstring.of(entry.function)) for name, entry in ENTRIES.items()
    }
    assert not [
        f"{name}: {row}" for name, each in rows.items() for row in each if row.endswith("|  |")
    ]
