"""What a server withstands: the attacks of `benchmarks.siege`, and a healthy client beside them."""

import pytest

from benchmarks.siege.__main__ import BEGIN, END, ON_UVLOOP, PAGE, measure
from benchmarks.siege.attacks import ATTACKS

MOST_MEMORY = 600
"""MiB: twice the budget of the process, and what small things take."""


@pytest.mark.thorough
@pytest.mark.parametrize("name", ATTACKS)
def test_a_healthy_client_is_served_beside(name: str) -> None:
    found = measure(name, seconds=8, loop="uvloop" if name in ON_UVLOOP else "asyncio")
    assert not found.failed
    assert found.p99 < 0.1
    assert found.connect < 1
    assert found.memory < MOST_MEMORY


def test_the_page_has_a_row_of_each_attack() -> None:
    _, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    table, _, _ = rest.partition(END)
    for what, _, _ in ATTACKS.values():
        assert f"| {what} |" in table, "python -m benchmarks.siege writes the table"
