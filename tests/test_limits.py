"""Limits that several flows share: what begins when, and how demand follows."""

import asyncio
import copy
from collections.abc import Callable
from typing import Any, cast

import pytest

import reactive_aio as r
from reactive_aio import (
    AdaptiveLimit,
    CircuitBreaker,
    ConcurrencyLimit,
    Flow,
    RateLimit,
    RetryPolicy,
)
from reactive_aio.errors import WrongLoop
from reactive_aio.limits import Limit
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.operators.ways import Failed

pytestmark = pytest.mark.virtual_time


def now() -> float:
    return asyncio.get_running_loop().time()


async def same(x: int) -> int:
    await asyncio.sleep(1)
    return x


def timed(log: list[float], seconds: float = 0.0) -> Callable[[int], Any]:
    """Work that notes when it begins, from the first on."""
    origin: list[float] = []

    async def work(x: int) -> int:
        origin.append(now())
        log.append(round(now() - origin[0], 6))
        await asyncio.sleep(seconds)
        return x

    return work


class TestRateLimit:
    async def test_no_more_begin_in_any_period(self) -> None:
        log: list[float] = []
        limit = RateLimit(2, per=10)
        flow = r.range(6).map_async(timed(log), concurrency=6, limiter=limit)
        assert await flow.to_list() == [*range(6)]
        assert log == [0, 0, 10, 10, 20, 20]

    async def test_smooth_work_is_spread(self) -> None:
        log: list[float] = []
        limit = RateLimit(4, per=2, smooth=True)
        assert repr(limit) == "RateLimit(4, per=2, smooth=True)"
        await r.range(6).for_each(timed(log), concurrency=6, limiter=limit)
        assert log == [0, 0.5, 1, 1.5, 2, 2.5]
        await asyncio.sleep(100)  # which allows no more at once
        await r.range(2).rate_limit(limiter=limit).for_each(timed(log), concurrency=6)
        assert log[6:] == [0, 0.5]

    async def test_smooth_work_costs_time(self) -> None:
        log: list[float] = []
        limit = RateLimit(10, per=1, cost=float, smooth=True)
        await r.just(1, 5, 2, 20, 1).for_each(timed(log), concurrency=6, limiter=limit)
        assert log == [0, 0.1, 0.6, 1.6, 2.6]

    async def test_smooth_work_that_comes_late_moves_what_follows(self) -> None:
        log: list[float] = []
        limit = RateLimit(10, per=10, smooth=True)

        async def busy(element: int) -> None:
            log.append(now() - began)
            if element == 1:
                await asyncio.sleep(1.3)  # the only worker begins the next one late

        began = now()
        await r.range(5).for_each(busy, key=lambda _: 0, limiter=limit)
        assert log == pytest.approx([0, 1, 2.3, 3.3, 4.3])

    async def test_two_flows_share_it(self) -> None:
        limit = RateLimit(1, per=1)
        began = now()
        flow = r.range(3).map_async(timed([]), limiter=limit)
        await asyncio.gather(flow.run(), flow.run())
        assert now() - began == pytest.approx(5)

    async def test_elements_may_cost_more_or_less(self) -> None:
        log: list[float] = []
        limit = RateLimit(10, per=1, cost=float)
        await r.just(6, 4, 5, 99, 1).map_async(timed(log), concurrency=9, limiter=limit).run()
        assert log == [0, 0, 1, 2, 3]

    @pytest.mark.parametrize("cost", [-1, "much", None])
    async def test_a_wrong_cost_fails_the_flow(self, cost: Any) -> None:
        limit = RateLimit(1, cost=lambda _: cost)
        with pytest.raises(ValueError, match="RateLimit: a cost must be"):
            await r.just(1).map_async(timed([]), limiter=limit).run()

    async def test_each_attempt_counts(self) -> None:
        log: list[float] = []
        work = timed(log)

        async def failing(x: int) -> int:
            await work(x)
            raise Failed

        flow = r.just(1).map_async(failing, limiter=RateLimit(1, per=5), retry=3, on_error="skip")
        await flow.run()
        assert log == [0, 5, 10]


class TestConcurrencyLimit:
    async def test_flows_share_the_places(self) -> None:
        running, most = 0, 0

        async def work(x: int) -> int:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(1)
            running -= 1
            return x

        limit = ConcurrencyLimit(3)
        flow: Flow[int] = r.range(6).map_async(work, concurrency=6, limiter=limit)
        await asyncio.gather(flow.run(), flow.run())
        assert most == 3

    async def test_demand_follows(self) -> None:
        source = PublisherProbe[int]()
        limit = ConcurrencyLimit(1)
        flow = r.from_publisher(source).map_async(timed([], 10), concurrency=2, limiter=limit)
        probe = SubscriberProbe[int](100).subscribed_to(flow)
        assert source.requested == 2
        source.emit(1, 2)
        await asyncio.sleep(5)
        assert source.requested == 2
        probe.cancel()


class TestAdaptiveLimit:
    async def test_it_rises_while_all_is_well(self) -> None:
        limit = AdaptiveLimit(initial=2, maximum=9)
        await r.range(200).map_async(timed([], 1), concurrency=20, limiter=limit).run()
        assert limit.limit == 9

    async def test_it_falls_by_failures(self) -> None:
        async def fails(_: int) -> int:
            await asyncio.sleep(1)
            raise Failed

        limit = AdaptiveLimit(initial=8, minimum=2)
        flow = r.range(100).map_async(fails, concurrency=20, limiter=limit, on_error="skip")
        await flow.run()
        assert limit.limit == 2

    async def test_it_follows_the_capacity_of_the_other_side(self) -> None:
        """A service that does ten at once in a second, and queues the others."""
        places = asyncio.Semaphore(10)

        async def work(x: int) -> int:
            async with places:
                await asyncio.sleep(1)
            return x

        limit = AdaptiveLimit(initial=2, maximum=100)
        await r.range(3000).map_async(work, concurrency=100, limiter=limit).run()
        assert 8 <= limit.limit <= 30

    async def test_a_cancelled_wait_gives_its_place_back(self) -> None:
        limit = AdaptiveLimit(initial=1, maximum=1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await r.range(9).map_async(timed([], 10), concurrency=3, limiter=limit).run()
        assert await r.range(2).map_async(timed([], 1), limiter=limit).count() == 2


class TestCircuitBreaker:
    async def test_while_it_is_open_work_waits(self) -> None:
        log: list[float] = []
        work = timed(log)
        broken_until = now() + 25

        async def service(x: int) -> int:
            await work(x)
            if now() < broken_until:
                raise Failed
            return x

        breaker = CircuitBreaker(failures=2, reset=10)
        policy = RetryPolicy(attempts=None, delay=1, factor=1, jitter=0, within=10**6)
        flow = r.range(4).map_async(service, concurrency=2, limiter=breaker, retry=policy)
        assert await flow.to_list() == [0, 1, 2, 3]
        assert log[:2] == [0, 0]
        assert log[2:5] == [10, 20, 30]
        assert not breaker.is_open

    async def test_a_success_in_between_keeps_it_closed(self) -> None:
        async def every_second(x: int) -> int:
            if x % 2:
                raise Failed
            return x

        breaker = CircuitBreaker(failures=2)
        flow = r.range(20).map_async(every_second, limiter=breaker, on_error="skip")
        assert await flow.count() == 10
        assert not breaker.is_open

    async def test_demand_is_lowered(self) -> None:
        async def fails(_: int) -> int:
            raise Failed

        source = PublisherProbe[int]()
        breaker = CircuitBreaker(failures=1, reset=1000)
        flow = r.from_publisher(source).map_async(fails, limiter=breaker, on_error="skip")
        probe = SubscriberProbe[int](100).subscribed_to(flow)
        source.emit(1)
        await asyncio.sleep(1)
        assert breaker.is_open
        assert source.requested == 2
        probe.cancel()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RateLimit(0), "RateLimit: n must be more than 0"),
        (lambda: RateLimit(cast("Any", "5")), "RateLimit: n must be a number, not '5'"),
        (lambda: RateLimit(float("nan")), "RateLimit: n must be a number, not nan"),
        (lambda: RateLimit(1, per=0), "RateLimit: per must be more than 0"),
        (lambda: ConcurrencyLimit(0), "ConcurrencyLimit: n must be at least 1"),
        (lambda: AdaptiveLimit(minimum=9, maximum=3), "AdaptiveLimit: maximum must be at least 9"),
        (lambda: AdaptiveLimit(initial=300), "AdaptiveLimit: initial must be at most 256"),
        (lambda: CircuitBreaker(failures=0), "CircuitBreaker: failures must be at least 1"),
        (lambda: CircuitBreaker(reset=-1), "CircuitBreaker: reset must be more than 0"),
    ],
)
def test_wrong_arguments_are_refused(make: Callable[[], Limit], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        make()


@pytest.mark.parametrize(
    "limit", [RateLimit(100), ConcurrencyLimit(2), AdaptiveLimit(), CircuitBreaker()], ids=repr
)
class TestLoops:
    def test_it_belongs_to_one_loop_at_a_time(self, limit: Limit) -> None:
        def run() -> int:
            return asyncio.run(use())

        async def use() -> int:
            return await r.range(3).map_async(timed([]), limiter=limit).count()

        async def main() -> None:
            assert await use() == 3
            with pytest.raises(WrongLoop, match="make one for each event loop"):
                await asyncio.to_thread(run)

        asyncio.run(main())
        assert run() == 3


class TestSeveral:
    async def test_all_of_them_admit_the_work(self) -> None:
        begun: list[float] = []
        running: list[int] = [0, 0]

        async def work(x: int) -> int:
            begun.append(round(now(), 3))
            running[0] += 1
            running[1] = max(running)
            await asyncio.sleep(1)
            running[0] -= 1
            return x

        limits = [RateLimit(5, per=10), ConcurrencyLimit(2)]
        flow = r.range(11).map_async(work, concurrency=8, limiter=limits)
        assert await flow.to_list() == [*range(11)]
        assert running[1] == 2
        assert begun == [0, 0, 1, 1, 2, 10, 10, 11, 11, 12, 20]

    async def test_a_rate_is_asked_last(self) -> None:
        places, rate = ConcurrencyLimit(1), RateLimit(1, per=10)

        async def work(x: int) -> int:
            await asyncio.sleep(100 if x == 0 else 0)
            return x

        task = asyncio.ensure_future(
            r.range(3).map_async(work, concurrency=3, limiter=[rate, places]).to_list()
        )
        await asyncio.sleep(50)
        # Those that wait for a place have used none of the rate.
        assert await r.just(1).rate_limit(limiter=rate).timeout(1).to_list() == [1]
        assert await task == [0, 1, 2]

    async def test_lists_in_different_orders_do_not_wait_for_each_other(self) -> None:
        a, b, breaker = ConcurrencyLimit(2), AdaptiveLimit(initial=2, maximum=2), CircuitBreaker()
        lists = ([a, b, breaker], [breaker, b, a], (b, a), [copy.copy(a), b, a])
        flows = [r.range(9).map_async(same, concurrency=4, limiter=each) for each in lists]
        async with asyncio.timeout(100):
            results = await asyncio.gather(*(flow.to_list() for flow in flows))
        assert results == [[*range(9)]] * len(lists)

    @pytest.mark.parametrize("limit", [ConcurrencyLimit(1), RateLimit(1)])
    async def test_one_limit_is_not_given_twice(self, limit: Limit) -> None:
        for limiter in ([limit, limit], (limit, CircuitBreaker(), limit)):
            with pytest.raises(ValueError, match=r"for_each: limiter has \w+\(.*\) twice"):
                await r.range(3).for_each(same, limiter=limiter)

    async def test_rate_limit_takes_several(self) -> None:
        limits = (RateLimit(2, per=1), RateLimit(3, per=10))
        flow = r.range(4).rate_limit(limiter=limits).map(lambda _: round(now()))
        assert await flow.to_list() == [0, 0, 1, 10]
        assert "rate_limit(limiter=RateLimit + RateLimit)" in flow.explain()
        with pytest.raises(TypeError, match=r"rate_limit: a RateLimit \+ ConcurrencyLimit limits"):
            r.range(4).rate_limit(limiter=[RateLimit(1), ConcurrencyLimit(1)])

    @pytest.mark.parametrize("wrong", [[], [5], "ab", [RateLimit]])
    def test_what_is_no_limit_is_refused(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match="map_async: limiter must be a Limit, such as"):
            r.range(1).map_async(asyncio.sleep, limiter=wrong)
