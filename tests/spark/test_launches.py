"""Which partitions are computed next: pure arithmetic."""

from math import inf

from hypothesis import given, strategies as st

from reactive_aio.spark.launches import ROOM, Launches, Sizes, Window

COUNTS = st.lists(st.integers(0, 50), min_size=0, max_size=60)


def cut(partitions: int, largest: int, least: int = 1024, most: int = 4096) -> Launches:
    return Launches(partitions, largest=largest, batches=Sizes(least, most))


def read(launches: Launches, window: Window, elements: int, size: int = 1) -> None:
    """Read all of a window whose partitions have that many elements each."""
    window.elements = elements * window.partitions
    window.size = size * window.partitions
    launches.finish(window)


def sizes(launches: Launches, demand: float, elements: int, size: int = 1) -> list[int]:
    found = list[int]()
    while (window := launches.launch(demand, 0)) is not None:
        found.append(window.partitions)
        read(launches, window, elements, size)
    return found


def test_windows_grow_under_unbounded_demand_and_the_last_ones_shrink() -> None:
    assert sizes(cut(64, 16), inf, 10) == [1, 1, 2, 4, 8, 16, 16, 8, 4, 4]
    assert sizes(cut(16, 16), inf, 10) == [1, 1, 2, 4, 4, 4]
    assert sizes(cut(5, 16), inf, 10) == [1, 1, 2, 1]


def test_a_window_is_no_larger_than_demand() -> None:
    launches = cut(64, 16)
    assert sizes(launches, 25, 10)[:6] == [1, 1, 2, 3, 3, 3]


def test_a_window_is_no_larger_than_the_memory_allows() -> None:
    assert sizes(cut(20, 16), inf, 10, ROOM // 3) == [1, 1, 2, 3, 3, 3, 3, 3, 1]
    assert sizes(cut(3, 16), inf, 10, 2 * ROOM) == [1, 1, 1]


def test_partitions_without_elements_are_passed_quickly() -> None:
    assert sizes(cut(64, 64), 1, 0) == [1, 1, 2, 4, 8, 16, 32]


def test_without_demand_nothing_is_launched() -> None:
    assert cut(9, 4).launch(0, 2) is None


def test_the_second_waits_until_the_first_has_shown_what_a_partition_holds() -> None:
    launches = cut(9, 4)
    first = launches.launch(100, 2)
    assert first is not None
    assert launches.launch(100, 2) is None
    read(launches, first, 30)
    assert [launches.launch(100, 2) is not None for _ in range(3)] == [True, True, True]


def test_unbounded_demand_covers_whatever_comes() -> None:
    launches = cut(9, 4)
    assert [launches.launch(inf, 4) is not None for _ in range(4)] == [True, True, True, False]


def test_of_large_partitions_one_is_under_way() -> None:
    launches = cut(9, 4)
    first, second = launches.launch(inf, 2), launches.launch(inf, 2)
    assert first is not None
    assert second is not None
    read(launches, first, 10, 2 * ROOM)
    assert launches.launch(inf, 2) is None
    read(launches, second, 10, 2 * ROOM)
    assert launches.launch(inf, 2) is not None
    assert launches.launch(inf, 2) is None


def batches(least: int, most: int, row: int) -> list[int]:
    """How many rows the batches of three windows have, when a row has that many bytes."""
    launches, found = cut(3, 1, least, most), list[int]()
    while (window := launches.launch(inf, 0)) is not None:
        found.append(window.batch)
        read(launches, window, 10, 10 * row)
    return found


def test_batches_grow_when_it_is_known_that_rows_are_small() -> None:
    assert batches(1024, 4096, 30) == [1024, 4096, 4096]
    assert batches(1024, 4096, 512) == [1024, 2048, 2048]
    assert batches(1024, 4096, 100_000) == [1024, 1024, 1024]


def test_batches_are_as_large_as_was_asked_for() -> None:
    assert batches(7, 7, 1) == batches(7, 7, 10_000_000) == [7, 7, 7]


def test_a_window_without_rows_says_nothing_of_their_size() -> None:
    launches = cut(3, 1)
    for _ in range(3):
        window = launches.launch(inf, 0)
        assert window is not None
        assert window.batch == 1024
        read(launches, window, 0, 100)


def test_what_is_under_way_covers_demand() -> None:
    launches = cut(9, 1)
    first = launches.launch(10, 2)
    assert first is not None
    read(launches, first, 10)
    second = launches.launch(10, 2)
    assert second is not None
    assert launches.launch(10, 2) is None
    second.elements = 4  # of ten; six are still to come
    assert launches.launch(6, 2) is None
    assert launches.launch(7, 2) is not None


@given(COUNTS, st.integers(1, 20), st.integers(0, 3), st.lists(st.integers(1, 200), min_size=1))
def test_every_partition_is_launched_once_in_order_and_only_when_called_for(
    counts: list[int], largest: int, ahead: int, requests: list[int]
) -> None:
    launches = cut(len(counts), largest)
    launched, flying, outstanding = 0, list[Window](), 0
    for request in requests * (len(counts) + 1):
        outstanding += request
        while True:
            while (window := launches.launch(outstanding, ahead)) is not None:
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
                launches.finish(flying.pop(0))
        assert launches.exhausted == (launched == len(counts))
    # As long as there is demand, it gets on.
    assert launches.exhausted or not outstanding
