"""The generated tables of the documentation are up to date and complete."""

from reactive_aio.tck import LAWS
from tests.tck.tables import (
    CONFORMANCE_PAGE,
    LAWS_PAGE,
    PROTOCOL_PAGE,
    laws_page,
    names,
    with_names,
    with_wire,
)

OUT_OF_DATE = "run python -m tests.tck.tables"


def test_the_page_of_the_laws_is_up_to_date() -> None:
    assert LAWS_PAGE.read_text("utf-8") == laws_page(), OUT_OF_DATE


def test_the_page_of_the_laws_lists_a_broken_candidate_for_every_law() -> None:
    rows = [line.split("|") for line in laws_page().splitlines() if line.startswith("| `")]
    assert {row[1].strip(" `") for row in rows if row[3].strip()} == set(LAWS)


def test_the_name_map_is_up_to_date() -> None:
    page = CONFORMANCE_PAGE.read_text("utf-8")
    assert page == with_names(page), OUT_OF_DATE


def test_the_name_map_lists_every_test_of_the_jvm_kit() -> None:
    rows = [line for line in names().splitlines() if line.startswith("| `")]
    assert len(rows) == 38 + 26 + 27 + 3


def test_the_tables_of_the_wire_are_up_to_date() -> None:
    page = PROTOCOL_PAGE.read_text("utf-8")
    assert page == with_wire(page), OUT_OF_DATE
