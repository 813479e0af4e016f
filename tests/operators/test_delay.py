"""delay, delay_subscription and rate_limit: when elements pass, demand, and what is held."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import (
    AdaptiveLimit,
    CircuitBreaker,
    ConcurrencyLimit,
    Flow,
    Publisher,
    RateLimit,
)
from reactive_aio.limits import Limit
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Identities, Needs
from tests.operators.streams import MANY, slow
from tests.operators.ways import Failed

OF_LENGTH: Mapping[str, Callable[[int], Publisher[object]]] = {
    "delay": lambda n: r.range(n).delay(0.0005),
    "delay: by nothing": lambda n: slow(range(n)).delay(0),
    "delay: of one": lambda n: slow(range(n)).delay(0, capacity=1),
    "delay_subscription": lambda n: r.range(n).delay_subscription(0.0005),
    "rate_limit": lambda n: r.range(n).rate_limit(1000),
    "rate_limit: asynchronous": lambda n: slow(range(n)).rate_limit(1000, 0.0005),
    "rate_limit: by a limiter": lambda n: r.range(n).rate_limit(limiter=RateLimit(1000)),
    "rate_limit: by a breaker": lambda n: slow(range(n)).rate_limit(limiter=CircuitBreaker()),
}

FAILING: Mapping[str, Callable[[], Publisher[object]]] = {
    "delay": lambda: slow([1], error=Failed()).delay(0.0005),
    "delay_subscription": lambda: slow([1], error=Failed()).delay_subscription(0.0005),
    "rate_limit": lambda: slow([1], error=Failed()).rate_limit(1000),
    "rate_limit: by a limiter": lambda: slow([1], error=Failed()).rate_limit(limiter=RateLimit(9)),
}

INFINITE: Mapping[str, Callable[[], Publisher[object]]] = {
    "delay": lambda: r.generate(lambda x: (x, x + 1), 0).delay(0, capacity=4),
    "delay_subscription": lambda: r.generate(lambda x: (x, x + 1), 0).delay_subscription(0),
    "rate_limit": lambda: r.generate(lambda x: (x, x + 1), 0).rate_limit(1000, 0.0005),
    "rate_limit: by a limiter": lambda: r.generate(lambda x: (x, x + 1), 0).rate_limit(
        limiter=RateLimit(1000, per=0.0005)
    ),
}

IDENTITIES: Identities = {
    "delay": lambda up: up.delay(0),
    "delay_subscription": lambda up: up.delay_subscription(0),
    "rate_limit": lambda up: up.rate_limit(100_000),
    "rate_limit: by a limiter": lambda up: up.rate_limit(limiter=RateLimit(100_000)),
}


def now() -> float:
    return asyncio.get_running_loop().time()


def timed(flow: Flow[Any]) -> tuple[Flow[Any], list[tuple[float, Any]]]:
    """The flow, and the times of its elements once it runs."""
    seen: list[tuple[float, Any]] = []
    return flow.do_on_next(lambda x: seen.append((now(), x))), seen


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

    async def test_its_capacity_is_requested_whatever_is_demanded(self) -> None:
        source = PublisherProbe[int]()
        probe = SubscriberProbe[int](1).subscribed_to(r.from_publisher(source).delay(3, capacity=4))
        assert source.requested == 4
        source.emit(1, 2, 3, 4)
        await asyncio.sleep(4)
        assert (probe.elements, source.requested) == ([1], 5)
        probe.request(2)
        assert (probe.elements, source.requested) == ([1, 2, 3], 7)
        probe.cancel()
        assert source.cancel_count == 1

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


async def same(x: int) -> int:
    return x


@pytest.mark.virtual_time
class TestRateLimitByALimiter:
    async def test_several_flows_share_the_rate(self) -> None:
        limit = RateLimit(2, per=10)
        one, first = timed(r.range(4).rate_limit(limiter=limit))
        other, second = timed(r.range(4).map_async(same, limiter=limit))
        await asyncio.gather(one.run(), other.run())
        times = sorted(time for time, _ in first + second)
        assert times == [0, 0, 10, 10, 20, 20, 30, 30]

    async def test_nothing_is_requested_while_the_limit_is_used_up(self) -> None:
        limit = RateLimit(1, per=10)
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).rate_limit(limiter=limit)
        probe = SubscriberProbe[int](MANY).subscribed_to(flow)
        await asyncio.sleep(1)
        assert source.requested == 1
        source.emit(1)
        await asyncio.sleep(9)
        assert (probe.elements, source.requested) == ([1], 1)
        await asyncio.sleep(2)
        assert source.requested == 2
        probe.cancel()
        assert source.cancel_count == 1

    async def test_no_more_than_the_demand_is_requested(self) -> None:
        source = PublisherProbe[int]()
        flow = r.from_publisher(source).rate_limit(limiter=RateLimit(9))
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        await asyncio.sleep(1)
        source.emit(1)
        await asyncio.sleep(1)
        assert (probe.elements, source.requested) == ([1], 1)
        probe.cancel()

    async def test_a_silent_source_takes_nothing_away(self) -> None:
        limit = RateLimit(1, per=10)
        silent = SubscriberProbe[int](MANY).subscribed_to(r.never().rate_limit(limiter=limit))
        await asyncio.sleep(1)
        flow, seen = timed(r.range(3).rate_limit(limiter=limit))
        await flow.run()
        assert [time for time, _ in seen] == [1, 11, 21]
        silent.cancel()

    async def test_an_element_that_comes_too_late_waits(self) -> None:
        limit = RateLimit(1, per=10)
        source = PublisherProbe[int]()
        flow, seen = timed(r.from_publisher(source).rate_limit(limiter=limit))
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        await asyncio.sleep(1)
        await r.just(1).rate_limit(limiter=limit).run()
        await asyncio.sleep(1)
        source.emit(2)
        source.complete()
        await probe.end()
        assert seen == [(11, 2)]

    async def test_an_error_follows_the_element_that_waits(self) -> None:
        limit = RateLimit(1, per=10)
        source = PublisherProbe[int]()
        probe = SubscriberProbe[int](1).subscribed_to(
            r.from_publisher(source).rate_limit(limiter=limit)
        )
        await asyncio.sleep(1)
        await r.just(1).rate_limit(limiter=limit).run()
        source.emit(2)
        source.fail(Failed())
        signals = await probe.end()
        assert signals[0] == 2
        assert isinstance(signals[1], Failed)

    async def test_a_source_may_end_while_the_limit_is_used_up(self) -> None:
        limit = RateLimit(1, per=1000)
        await r.just(1).rate_limit(limiter=limit).run()
        assert await r.empty().rate_limit(limiter=limit).to_list() == []
        assert now() == 0

    async def test_an_element_that_is_cancelled_does_not_count(self) -> None:
        limit = RateLimit(1, per=10)
        await r.just(1).rate_limit(limiter=limit).run()
        waiting = SubscriberProbe[int](1).subscribed_to(r.just(2).rate_limit(limiter=limit))
        source = PublisherProbe[int]()
        arrived = SubscriberProbe[int](1).subscribed_to(
            r.from_publisher(source).rate_limit(limiter=limit)
        )
        await asyncio.sleep(5)
        waiting.cancel()
        await asyncio.sleep(5.5)
        assert source.requested == 1
        await r.just(3).rate_limit(limiter=limit).run()
        source.emit(4)
        await asyncio.sleep(1)
        arrived.cancel()
        flow, seen = timed(r.just(5).rate_limit(limiter=limit))
        await flow.run()
        assert [(round(time, 3), x) for time, x in seen] == [(20.5, 5)]
        assert waiting.signals == arrived.signals == []

    async def test_elements_may_cost_more_or_less(self) -> None:
        limit = RateLimit(10, per=1, cost=float)
        flow, seen = timed(r.just(6, 4, 5, 99, 1).rate_limit(limiter=limit))
        await flow.run()
        assert [time for time, _ in seen] == [0, 0, 1, 2, 3]

    async def test_a_wrong_cost_fails_the_flow(self) -> None:
        limit = RateLimit(1, cost=lambda _: -1)
        with pytest.raises(ValueError, match="RateLimit: a cost must be"):
            await r.just(1).rate_limit(limiter=limit).run()

    async def test_while_a_breaker_is_open_nothing_is_requested(self) -> None:
        async def fails(_: int) -> int:
            raise Failed

        breaker = CircuitBreaker(failures=1, reset=10)
        source = PublisherProbe[int]()
        limited = r.from_publisher(source).rate_limit(limiter=breaker)
        probe = SubscriberProbe[int](MANY).subscribed_to(
            limited.map_async(fails, limiter=breaker, on_error="skip")
        )
        await asyncio.sleep(1)
        for begin in (1, 2, 3):
            requested = source.requested
            source.emit(begin)
            await asyncio.sleep(9)
            assert breaker.is_open
            assert source.requested == requested
            await asyncio.sleep(2)
            assert source.requested == requested + 1, "one may try after the reset"
        probe.cancel()

    async def test_elements_that_pass_do_not_close_a_breaker(self) -> None:
        async def fails(_: int) -> int:
            raise Failed

        breaker = CircuitBreaker(failures=1, reset=10)
        await r.just(1).map_async(fails, limiter=breaker, on_error="skip").run()
        flow, seen = timed(r.range(3).rate_limit(limiter=breaker))
        await flow.run()
        assert [time for time, _ in seen] == [10, 10, 10]
        assert breaker.is_open

    async def test_a_limit_of_a_user_admits_work_that_ends_at_once(self) -> None:
        log: list[object] = []

        class Slowly(Limit):
            @asynccontextmanager
            async def admit(self, element: Any, /) -> AsyncGenerator[None]:
                await asyncio.sleep(1)
                yield
                log.append(element)

        flow, seen = timed(r.range(3).rate_limit(limiter=Slowly()))
        await flow.run()
        assert seen == [(1, 0), (2, 1), (3, 2)]
        assert log == [0, 1, 2]

    @pytest.mark.parametrize("limit", [ConcurrencyLimit(3), AdaptiveLimit()])
    def test_a_limit_on_what_runs_at_the_same_time_is_refused(self, limit: Limit) -> None:
        with pytest.raises(TypeError, match="no work ends; give it to map_async or for_each"):
            r.just(1).rate_limit(limiter=limit)

    def test_mistakes_are_refused(self) -> None:
        flow: Any = r.just(1)
        with pytest.raises(TypeError, match=r"give n, or limiter=RateLimit\(n\)"):
            flow.rate_limit()
        for wrong in ({"n": 1}, {"per": 2.0}):
            with pytest.raises(TypeError, match="give n and per, or a limiter"):
                flow.rate_limit(limiter=RateLimit(1), **wrong)
        with pytest.raises(TypeError, match="rate_limit: limiter must be a Limit"):
            flow.rate_limit(limiter=3)

    def test_it_holds_one_element(self) -> None:
        assert r.never().rate_limit(limiter=RateLimit(100)).bound().total == 1


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Work by time": {
        "emit everything later": "delay",
        "start later": "delay_subscription",
        "pass on so many elements each second": "rate_limit",
    },
}


async def example_delay() -> None:
    late = r.just("echo").delay(0.2)
    print(await late.merge_with(["call"]).to_list())


async def example_delay_subscription() -> None:
    poll = r.from_callable(lambda: "polled").delay_subscription(0.2)
    print(await poll.merge_with(["waiting"]).to_list())


async def example_rate_limit() -> None:
    requests = r.range(4).rate_limit(2, per=0.2).elapsed()
    print([f"{seconds:.1f}" async for seconds, _ in requests])
