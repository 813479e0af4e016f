"""timeout and buffer_timeout: when time runs, what happens after it, and demand."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Publisher
from reactive_aio.errors import TimedOut
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed

OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    "timeout": lambda n: r.range(n).timeout(60),
    "timeout: asynchronous": lambda n: slow(range(n)).timeout(60),
    "timeout: fallback": lambda n: r.never().timeout(0.0005, fallback=r.range(n)),
    "buffer_timeout": lambda n: r.range(n).buffer_timeout(1, 60),
    "buffer_timeout: two": lambda n: slow(range(2 * n)).buffer_timeout(2, 60),
    "buffer_timeout: by weight": lambda n: r.range(n).buffer_timeout(
        9, 60, weight=lambda _: 2, max_weight=3
    ),
    "buffer_timeout: until": lambda n: slow(range(2 * n)).buffer_timeout(
        9, 60, until=lambda x: x % 2
    ),
}

FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    "timeout": lambda: r.never().timeout(0.0005),
    "timeout: source": lambda: slow([1], error=Failed()).timeout(60),
    "buffer_timeout": lambda: slow([1, 2, 3], error=Failed()).buffer_timeout(2, 60),
}

INFINITE: Mapping[str, Callable[[], Publisher[object]]] = {
    "timeout": lambda: r.generate(lambda x: (x, x + 1), 0).timeout(60),
    "buffer_timeout": lambda: r.generate(lambda x: (x, x + 1), 0).buffer_timeout(3, 60),
}

IDENTITIES: Identities = {
    "timeout": lambda up: up.timeout(3600),
    "buffer_timeout": lambda up: up.buffer_timeout(1, 3600).map(lambda chunk: chunk[0]),
}


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.virtual_time
class TestTimeout:
    async def test_fails_and_cancels_when_the_source_is_too_slow(self) -> None:
        source = PublisherProbe[str]()
        probe = SubscriberProbe[str](9).subscribed_to(r.from_publisher(source).timeout(5))
        await asyncio.sleep(4)
        source.emit("a")
        await asyncio.sleep(4)
        source.emit("b")
        await probe.end()
        assert now() == pytest.approx(13)
        assert probe.elements == ["a", "b"]
        assert isinstance(probe.error, TimedOut)
        assert "after 2 within 5 s" in str(probe.error)
        assert source.cancel_count == 1

    async def test_time_runs_only_while_there_is_demand(self) -> None:
        source = PublisherProbe[int]()
        probe = SubscriberProbe[int]().subscribed_to(r.from_publisher(source).timeout(5))
        await asyncio.sleep(100)
        probe.request(1)
        await asyncio.sleep(4)
        source.emit(1)
        await asyncio.sleep(100)
        assert probe.signals == [1]
        probe.request(1)
        await asyncio.sleep(4)
        source.emit(2)
        source.complete()
        assert probe.signals == [1, 2, "|"]

    async def test_more_demand_does_not_give_more_time(self) -> None:
        probe = SubscriberProbe[int](1).subscribed_to(r.never().timeout(5))
        for _ in range(4):
            await asyncio.sleep(1)
            probe.request(1)
        await probe.end()
        assert now() == pytest.approx(5)
        assert "no element within 5 s" in str(probe.error)

    @pytest.mark.parametrize(("first", "each", "ends"), [(10, 2, 11), (1, 5, 1)])
    async def test_the_first_element_may_have_its_own_time(
        self, first: float, each: float, ends: float
    ) -> None:
        source = slow([1, 2], every=9)
        probe = SubscriberProbe[int](9).subscribed_to(source.timeout(each, first=first))
        await probe.end()
        assert now() == pytest.approx(ends)

    async def test_the_whole_may_have_a_time_whoever_is_slow(self) -> None:
        source = r.interval(2).map(lambda x: x + 1)
        with pytest.raises(TimedOut, match="4 elements, and no end, within 9 s in total"):
            await source.timeout(3, total=9).to_list()
        with pytest.raises(TimedOut, match="no element within 1 s in total"):
            await source.timeout(total=1).to_list()
        with pytest.raises(TimedOut, match="no element within 1 s of the request"):
            await source.timeout(first=1, total=9).to_list()
        assert await source.take(4).timeout(total=9).to_list() == [1, 2, 3, 4]
        assert "timeout(1, first=2, total=9)" in repr(source.timeout(1, first=2, total=9))
        assert await source.timeout(total=5, fallback=r.timer(99, 0)).to_list() == [1, 2, 0]
        seen: list[int] = []

        async def slow(x: int) -> None:
            seen.append(x)
            await asyncio.sleep(3)

        with pytest.raises(TimedOut, match="in total"):
            await r.interval(1).timeout(total=5).for_each(slow)
        assert len(seen) < 9

    def test_some_limit_is_needed(self) -> None:
        with pytest.raises(TypeError, match="timeout: give a limit for each element"):
            r.just(1).timeout()
        with pytest.raises(ValueError, match="timeout: total must be more than 0"):
            r.just(1).timeout(1, total=0)

    async def test_the_fallback_gets_the_remaining_demand_and_no_limit(self) -> None:
        log: list[str] = []
        source = slow([1, 2], every=3, log=log)
        flow = source.timeout(2, first=4, fallback=slow([7, 8], every=50))
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        assert await probe.end() == [1, 7, 8, "|"]
        assert log == ["opened", "closed"]

    def test_the_time_must_be_positive(self) -> None:
        with pytest.raises(ValueError, match="each"):
            r.never().timeout(0)


@pytest.mark.virtual_time
class TestBufferTimeout:
    async def test_a_list_is_due_some_time_after_its_first_element(self) -> None:
        source = PublisherProbe[str]()
        flow = r.from_publisher(source).buffer_timeout(3, 5)
        seen: list[tuple[float, list[str]]] = []
        probe = SubscriberProbe[Any](9).subscribed_to(
            flow.do_on_next(lambda batch: seen.append((now(), batch)))
        )
        source.emit("a", "b", "c", "d")
        await asyncio.sleep(4)
        source.emit("e")
        await asyncio.sleep(20)
        source.emit("f")
        source.complete()
        await probe.end()
        assert seen == [(0, ["a", "b", "c"]), (5, ["d", "e"]), (24, ["f"])]

    async def test_without_demand_a_list_waits_and_grows_and_nothing_fails(self) -> None:
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).buffer_timeout(3, 5)
        probe = SubscriberProbe[list[int]](1).subscribed_to(flow)
        source.emit(1, 2, 3)
        source.emit(4)
        await asyncio.sleep(100)
        source.emit(5, 6)
        assert source.requested == 6, "a list that is full, and no more"
        assert probe.signals == [[1, 2, 3]]
        probe.request(1)
        await probe.wait_for_signals(2)
        assert probe.signals == [[1, 2, 3], [4, 5, 6]]
        probe.cancel()

    async def test_a_list_that_is_due_is_delivered_with_the_next_request(self) -> None:
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).buffer_timeout(3, 5)
        probe = SubscriberProbe[list[int]](1).subscribed_to(flow)
        source.emit(1, 2, 3, 4)
        await asyncio.sleep(100)
        probe.request(1)
        await probe.wait_for_signals(2)
        assert probe.signals == [[1, 2, 3], [4]]
        assert now() == 100
        probe.cancel()

    def test_bound_and_arguments(self) -> None:
        assert r.range(9).buffer_timeout(4, 1).bound().total == 8
        with pytest.raises(ValueError, match=r"^buffer_timeout: duration must be"):
            r.range(9).buffer_timeout(4, -1)


@pytest.mark.virtual_time
class TestBufferTimeoutByWeight:
    @pytest.mark.parametrize("feed", ["pulled", "pushed"])
    @pytest.mark.parametrize(
        ("weights", "expected"),
        [
            ([1, 1, 1, 1], [[1, 1, 1], [1]]),
            ([2, 2, 1, 3], [[2], [2, 1], [3]]),
            ([9, 1, 9], [[9], [1], [9]]),
            ([0, 0, 0, 0, 0], [[0, 0, 0, 0], [0]]),
            ([], []),
        ],
    )
    async def test_a_list_is_not_heavier_than_allowed(
        self, weights: list[int], expected: list[list[int]], feed: str
    ) -> None:
        source = r.from_iterable(weights) if feed == "pulled" else slow(weights)
        flow = source.buffer_timeout(4, 60, weight=lambda x: x, max_weight=3)
        assert await flow.to_list() == expected

    async def test_a_predicate_ends_a_list(self) -> None:
        flow = r.from_iterable("ab.c..d").buffer_timeout(9, 60, until=lambda x: x == ".")
        assert ["".join(each) for each in await flow.to_list()] == ["ab.", "c.", ".", "d"]

    async def test_time_ends_a_light_list(self) -> None:
        flow = slow([1, 1, 1, 3], every=2).buffer_timeout(9, 3, weight=lambda x: x, max_weight=3)
        assert await flow.to_list() == [[1, 1], [1], [3]]

    async def test_lists_that_wait_are_delivered_as_they_were_cut(self) -> None:
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).buffer_timeout(
            4, 5, weight=lambda x: x, max_weight=3, until=lambda x: x == 0
        )
        probe = SubscriberProbe[list[int]](1).subscribed_to(flow)
        source.emit(3, 1, 0, 2)
        assert probe.elements == [[3]]
        assert source.outstanding == 1
        probe.request(1)
        assert probe.elements == [[3], [1, 0]]
        probe.request(1)
        await asyncio.sleep(6)
        assert probe.elements == [[3], [1, 0], [2]]
        probe.cancel()

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"weight": len}, "weight and max_weight belong together"),
            ({"max_weight": 3}, "weight and max_weight belong together"),
            ({"weight": len, "max_weight": -1}, "max_weight must be 0 or more"),
            ({"weight": len, "max_weight": "3"}, "max_weight must be a number"),
            ({"until": 3}, "until must be a function"),
        ],
    )
    def test_wrong_arguments_are_refused(self, arguments: dict[str, Any], words: str) -> None:
        with pytest.raises((TypeError, ValueError), match=f"buffer_timeout: {words}"):
            r.just("a").buffer_timeout(2, 1, **arguments)

    @pytest.mark.parametrize("weight", [-1, float("nan"), "heavy", None])
    async def test_a_wrong_weight_fails_the_flow(self, weight: Any) -> None:
        flow = r.just("a").buffer_timeout(2, 1, weight=lambda _: weight, max_weight=3)
        with pytest.raises((TypeError, ValueError), match="buffer_timeout: a weight must be"):
            await flow.run()


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Work by time": {
        "fail, or change the source, when it takes too long": "timeout",
    },
    "Batches and windows": {
        "lists of n elements, or fewer after a time or by weight": "buffer_timeout",
    },
}


async def example_timeout() -> None:
    try:
        await r.timer(0.5, "answer").timeout(0.1).run()
    except TimeoutError:
        print("no answer within 0.1 s")


async def example_buffer_timeout() -> None:
    rows = r.concat([1, 2, 3, 4], r.timer(0.3, 5))
    print(await rows.buffer_timeout(3, 0.1).to_list())
