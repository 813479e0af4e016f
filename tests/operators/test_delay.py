"""delay, delay_subscription and rate_limit: when elements pass, demand, and what is held."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow, Publisher
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Identities
from tests.operators.streams import MANY, slow
from tests.operators.ways import WAYS, Failed, Sample, in_every_way

OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    "delay": lambda n: r.range(n).delay(0.0005),
    "delay: by nothing": lambda n: slow(range(n)).delay(0),
    "delay: of one": lambda n: slow(range(n)).delay(0, capacity=1),
    "delay_subscription": lambda n: r.range(n).delay_subscription(0.0005),
    "rate_limit": lambda n: r.range(n).rate_limit(1000),
    "rate_limit: asynchronous": lambda n: slow(range(n)).rate_limit(1000, 0.0005),
}

FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    "delay": lambda: slow([1], error=Failed()).delay(0.0005),
    "delay_subscription": lambda: slow([1], error=Failed()).delay_subscription(0.0005),
    "rate_limit": lambda: slow([1], error=Failed()).rate_limit(1000),
}

INFINITE: Mapping[str, Callable[[], Publisher[object]]] = {
    "delay": lambda: r.generate(lambda x: (x, x + 1), 0).delay(0, capacity=4),
    "delay_subscription": lambda: r.generate(lambda x: (x, x + 1), 0).delay_subscription(0),
    "rate_limit": lambda: r.generate(lambda x: (x, x + 1), 0).rate_limit(1000, 0.0005),
}

IDENTITIES: Identities = {
    "delay": lambda up: up.delay(0),
    "delay_subscription": lambda up: up.delay_subscription(0),
    "rate_limit": lambda up: up.rate_limit(100_000),
}


def now() -> float:
    return asyncio.get_running_loop().time()


def timed(flow: Flow[Any]) -> tuple[Flow[Any], list[tuple[float, Any]]]:
    """The flow, and the times of its elements once it runs."""
    seen: list[tuple[float, Any]] = []
    return flow.do_on_next(lambda x: seen.append((now(), x))), seen


@pytest.mark.parametrize("way", WAYS)
class TestInEveryWay:
    async def test_no_element_is_lost_and_the_order_is_kept(self, way: str) -> None:
        changes: list[Callable[[Flow[int]], Flow[int]]] = [
            lambda flow: flow.delay(0.0005),
            lambda flow: flow.delay_subscription(0.0005),
            lambda flow: flow.rate_limit(2, 0.0005),
        ]
        for change in changes:
            await in_every_way(Sample(change, [1, 2, 3], [1, 2, 3, "|"]), way)
            await in_every_way(Sample(change, [], ["|"]), way)


@pytest.mark.virtual_time
class TestDelay:
    async def test_elements_and_the_end_come_later_and_keep_their_distances(self) -> None:
        flow, seen = timed(slow("abc", every=2).delay(5))
        assert await flow.to_list() == ["a", "b", "c"]
        assert seen == [(7, "a"), (9, "b"), (11, "c")]
        assert now() == pytest.approx(11)

    async def test_an_error_is_not_delayed(self) -> None:
        source = PublisherProbe[int]()
        probe = SubscriberProbe[int](9).subscribed_to(r.from_publisher(source).delay(5))
        source.emit(1)
        await asyncio.sleep(1)
        source.fail(Failed())
        await probe.end()
        assert probe.elements == []
        assert now() == 1

    async def test_a_source_waits_when_so_many_are_delayed(self) -> None:
        flow, seen = timed(r.range(5).delay(3, capacity=2))
        assert await flow.to_list() == [0, 1, 2, 3, 4]
        assert seen == [(3, 0), (3, 1), (6, 2), (6, 3), (9, 4)]

    async def test_only_what_is_demanded_is_requested(self) -> None:
        source = PublisherProbe[int]()
        probe = SubscriberProbe[int](2).subscribed_to(r.from_publisher(source).delay(3))
        assert source.requested == 2
        source.emit(1)
        await asyncio.sleep(4)
        assert (probe.elements, source.requested) == ([1], 2)
        probe.request(3)
        assert source.requested == 5
        probe.cancel()
        assert source.cancel_count == 1

    async def test_cancelling_discards_what_is_delayed(self) -> None:
        probe = SubscriberProbe[int](9).subscribed_to(r.range(3).delay(3))
        await asyncio.sleep(1)
        probe.cancel()
        await asyncio.sleep(9)
        assert probe.signals == []

    @pytest.mark.parametrize("by", [-1, float("nan"), float("inf")])
    def test_durations_are_checked(self, by: float) -> None:
        with pytest.raises(ValueError, match="delay: by must be"):
            r.just(1).delay(by)
        with pytest.raises(ValueError, match="delay_subscription: by"):
            r.just(1).delay_subscription(by)


@pytest.mark.virtual_time
class TestDelaySubscription:
    async def test_the_source_starts_some_time_after_the_first_request(self) -> None:
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).delay_subscription(5)
        probe = SubscriberProbe[int]().subscribed_to(flow)
        await asyncio.sleep(100)
        probe.request(1)
        await asyncio.sleep(4)
        probe.request(2)
        assert not source.subscribers
        await asyncio.sleep(2)
        assert source.requested == 3
        probe.cancel()

    async def test_cancelling_before_leaves_the_source_alone(self) -> None:
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).delay_subscription(5)
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        await asyncio.sleep(1)
        probe.cancel()
        await asyncio.sleep(9)
        assert not source.subscribers


@pytest.mark.virtual_time
class TestRateLimit:
    async def test_at_most_so_many_pass_within_any_such_time(self) -> None:
        flow, seen = timed(r.range(7).rate_limit(3, per=10))
        await flow.run()
        assert [time for time, _ in seen] == [0, 0, 0, 10, 10, 10, 20]

    async def test_an_unused_rate_is_not_saved(self) -> None:
        source = PublisherProbe[int]()
        flow, seen = timed(r.from_publisher(source).rate_limit(2, per=10))
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        await asyncio.sleep(100)
        source.emit(1)
        await asyncio.sleep(4)
        source.emit(2)
        assert source.outstanding == 0
        await asyncio.sleep(6.5)
        assert source.outstanding == 1, "the first one was ten seconds ago"
        source.emit(3)
        await asyncio.sleep(4)
        source.emit(4)
        assert [round(time) for time, _ in seen] == [100, 104, 110, 114]
        probe.cancel()

    async def test_more_than_the_rate_is_not_requested(self) -> None:
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).rate_limit(3, per=10)
        probe = SubscriberProbe[int](2).subscribed_to(flow)
        assert source.requested == 2
        probe.request(9)
        assert source.requested == 3
        probe.cancel()

    def test_mistakes_are_refused(self) -> None:
        with pytest.raises(ValueError, match="rate_limit: n must be at least 1"):
            r.just(1).rate_limit(0)
        with pytest.raises(ValueError, match="rate_limit: per"):
            r.just(1).rate_limit(1, per=0)
