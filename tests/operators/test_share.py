"""share, replay and cache: when the source starts and stops, and what each subscriber receives."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, get_args

import pytest

import reactive_aio as r
from reactive_aio import Flow, Publisher
from reactive_aio._core.queues.bounded_queue import OverflowPolicy
from reactive_aio.errors import Overflow, WrongLoop
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed

Hot = Callable[[Flow[Any]], Flow[Any]]
KINDS: dict[str, Hot] = {
    "share": lambda flow: flow.share(),
    "replay": lambda flow: flow.replay(2),
    "cache": lambda flow: flow.cache(),
}
EACH = pytest.mark.parametrize("hot", KINDS.values(), ids=KINDS)


def numbers() -> Flow[int]:
    return r.generate(lambda x: (x, x + 1), 0)


OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    "share": lambda n: r.range(n).share(),
    "share: asynchronous": lambda n: slow(range(n)).share(capacity=2),
    "replay": lambda n: r.range(n).replay(3),
    "cache": lambda n: r.range(n).cache(),
}

FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    name: lambda hot=hot: hot(slow([1], error=Failed()))  # type: ignore[misc]
    for name, hot in KINDS.items()
}

INFINITE: Mapping[str, Callable[[], Publisher[object]]] = {
    "share": lambda: numbers().share(),
    "replay": lambda: numbers().replay(2),
}

IDENTITIES: Identities = {"share": lambda up: up.share()}
NO_IDENTITY: Mapping[str, str] = {
    "replay": "it keeps its source when its subscriber cancels",
    "cache": "it keeps its source when its subscriber cancels",
}


@EACH
class TestAll:
    async def test_one_subscription_serves_all(self, hot: Hot) -> None:
        source = PublisherProbe[int]()
        flow = hot(r.from_publisher(source))
        probes = [SubscriberProbe[int](2).subscribed_to(flow) for _ in range(3)]
        source.emit(1, 2)
        source.complete()
        for probe in probes:
            assert await probe.end() == [1, 2, "|"]
        assert source.subscriber is not None

    async def test_the_source_starts_with_the_first_request(self, hot: Hot) -> None:
        log: list[str] = []
        probe = SubscriberProbe[int]().subscribed_to(hot(slow([1], log=log)))
        assert log == []
        probe.request(2)
        assert await probe.end() == [1, "|"]
        assert log == ["opened", "closed"]

    async def test_an_error_reaches_all_and_is_not_kept(self, hot: Hot) -> None:
        log: list[str] = []
        flow = hot(slow([1], error=Failed(), log=log))
        results = await asyncio.gather(*(flow.to_list() for _ in range(3)), return_exceptions=True)
        assert [type(each) for each in results] == [Failed] * 3
        assert log == ["opened", "closed"]
        with pytest.raises(Failed):
            await flow.to_list()
        assert log == ["opened", "closed"] * 2

    async def test_a_subscriber_that_fails_does_not_disturb_the_others(self, hot: Hot) -> None:
        flow = hot(slow(range(5)))
        results = await asyncio.gather(
            flow.map(lambda x: 1 // x).to_list(), flow.to_list(), return_exceptions=True
        )
        assert isinstance(results[0], ZeroDivisionError)
        assert results[1] == [*range(5)]

    def test_another_loop_is_refused_while_the_first_runs(self, hot: Hot) -> None:
        flow = hot(slow(range(3)))

        async def main() -> None:
            assert await flow.to_list() == [*range(3)]
            with pytest.raises(WrongLoop, match=r"subscribe\(\)"):
                await asyncio.to_thread(asyncio.run, flow.to_list())

        asyncio.run(main())

    def test_it_starts_afresh_on_the_next_loop(self, hot: Hot) -> None:
        flow = hot(slow(range(3)))
        for _ in range(2):
            assert asyncio.run(flow.to_list())[-1] == 2


@pytest.mark.virtual_time
class TestShare:
    async def test_the_source_stops_with_the_last_subscriber_and_starts_afresh(self) -> None:
        log: list[str] = []
        flow = slow(range(9), every=1, log=log).share()
        both = await asyncio.gather(flow.take(2).to_list(), flow.take(3).to_list())
        assert [*both] == [[0, 1], [0, 1, 2]]
        await asyncio.sleep(1)
        assert log == ["opened", "closed"]
        assert await flow.take(1).to_list() == [0]

    async def test_with_grace_the_source_waits_for_the_next_subscriber(self) -> None:
        log: list[str] = []
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).share(grace=5, capacity=4)
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        source.emit(1, 2)
        requested = source.requested
        probe.cancel()
        await asyncio.sleep(4)
        assert (source.requested, source.cancel_count) == (requested, 0)
        again = SubscriberProbe[int](9).subscribed_to(flow)
        await asyncio.sleep(10)
        assert source.cancel_count == 0
        source.emit(3)
        assert again.elements == [3]
        again.cancel()
        await asyncio.sleep(6)
        assert source.cancel_count == 1
        assert log == []

    async def test_a_later_subscriber_receives_the_last_elements_first(self) -> None:
        flow = slow(range(6), every=1).share(replay=2)
        early = asyncio.ensure_future(flow.to_list())
        await asyncio.sleep(3.5)
        assert await flow.to_list() == [1, 2, 3, 4, 5]
        assert await early == [*range(6)]

    async def test_after_the_end_the_replay_is_empty(self) -> None:
        log: list[str] = []
        flow = slow(range(3), log=log).share(replay=2)
        assert await flow.to_list() == [0, 1, 2]
        assert await flow.to_list() == [0, 1, 2]
        assert log.count("opened") == 2

    async def test_under_wait_the_slowest_holds_the_others_back(self) -> None:
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).share(capacity=2)
        fast = SubscriberProbe[int](MANY).subscribed_to(flow)
        slow_one = SubscriberProbe[int](1).subscribed_to(flow)
        source.emit(1, 2)
        assert (fast.elements, slow_one.elements) == ([1, 2], [1])
        source.emit(3)
        assert source.outstanding == 0
        slow_one.request(9)
        assert source.outstanding == 2
        assert slow_one.elements == [1, 2, 3]
        fast.cancel()
        slow_one.cancel()

    @pytest.mark.parametrize("overflow", ["drop_newest", "drop_oldest", "latest", "fail"])
    async def test_otherwise_only_the_slow_one_misses_elements(
        self, overflow: OverflowPolicy
    ) -> None:
        flow = slow(range(10)).share(capacity=2, overflow=overflow)
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        assert await flow.to_list() == [*range(10)]
        probe.request(MANY)
        await probe.end()
        expected: dict[str, list[int]] = {
            "drop_newest": [0, 1, 2],
            "drop_oldest": [0, 8, 9],
            "latest": [0, 9],
            "fail": [0, 1, 2],
        }
        assert probe.elements == expected[overflow]
        assert isinstance(probe.error, Overflow) == (overflow == "fail")

    async def test_subscribers_that_join_and_leave_inside_a_signal(self) -> None:
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).share(replay=1)
        first = SubscriberProbe[int](MANY)
        joined = SubscriberProbe[int](MANY)

        def act(x: int) -> None:
            if x == 2:
                joined.subscribed_to(flow)
                first.cancel()

        first.subscribed_to(flow.do_on_next(act))
        source.emit(1, 2, 3)
        assert joined.elements == [2, 3]
        joined.cancel()
        assert source.cancel_count == 1

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"replay": -1}, "replay must be at least 0"),
            ({"grace": -1}, "grace must be 0 or more"),
            ({"capacity": 0}, "capacity must be at least 1"),
            (
                {"overflow": "drop"},
                f"overflow must be one of {', '.join(get_args(OverflowPolicy))}",
            ),
        ],
    )
    def test_wrong_arguments_are_refused(self, arguments: dict[str, Any], words: str) -> None:
        with pytest.raises((TypeError, ValueError), match=f"share: {words}"):
            r.range(1).share(**arguments)


@pytest.mark.virtual_time
class TestReplay:
    async def test_it_is_kept_without_a_subscriber(self) -> None:
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).replay(2, capacity=4)
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        source.emit(1, 2, 3)
        probe.cancel()
        assert source.cancel_count == 0
        outstanding = source.outstanding
        source.emit(4)
        assert source.outstanding == outstanding - 1
        again = SubscriberProbe[int](MANY).subscribed_to(flow)
        source.complete()
        assert await again.end() == [2, 3, 4, "|"]
        assert await flow.to_list() == [3, 4]

    async def test_old_elements_are_not_repeated(self) -> None:
        flow = slow(range(4), every=2).replay(9, ttl=5)
        assert await flow.to_list() == [*range(4)]
        assert await flow.to_list() == [1, 2, 3]
        await asyncio.sleep(4)
        assert await flow.to_list() == [3]
        await asyncio.sleep(4)
        assert await flow.to_list() == []

    async def test_wrong_arguments_are_refused(self) -> None:
        with pytest.raises(ValueError, match="replay: n must be at least 1"):
            r.range(1).replay(0)
        with pytest.raises(ValueError, match="replay: ttl must be more than 0"):
            r.range(1).replay(1, ttl=0)


class TestCache:
    async def test_the_fastest_reads_the_source_and_the_others_what_it_has_read(self) -> None:
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).cache()
        one = SubscriberProbe[int](1).subscribed_to(flow)
        assert source.requested == 1
        source.emit(1)
        two = SubscriberProbe[int](3).subscribed_to(flow)
        assert two.elements == [1]
        assert source.requested == 3
        source.emit(2, 3)
        assert (one.elements, two.elements) == ([1], [1, 2, 3])
        one.request(2)
        assert one.elements == [1, 2, 3]
        assert source.requested == 3
        one.cancel()
        two.cancel()
        assert source.cancel_count == 0
        last = SubscriberProbe[int](9).subscribed_to(flow)
        source.complete()
        assert await last.end() == [1, 2, 3, "|"]

    async def test_exactly_the_limit_is_kept(self) -> None:
        flow = r.range(4).cache(limit=4)
        assert await flow.to_list() == await flow.to_list() == [*range(4)]

    async def test_more_than_the_limit_fails_it(self) -> None:
        flow = r.range(5).cache(limit=4)
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        await probe.end()
        assert probe.elements == [0, 1, 2, 3]
        assert isinstance(probe.error, Overflow)
        assert "allow more with limit=..." in str(probe.error)

    async def test_an_empty_source_is_kept_as_well(self) -> None:
        log: list[str] = []
        nothing: list[int] = []
        flow = slow(nothing, log=log).cache()
        assert await flow.to_list() == await flow.to_list() == []
        assert log == ["opened", "closed"]

    async def test_requests_inside_signals_do_not_nest_rule_3_3(self) -> None:
        probe = SubscriberProbe[int](1, again=1).subscribed_to(r.range(5000).cache())
        await probe.end()
        assert probe.elements == [*range(5000)]

    def test_it_outlives_the_loop_when_the_source_has_completed(self) -> None:
        log: list[str] = []
        flow = slow(range(3), log=log).cache()
        for _ in range(2):
            assert asyncio.run(flow.to_list()) == [0, 1, 2]
        assert log == ["opened", "closed"]


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Share one subscription": {
        "among all current subscribers": "share",
        "and repeat the last elements to later subscribers": "replay",
        "and repeat all elements: read once, use often": "cache",
    },
}


async def example_share() -> None:
    prices = r.interval(0.1).take(3).do_on_next(lambda n: print("price", n)).share()
    print(await asyncio.gather(prices.to_list(), prices.to_list()))


async def example_replay() -> None:
    news = r.just("a", "b", "c").replay(2)
    await news.run()
    print(await news.to_list())


async def example_cache() -> None:
    settings = r.just("a", "b").do_on_complete(lambda: print("read once")).cache()
    print(await settings.to_list(), await settings.to_list())
