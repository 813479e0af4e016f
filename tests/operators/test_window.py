"""window and window_timeout: which elements a window has, when it ends, and who reads it."""

import asyncio
import gc
import operator
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

import reactive_aio as r
from reactive_aio import Flow, Publisher
from reactive_aio._operators.window import last_boundary, next_boundary
from reactive_aio.errors import AlreadySubscribed, NotAnElement
from reactive_aio.testing import Ledger, PublisherProbe, SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed

OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    "window": lambda n: r.range(3 * n).window(3),
    "window: the last is short": lambda n: r.range(max(3 * n - 2, 0)).window(3),
    "window: asynchronous": lambda n: slow(range(2 * n)).window(2),
    "window_timeout": lambda n: r.range(3 * n).window_timeout(3, 60),
    "window_timeout: asynchronous": lambda n: slow(range(2 * n)).window_timeout(2, 60),
    "window_reduce": lambda n: r.range(n).concat_map(
        lambda x: r.just(x).window_reduce(60, operator.add, 0).map(lambda window: window.value)
    ),
}

FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    "window": lambda: slow([1], error=Failed()).window(1),
    "window_timeout": lambda: slow([1], error=Failed()).window_timeout(1, 60),
    "window_reduce": lambda: slow([1], error=Failed()).window_reduce(60, operator.add, 0),
}

INFINITE: Mapping[str, Callable[[], Publisher[object]]] = {
    "window": lambda: r.generate(lambda x: (x, x + 1), 0).window(2),
    "window_timeout": lambda: r.generate(lambda x: (x, x + 1), 0).window_timeout(2, 60),
    "window_reduce": lambda: r.interval(0.0005).window_reduce(
        0.001, operator.add, 0, emit_empty=True
    ),
}

IDENTITIES: Identities = {
    "window": lambda up: up.window(3).flat_map(lambda window: window, concurrency=1),
    "window_timeout": lambda up: up.window_timeout(3, 60).concat_map(lambda window: window),
    "window_timeout: no size": lambda up: up.window_timeout(None, 60, emit_empty=True).concat_map(
        lambda window: window
    ),
    # A window that has no end in the stream would collect all of it.
    "window_reduce": lambda up: up.concat_map(
        lambda x: r.just(x).window_reduce(60, joined, NO_ELEMENTS)
    ).concat_map(lambda window: window.value),
}


NO_ELEMENTS: tuple[Any, ...] = ()


def joined(held: tuple[Any, ...], x: object) -> tuple[Any, ...]:
    return (*held, x)


async def lists(flow: Flow[Flow[Any]]) -> list[list[Any]]:
    return await flow.concat_map(lambda window: window.buffer(99)).to_list()


BERLIN = ZoneInfo("Europe/Berlin")
"""Read here, since that blocks."""
Windows = Callable[[Flow[int]], Flow[Flow[int]]]
KINDS: dict[str, Windows] = {
    "window": lambda flow: flow.window(2),
    "window_timeout": lambda flow: flow.window_timeout(2, 60),
}
WINDOWS = pytest.mark.parametrize("windows", KINDS.values(), ids=KINDS)


@pytest.mark.virtual_time
@WINDOWS
class TestWindows:
    @pytest.mark.parametrize("count", range(6))
    async def test_each_element_is_in_one_window(self, windows: Windows, count: int) -> None:
        expected = [list(range(count))[i : i + 2] for i in range(0, count, 2)]
        assert await lists(windows(r.range(count))) == expected
        assert await lists(windows(slow(range(count)))) == expected

    async def test_a_window_is_read_while_it_grows(self, windows: Windows) -> None:
        source = PublisherProbe[int]()
        outer = SubscriberProbe[Flow[int]](1).subscribed_to(windows(r.from_publisher(source)))
        assert source.requested == 2
        source.emit(1)
        inner = SubscriberProbe[int](MANY).subscribed_to(outer.elements[0])
        assert inner.signals == [1]
        source.emit(2)
        assert inner.signals == [1, 2, "|"]
        outer.cancel()
        assert source.cancel_count == 1

    async def test_windows_can_be_read_later(self, windows: Windows) -> None:
        collected = await windows(slow(range(5))).to_list()
        assert [await each.to_list() for each in collected] == [[0, 1], [2, 3], [4]]

    async def test_async_for_inside_async_for(self, windows: Windows) -> None:
        flow = windows(slow(range(5)))
        assert [[x async for x in each] async for each in flow] == [[0, 1], [2, 3], [4]]

    async def test_a_window_serves_one_subscriber_rule_1_11(self, windows: Windows) -> None:
        [window] = await windows(r.range(2)).to_list()
        assert await window.to_list() == [0, 1]
        with pytest.raises(AlreadySubscribed, match="a window of"):
            await window.to_list()

    async def test_a_window_that_is_freed_is_left_out(self, windows: Windows) -> None:
        source = PublisherProbe[int]()
        first: list[bool] = [True]

        def second(window: Flow[int]) -> list[Flow[int]]:
            return [] if first and first.pop() else [window]

        flow = windows(r.from_publisher(source)).concat_map(second)
        outer = SubscriberProbe[Flow[int]](MANY).subscribed_to(flow)
        source.emit(1)
        gc.collect()
        await asyncio.sleep(0)
        source.emit(2, 3)
        assert await self.read(outer.elements, source) == [[3]]

    async def read(self, windows: list[Flow[int]], source: PublisherProbe[int]) -> list[list[int]]:
        source.complete()
        return [await each.to_list() for each in windows]

    async def test_a_cancelled_window_loses_its_elements_and_no_others(
        self, windows: Windows
    ) -> None:
        source = PublisherProbe[int]()
        outer = SubscriberProbe[Flow[int]](MANY).subscribed_to(windows(r.from_publisher(source)))
        source.emit(1)
        SubscriberProbe[int](1).subscribed_to(outer.elements[0]).cancel()
        source.emit(2, 3)
        assert await self.read(outer.elements[1:], source) == [[3]]

    async def test_after_the_subscriber_cancels_the_open_window_goes_on(
        self, windows: Windows
    ) -> None:
        log: list[str] = []
        flow = windows(slow(range(9), log=log)).take(2)
        assert await lists(flow) == [[0, 1], [2, 3]]
        assert log == ["opened", "closed"]

    async def test_with_the_last_window_the_source_is_cancelled(self, windows: Windows) -> None:
        source = PublisherProbe[int]()
        outer = SubscriberProbe[Flow[int]](MANY).subscribed_to(windows(r.from_publisher(source)))
        source.emit(1)
        inner = SubscriberProbe[int](MANY).subscribed_to(outer.elements[0])
        outer.cancel()
        assert source.cancel_count == 0
        inner.cancel()
        assert source.cancel_count == 1

    async def test_closing_the_last_window_waits_for_the_source(self, windows: Windows) -> None:
        log: list[str] = []
        iterator = aiter(windows(slow(range(9), log=log)).take(1))
        window = await anext(iterator)
        async with window.stream() as elements:
            assert await anext(elements) == 0
        assert log == ["opened", "closed"]

    async def test_a_failing_source_fails_the_open_window_too(self, windows: Windows) -> None:
        source = PublisherProbe[int]()
        outer = SubscriberProbe[Flow[int]](MANY).subscribed_to(windows(r.from_publisher(source)))
        source.emit(1, 2, 3)
        error = Failed()
        source.fail(error)
        assert outer.error is error
        first, second = outer.elements
        assert await first.to_list() == [1, 2]
        with pytest.raises(Failed):
            await second.to_list()

    async def test_an_error_is_delivered_once(self, windows: Windows) -> None:
        with pytest.raises(Failed):
            await windows(slow([1], error=Failed())).flat_map(lambda window: window).run()


class TestDemand:
    async def test_a_window_costs_its_size(self) -> None:
        source = PublisherProbe[int]()
        probe = SubscriberProbe[Flow[int]](2).subscribed_to(r.from_publisher(source).window(3))
        assert source.requested == 6
        source.emit(1)
        probe.request(1)
        assert source.requested == 9
        probe.cancel()


@pytest.mark.virtual_time
class TestWindowTimeout:
    async def test_it_ends_by_time(self) -> None:
        flow = slow("abcde", every=2).window_timeout(9, 3)
        assert await lists(flow) == [["a", "b"], ["c", "d"], ["e"]]

    async def test_none_is_empty(self) -> None:
        flow = r.from_iterable("ab").concat_with(r.timer(60, "c")).window_timeout(9, 3)
        assert await lists(flow) == [["a", "b"], ["c"]]

    async def test_aligned_windows_end_by_the_wall_clock(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(time, "time", lambda: 17.0 + loop.time())
        flow = slow("abcd", every=2).window_timeout(9, 10, align=True)
        # 17 + 2, 4, 6, 8: the first boundary, 20, comes after the first element.
        assert await lists(flow) == [["a"], ["b", "c", "d"]]
        monkeypatch.setattr(time, "time", lambda: 0.0)  # it is set, which the loop does not notice
        # 17 + 8 + 2, 4, 6, 8
        assert await lists(flow) == [["a", "b"], ["c", "d"]]

    async def test_aligned_windows_follow_virtual_time(self) -> None:
        days = r.interval(3600).take(240).window_timeout(1000, 86_400, align=True)
        sizes = await days.map_async(Flow.count).to_list()
        assert {*sizes[1:-1]} == {24}
        assert len(sizes) in {10, 11}, "the first and the last day may be parts of days"
        assert sum(sizes) == 240

    @pytest.mark.parametrize(
        ("zone", "at", "hours", "sizes"),
        [
            ("Europe/Berlin", "2026-03-28T00:00", 24, [24, 23, 24]),
            ("Europe/Berlin", "2026-10-24T00:00", 24, [24, 25, 24]),
            ("Europe/Berlin", "2026-03-29T00:00", 6, [5, 6, 6, 6]),
            ("Europe/Berlin", "2026-10-25T00:00", 6, [7, 6, 6, 6]),
            ("Europe/Berlin", "2026-10-25T00:00", 1, [1] * 25),
            ("Asia/Kolkata", "2026-10-25T00:00", 24, [24, 24]),
            ("America/Sao_Paulo", "2018-11-03T00:00", 24, [24, 23, 24]),
            ("Australia/Lord_Howe", "2026-04-05T00:00", 24, [24.5, 24]),
            ("Australia/Lord_Howe", "2026-10-04T00:00", 0.5, [0.5] * 47),
        ],
    )
    def test_aligned_windows_follow_the_clocks_of_a_zone(
        self, zone: str, at: str, hours: float, sizes: list[float]
    ) -> None:
        now = datetime.fromisoformat(at).replace(tzinfo=ZoneInfo(zone)).timestamp()
        found: list[float] = []
        for _ in sizes:
            boundary = next_boundary(now, hours * 3600, ZoneInfo(zone))
            found.append((boundary - now) / 3600)
            now = boundary
        assert found == sizes

    @given(
        at=st.integers(0, 2_000_000_000),
        seconds=st.sampled_from([1, 60, 900, 1800, 3600, 7200, 43_200, 86_400]),
        zone=st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo"]),
    )
    def test_a_boundary_is_shown_by_the_clocks_of_the_zone(
        self, at: int, seconds: int, zone: str
    ) -> None:
        clocks = ZoneInfo(zone)
        boundary = next_boundary(at, seconds, clocks)
        shown = datetime.fromtimestamp(boundary, clocks).replace(tzinfo=None)
        before = datetime.fromtimestamp(boundary - 1, clocks).replace(tzinfo=None)
        was_set = shown - before != timedelta(seconds=1)
        assert was_set or (shown - datetime(1970, 1, 1)) % timedelta(seconds=seconds) == timedelta()
        assert at < boundary <= at + seconds + 3600
        assert last_boundary(boundary, seconds, clocks) in (boundary, boundary - seconds)
        assert last_boundary(at, seconds, clocks) <= at

    @pytest.mark.parametrize("size", [None, 1000])
    async def test_a_window_has_its_start_and_its_end(
        self, size: int | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        began = datetime(2026, 3, 28, 23, 30, tzinfo=BERLIN).timestamp()
        monkeypatch.setattr(time, "time", lambda: began)
        days = r.interval(3600).take(60).window_timeout(size, 86_400, align=BERLIN)
        windows = await days.to_list()
        midnights = [datetime(2026, 3, day, tzinfo=BERLIN) for day in (29, 30, 31)]
        midnights.append(datetime(2026, 4, 1, tzinfo=BERLIN))
        assert [(day.start, day.end) for day in windows] == [*pairwise(midnights)]
        # From 23:30 on: 23 hours, since 2:30 is left out, then a whole day.
        assert [await day.count() for day in windows] == [23, 24, 13]
        [alone] = await r.timer(60, 1).window_timeout(9, 5).to_list()
        assert alone.end - alone.start == timedelta(seconds=5)
        assert alone.start.tzinfo is UTC

    async def test_windows_may_be_empty_and_then_follow_each_other(self) -> None:
        source = r.interval(9).take(3)
        windows = await source.window_timeout(None, 4, emit_empty=True).to_list()
        assert [await each.to_list() for each in windows] == [[], [], [0], [], [1], [], [2]]
        ends = [each.end for each in windows]
        assert [each.start for each in windows[1:]] == ends[:-1]
        aligned = source.window_timeout(1, 4, emit_empty=True, align=True)
        assert [x for each in await lists(aligned) for x in each] == [0, 1, 2]

    async def test_a_window_without_a_size_holds_no_more_than_is_read(self) -> None:
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).window_timeout(None, 3600)
        outer = SubscriberProbe[Flow[int]](MANY).subscribed_to(flow)
        source.emit(*range(source.outstanding))
        assert source.requested == 256
        inner = SubscriberProbe[int](100).subscribed_to(outer.elements[0])
        await asyncio.sleep(1)
        assert source.outstanding <= 100
        inner.request(MANY)
        await asyncio.sleep(1)
        source.emit(*range(source.outstanding))
        assert len(inner.elements) > 256
        outer.cancel()
        inner.cancel()

    async def test_one_value_is_made_of_each_window(self) -> None:
        counts = r.interval(1).take(10).window_reduce(4, lambda count, _: count + 1, 0)
        assert [each.value for each in await counts.to_list()] == [4, 4, 2]
        sums = r.interval(9).take(3).window_reduce(4, operator.add, 0, emit_empty=True)
        found = await sums.to_list()
        assert [each.value for each in found] == [0, 0, 0, 0, 1, 0, 2]
        assert all(end == start for (_, end, _), (start, _, _) in pairwise(found))

    async def test_the_memory_of_a_window_is_that_of_its_value(self) -> None:
        ledger = Ledger()
        held: list[int] = []

        def count(so_far: int, token: object) -> int:
            held.append(ledger.held)
            return so_far + 1

        counts = await r.from_iterable(ledger.tokens(3000)).window_reduce(60, count, 0).to_list()
        assert [each.value for each in counts] == [3000]
        assert max(held) <= 512

    def test_wrong_arguments_of_a_reduction_are_refused(self) -> None:
        with pytest.raises(TypeError, match="window_reduce: reducer"):
            r.just(1).window_reduce(1, cast("Any", asyncio.sleep), 0)
        with pytest.raises(NotAnElement, match="window_reduce: seed is None"):
            r.just(1).window_reduce(1, operator.add, cast("Any", None))
        with pytest.raises(TypeError, match="window_reduce: align must be"):
            r.just(1).window_reduce(1, operator.add, 0, align=cast("Any", "UTC"))

    def test_a_name_is_no_zone(self) -> None:
        with pytest.raises(TypeError, match=r"align must be True, False or a tzinfo such as zonei"):
            r.just(1).window_timeout(1, 1, align=cast("Any", "Europe/Berlin"))

    async def test_without_demand_no_more_than_one_window_waits(self) -> None:
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).window_timeout(4, 1)
        probe = SubscriberProbe[Flow[int]](1).subscribed_to(flow)
        source.emit(1)
        await asyncio.sleep(2)
        assert await probe.elements[0].to_list() == [1]
        source.emit(2, 3, 4, 5)
        assert len(probe.elements) == 1
        assert source.outstanding == 0
        probe.request(1)
        assert await probe.elements[1].to_list() == [2, 3, 4, 5]
        probe.request(1)
        assert source.outstanding == 4
        probe.cancel()

    @pytest.mark.parametrize("duration", [0, -1, float("nan"), "1"])
    def test_a_wrong_duration_is_refused(self, duration: Any) -> None:
        with pytest.raises((TypeError, ValueError), match="window_timeout: duration"):
            r.range(1).window_timeout(1, duration)

    @pytest.mark.parametrize("size", [0, -1, 1.5, True])
    def test_a_wrong_size_is_refused(self, size: Any) -> None:
        with pytest.raises((TypeError, ValueError), match="size must be"):
            r.range(1).window_timeout(size, 1)
        with pytest.raises((TypeError, ValueError), match="size must be"):
            r.range(1).window(size)


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Batches and windows": {
        "windows that can be read while they grow": "window window_timeout",
        "one value for each minute, however many elements it has": "window_reduce",
    },
}


async def example_window() -> None:
    def numbered(part: r.Flow[str]) -> r.Flow[tuple[int, str]]:
        return part.enumerate(1)

    print(await r.just("a", "b", "c").window(2).concat_map(numbered).to_list())


async def example_window_timeout() -> None:
    counts = r.interval(0.04).take(6).window_timeout(100, 0.1).map_async(r.Flow.count)
    print(await counts.to_list())


async def example_window_reduce() -> None:
    def add(count: int, visit: int) -> int:
        return count + 1

    visits = r.concat(r.interval(0.04).take(5), r.timer(0.3, 5))
    each_tenth = visits.window_reduce(0.1, add, 0, emit_empty=True)
    print(await each_tenth.map(lambda window: window.value > 0).to_list())
