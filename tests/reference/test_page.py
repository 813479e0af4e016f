"""docs/operators.md is complete and up to date, and its examples and diagrams are true."""

from pathlib import Path
from typing import Final

import pytest

from reactive_aio import Flow
from reactive_aio.foreign_names import FOREIGN_NAMES, NO_EQUIVALENT, in_snake_case
from tests.reference.example_runs import REAL_TIME, forgotten, names, printed, text
from tests.reference.libraries import ELSEWHERE, FUNCTIONS, foreign_names
from tests.reference.needs import NEEDS
from tests.reference.page import COMMAND, PAGE, PICTURES, page, picture_path, section, sections
from tests.reference.vocabulary import ENTRIES, Entry

OUT_OF_DATE: Final = f"run {COMMAND}"
EXAMPLES: Final = Path(__file__).parent / "examples"
COMMITTED: Final = PAGE.read_text("utf-8")
SECTIONS: Final = sections(COMMITTED)
DRAWN: Final = {path.stem: path.read_text("utf-8") for path in PICTURES.glob("*.svg")}
EXAMPLE_OF: Final = {name: text(entry) for name, entry in ENTRIES.items() if not forgotten(entry)}


# -- what an operator needs ------------------------------------------------------------------------
@pytest.mark.parametrize("name", ENTRIES)
def test_an_operator_has_an_example(name: str) -> None:
    missing = forgotten(ENTRIES[name])
    assert not missing, missing


@pytest.mark.parametrize("name", ENTRIES)
def test_the_decision_list_names_an_operator(name: str) -> None:
    assert name in needed(), f"add {name} to a need in tests/reference/needs.py"


def test_the_decision_list_names_nothing_else() -> None:
    assert needed() <= ENTRIES.keys()


def needed() -> set[str]:
    return {name for needs in NEEDS.values() for each in needs.values() for name in each.split()}


def test_each_example_is_that_of_an_operator_of_its_module() -> None:
    found = {path.stem: names(path.stem) for path in EXAMPLES.glob("[a-z]*.py")}
    modules = [(name, module) for module, examples in found.items() for name in examples]
    assert sorted(modules) == [(name, entry.module) for name, entry in ENTRIES.items()]


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
    assert not unknown, "add them to reactive_aio/foreign_names.py"
    assert not {
        name for name in here.keys() & FOREIGN_NAMES.keys() if FOREIGN_NAMES[name] not in here[name]
    }


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
    expected = "add an example of brand_new: .* in tests/reference/examples/values.py"
    with pytest.raises(LookupError, match=expected):
        text(Entry("brand_new", brand_new))


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
