"""The table of guards is true of the code: each stands where it says, and its proof is written."""

import pytest

from tests.contract.prove_guards import GUARDS, ROOT, TABLE, Guard


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_the_guard_stands_where_it_is_said_to(guard: Guard) -> None:
    assert (ROOT / guard.file).read_text().count(guard.text) == 1


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_somebody_noticed_when_it_was_gone(guard: Guard) -> None:
    row = next(row for row in TABLE.read_text().splitlines() if row.startswith(f"| {guard.name} |"))
    assert "**nobody**" not in row
