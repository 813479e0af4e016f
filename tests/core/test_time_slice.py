"""How often a drain looks at the clock, and when it is late."""

from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st

from reactive_aio._core.time_slice import TIME_SLICE, TimeSlice, set_clock


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock()
    before = set_clock(clock)
    yield clock
    set_clock(before)


def started_slice() -> TimeSlice:
    time_slice = TimeSlice()
    time_slice.start_slice()
    return time_slice


def longest_hold_up(clock: Clock, cost: float) -> float:
    """The longest time between two turns, for elements of *cost* seconds each."""
    clock.now = 0.0
    state, batch, longest, since = started_slice(), 8, 0.0, 0.0
    for _ in range(200):
        clock.now += batch * cost
        batch = state.next_batch_size(batch)
        assert 1 <= batch <= 1024
        if state.is_slice_over:
            longest = max(longest, clock.now - since)
            since = clock.now
            state.start_slice()
    return longest


@pytest.mark.parametrize("cost", [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 5e-3])
def test_expensive_elements_do_not_block_the_loop_for_long(clock: Clock, cost: float) -> None:
    """Fairness: a few slices at the most, or what a few elements cost before it has learned."""
    assert longest_hold_up(clock, cost) <= 3 * TIME_SLICE + 8 * cost


def test_cheap_elements_need_few_clock_readings(clock: Clock) -> None:
    state, batch, looks, elements = started_slice(), 8, 0, 0
    while elements < 100_000:
        clock.now += batch * 2e-8
        elements += batch
        batch = state.next_batch_size(batch)
        looks += 1
    assert looks < 110


def test_a_batch_that_took_longer_than_a_slice_is_a_quarter_next_time(clock: Clock) -> None:
    state = started_slice()
    for took, batch in ((TIME_SLICE * 0.9, 8), (TIME_SLICE * 1.1, 2)):
        clock.now += took
        assert state.next_batch_size(8) == batch


@given(st.lists(st.floats(0, 1), max_size=50))
def test_the_slice_is_over_exactly_after_its_time(times: list[float]) -> None:
    clock = Clock()
    before = set_clock(clock)
    try:
        state, batch = started_slice(), 8
        for took in times:
            clock.now += took
            batch = state.next_batch_size(batch)
            assert state.is_slice_over == (clock.now >= TIME_SLICE)
            assert state.slice_checked_at == clock.now
            assert 1 <= batch <= 1024
    finally:
        set_clock(before)
