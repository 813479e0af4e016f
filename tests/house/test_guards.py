"""The table of guards matches the code, and each guard has a recorded proof."""

import pytest

from tests.contract.prove_guards import GUARDS, ROOT, TABLE, Guard


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_the_guard_is_in_its_file(guard: Guard) -> None:
    assert (ROOT / guard.file).read_text().count(guard.text) == 1


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_the_file_without_it_can_be_compiled(guard: Guard) -> None:
    """Else every test would notice its removal."""
    text = (ROOT / guard.file).read_text()
    compile(text.replace(guard.text, guard.without), guard.file, "exec")


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_test_fails_without_the_guard(guard: Guard) -> None:
    row = next(row for row in TABLE.read_text().splitlines() if row.startswith(f"| {guard.name} |"))
    assert "**no test**" not in row
