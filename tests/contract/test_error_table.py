"""The table of docs/errors.md is true, on each event loop; and it says what the page promises."""

from collections.abc import Mapping

import pytest

from tests.contract.error_table import KINDS, PAGE, outcomes, with_table
from tests.harness.loops import REAL_LOOPS, LoopFactory

OUT_OF_DATE = "run python -m tests.contract.error_table"
Cells = Mapping[tuple[str, str], list[str]]


@pytest.fixture(scope="module", params=list(REAL_LOOPS.values()), ids=list(REAL_LOOPS))
def cells(request: pytest.FixtureRequest) -> Cells:
    """The table, as each loop makes it."""
    make_loop: LoopFactory = request.param
    return outcomes(make_loop)


def test_the_table_is_up_to_date(cells: Cells) -> None:
    page = PAGE.read_text("utf-8")
    assert page == with_table(page, cells), OUT_OF_DATE


def test_every_source_is_closed(cells: Cells) -> None:
    assert not [key for key, row in cells.items() if "open" in "".join(row)]


def test_only_what_stops_the_program_leaves_the_loop(cells: Cells) -> None:
    stopping = [kind for row in cells.values() for kind, cell in zip(KINDS, row, strict=True)
                if "stops" in cell]  # fmt: skip
    assert set(stopping) == {"`KeyboardInterrupt`"}


def test_nothing_is_swallowed(cells: Cells) -> None:
    """An error of a cleanup may look like the cancellation or the closing that it answers."""
    hidden = {
        key[0] for key, row in cells.items() for cell in row if cell in ("completes", "cancelled")
    }
    assert hidden <= {"finalizer"}
