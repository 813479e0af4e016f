"""How often a drain looks at the clock, and when it is late."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from reactive_aio._core import pace as pacing
from reactive_aio._core.pace import SLICE, pace


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(pacing, "perf_counter", made)
    return made


def drain() -> Any:
    return SimpleNamespace(looked=0.0, until=SLICE, late=False)


def longest_hold_up(clock: Clock, cost: float) -> float:
    """The longest time between two turns, for elements of *cost* seconds each."""
    clock.now = 0.0
    state, batch, longest, since = drain(), 8, 0.0, 0.0
    for _ in range(200):
        clock.now += batch * cost
        batch = pace(state, batch)
        assert 1 <= batch <= 1024
        if state.late:
            longest = max(longest, clock.now - since)
            since = state.looked = clock.now
            state.until = since + SLICE
    return longest


@pytest.mark.parametrize("cost", [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 5e-3])
def test_no_element_costs_so_much_that_others_wait_long(clock: Clock, cost: float) -> None:
    """Fairness: a few slices at the most, or what a few elements cost before it has learned."""
    assert longest_hold_up(clock, cost) <= 3 * SLICE + 8 * cost


def test_cheap_elements_are_looked_at_seldom(clock: Clock) -> None:
    state, batch, looks, elements = drain(), 8, 0, 0
    while elements < 100_000:
        clock.now += batch * 2e-8
        elements += batch
        batch = pace(state, batch)
        looks += 1
    assert looks < 110


@given(st.lists(st.floats(0, 1), max_size=50))
def test_it_is_late_exactly_when_the_slice_is_over(times: list[float]) -> None:
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pacing, "perf_counter", clock)
        state, batch = drain(), 8
        for took in times:
            clock.now += took
            batch = pace(state, batch)
            assert state.late == (clock.now >= SLICE)
            assert state.looked == clock.now
            assert 1 <= batch <= 1024
