"""Which partitions are computed next."""

from math import inf

from hypothesis import given, strategies as st

from reactive_aio.spark.arrow.reading_state import (
    MEMORY_LIMIT,
    BatchSizes,
    PartitionWindows,
    Window,
)

COUNTS = st.lists(st.integers(0, 50), min_size=0, max_size=60)


def cut(partitions: int, largest: int, least: int = 1024, most: int = 4096) -> PartitionWindows:
    return PartitionWindows(partitions, largest=largest, batch_sizes=BatchSizes(least, most))


def read(windows: PartitionWindows, window: Window, elements: int, size: int = 1) -> None:
    """Read a window whose partitions have that many elements each."""
    window.elements = window.rows = elements * window.partitions
    window.bytes = size * window.partitions
    windows.finish(window)


def sizes(windows: PartitionWindows, demand: float, elements: int, size: int = 1) -> list[int]:
    found = list[int]()
    while (window := windows.launch(demand, 0)) is not None:
        found.append(window.partitions)
        read(windows, window, elements, size)
    return found


def test_windows_grow_under_unbounded_demand_and_the_last_ones_shrink() -> None:
    assert sizes(cut(64, 16), inf, 10) == [1, 1, 2, 4, 8, 16, 16, 8, 4, 4]
    assert sizes(cut(16, 16), inf, 10) == [1, 1, 2, 4, 4, 4]
    assert sizes(cut(5, 16), inf, 10) == [1, 1, 2, 1]


def test_a_window_is_no_larger_than_demand() -> None:
    windows = cut(64, 16)
    assert sizes(windows, 25, 10)[:6] == [1, 1, 2, 3, 3, 3]


def test_a_window_is_no_larger_than_the_memory_allows() -> None:
    assert sizes(cut(20, 16), inf, 10, MEMORY_LIMIT // 3) == [1, 1, 2, 3, 3, 3, 3, 3, 1]
    assert sizes(cut(3, 16), inf, 10, 2 * MEMORY_LIMIT) == [1, 1, 1]


def test_windows_grow_over_empty_partitions() -> None:
    assert sizes(cut(64, 64), 1, 0) == [1, 1, 2, 4, 8, 16, 32]


def test_without_demand_nothing_is_launched() -> None:
    assert cut(9, 4).launch(0, 2) is None


def test_the_second_window_waits_until_a_partition_was_measured() -> None:
    windows = cut(9, 4)
    first = windows.launch(100, 2)
    assert first is not None
    assert windows.launch(100, 2) is None
    read(windows, first, 30)
    assert [windows.launch(100, 2) is not None for _ in range(3)] == [True, True, True]


def test_unbounded_demand_does_not_wait_for_a_measurement() -> None:
    windows = cut(9, 4)
    assert [windows.launch(inf, 4) is not None for _ in range(4)] == [True, True, True, False]


def test_one_window_at_a_time_has_large_partitions() -> None:
    windows = cut(9, 4)
    first, second = windows.launch(inf, 2), windows.launch(inf, 2)
    assert first is not None
    assert second is not None
    read(windows, first, 10, 2 * MEMORY_LIMIT)
    assert windows.launch(inf, 2) is None
    read(windows, second, 10, 2 * MEMORY_LIMIT)
    assert windows.launch(inf, 2) is not None
    assert windows.launch(inf, 2) is None


def batches(least: int, most: int, row: int) -> list[int]:
    """Return the number of rows of the batches of three windows, for rows of that many bytes."""
    windows, found = cut(3, 1, least, most), list[int]()
    while (window := windows.launch(inf, 0)) is not None:
        found.append(window.batch)
        read(windows, window, 10, 10 * row)
    return found


def test_batches_grow_once_rows_are_known_to_be_small() -> None:
    assert batches(1024, 4096, 30) == [1024, 4096, 4096]
    assert batches(1024, 4096, 512) == [1024, 2048, 2048]
    assert batches(1024, 4096, 8_000) == [1024, 1024, 1024]


def test_batches_have_few_rows_where_rows_are_large() -> None:
    assert batches(1024, 4096, 100_000) == [1024, 83, 83]
    assert batches(4096, 4096, 1 << 20) == [4096, 8, 8]
    assert batches(1024, 4096, 1 << 30) == [1024, 1, 1]


def test_batches_have_the_requested_size() -> None:
    assert batches(7, 7, 1) == batches(7, 7, 1_000_000) == [7, 7, 7]


def test_an_empty_window_does_not_measure_rows() -> None:
    windows = cut(3, 1)
    for _ in range(3):
        window = windows.launch(inf, 0)
        assert window is not None
        assert window.batch == 1024
        read(windows, window, 0, 100)


def test_windows_in_flight_cover_demand() -> None:
    windows = cut(9, 1)
    first = windows.launch(10, 2)
    assert first is not None
    read(windows, first, 10)
    second = windows.launch(10, 2)
    assert second is not None
    assert windows.launch(10, 2) is None
    second.elements = 4  # of ten; six are still to come
    assert windows.launch(6, 2) is None
    assert windows.launch(7, 2) is not None


@given(COUNTS, st.integers(1, 20), st.integers(0, 3), st.lists(st.integers(1, 200), min_size=1))
def test_every_partition_is_launched_once_in_order_and_under_demand(
    counts: list[int], largest: int, ahead: int, requests: list[int]
) -> None:
    windows = cut(len(counts), largest)
    launched, flying, outstanding = 0, list[Window](), 0
    for request in requests * (len(counts) + 1):
        outstanding += request
        while True:
            while (window := windows.launch(outstanding, ahead)) is not None:
                assert window.start == launched
                assert 1 <= window.partitions <= largest
                launched = window.stop
                flying.append(window)
            assert len(flying) <= ahead + 1
            if not flying or not outstanding:
                break
            window = flying[0]
            there = sum(counts[window.start : window.stop]) - window.elements
            taken = min(there, outstanding)
            window.elements += taken
            outstanding -= taken
            if taken == there:
                windows.finish(flying.pop(0))
        assert windows.is_exhausted == (launched == len(counts))
    # Demand never waits for ever.
    assert windows.is_exhausted or not outstanding


def test_a_window_that_is_too_large_for_a_job_is_computed_by_smaller_ones() -> None:
    """In its place, beside the windows after it; no later window is larger."""
    windows = cut(64, 16)
    for _ in range(5):
        window = windows.launch(inf, 0)
        assert window is not None
        read(windows, window, 0)
    large, after = windows.launch(inf, 2), windows.launch(inf, 2)
    assert large is not None
    assert after is not None
    assert (large.start, large.stop, after.start) == (16, 32, 32)
    windows.split(large)
    half = windows.launch(inf, 0)
    assert half is not None
    assert (half.start, half.stop) == (16, 24)
    assert windows.launch(inf, 0) is None, "only what is read next is launched beside the others"
    windows.split(half)
    found = list[tuple[int, int]]()
    while (window := windows.launch(inf, 1)) is not None:
        found.append((window.start, window.stop))
        read(windows, window, 10)
    assert found[:4] == [(16, 20), (20, 24), (24, 28), (28, 32)]
    assert max(stop - start for start, stop in found) == 4
    assert not windows.is_exhausted or found[-1][1] == 64
