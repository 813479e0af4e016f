"""The table of docs/errors.md is true, on each event loop; and it says what the page promises."""

import pytest

from tests.contract.raising.kinds import KINDS
from tests.contract.raising.page import PAGE, Cells, cells, with_table
from tests.harness.loops import REAL_LOOPS

OUT_OF_DATE = "run python -m tests.contract.raising"


@pytest.fixture(scope="module", params=REAL_LOOPS)
def shown(request: pytest.FixtureRequest) -> Cells:
    """The table, as each loop makes it."""
    return cells(REAL_LOOPS[request.param])


def test_the_table_is_up_to_date(shown: Cells) -> None:
    page = PAGE.read_text("utf-8")
    assert page == with_table(page, shown), OUT_OF_DATE


def test_every_source_is_closed(shown: Cells) -> None:
    assert not [key for key, row in shown.items() if "open" in "".join(row)]


def test_only_what_stops_the_program_leaves_the_loop(shown: Cells) -> None:
    stopping = [kind for row in shown.values() for kind, cell in zip(KINDS, row, strict=True)
                if "stops" in cell]  # fmt: skip
    assert set(stopping) == {"`KeyboardInterrupt`"}


def test_nothing_is_swallowed(shown: Cells) -> None:
    """An error of a cleanup may look like the cancellation or the closing that it answers."""
    hidden = {
        key[0] for key, row in shown.items() for cell in row if cell in ("completes", "cancelled")
    }
    assert hidden <= {"finalizer"}
