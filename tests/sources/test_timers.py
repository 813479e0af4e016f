"""interval and timer: when they tick, and ticks without demand."""

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Publisher
from reactive_aio.errors import NotAnElement
from reactive_aio.testing import AsyncSubscriberProbe, SubscriberProbe
from tests.cases import Needs

MANY = 2**63 - 1
SHORT = 0.0002

OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "timer": lambda n: r.timer(SHORT).flat_map(lambda _: range(n)),
    # A busy loop misses ticks, and numbers count ticks.
    "interval": lambda n: r.interval(SHORT).map(lambda _: "tick").take(n),
}

INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {
    "interval": lambda: r.interval(SHORT),
    "interval: drop_newest": lambda: r.interval(SHORT, overflow="drop_newest"),
}


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.virtual_time
class TestInterval:
    async def test_ticks_at_a_fixed_rate_from_the_first_request_on(self) -> None:
        seen: list[tuple[float, int]] = []
        flow = r.interval(3).do_on_next(lambda tick: seen.append((now(), tick))).take(3)
        probe = SubscriberProbe[int]().subscribed_to(flow)
        await asyncio.sleep(10)
        probe.request(MANY)
        await probe.end()
        assert seen == [(13, 0), (16, 1), (19, 2)]

    async def test_the_first_tick_may_come_at_once(self) -> None:
        flow = r.interval(timedelta(seconds=2), initial_delay=0)
        assert await flow.take(3).to_list(limit=3) == [0, 1, 2]
        assert now() == pytest.approx(4)

    async def test_does_not_drift(self) -> None:
        await r.interval(0.1).take(1000).run()
        assert now() == pytest.approx(100, abs=0.001)

    async def test_the_latest_tick_waits_for_demand(self) -> None:
        probe = SubscriberProbe[int](1).subscribed_to(r.interval(1))
        await asyncio.sleep(5.5)
        assert probe.signals == [0]
        probe.request(2)
        assert probe.signals == [0, 4], "the gap shows that three were missed"
        await asyncio.sleep(1)
        assert probe.signals == [0, 4, 5]
        probe.cancel()

    async def test_a_tick_without_demand_may_be_dropped(self) -> None:
        flow = r.interval(1, overflow="drop_newest")
        probe = SubscriberProbe[int](1).subscribed_to(flow)
        await asyncio.sleep(5.5)
        probe.request(1)
        assert probe.signals == [0]
        await asyncio.sleep(1)
        assert probe.signals == [0, 5]
        probe.cancel()

    async def test_a_slow_subscriber_with_unbounded_demand_misses_ticks(self) -> None:
        class Slow(AsyncSubscriberProbe[int]):
            async def on_next(self, element: int, /) -> None:  # type: ignore[override]
                await asyncio.sleep(2.5)
                self.signals.append(element)

        probe = Slow(MANY).subscribed_to(r.interval(1))
        await asyncio.sleep(12)
        assert probe.signals[:4] == [0, 2, 5, 7]
        probe.cancel()
        await asyncio.sleep(3)

    async def test_cancelling_stops_the_clock(self) -> None:
        probe = SubscriberProbe[int](9).subscribed_to(r.interval(1))
        await asyncio.sleep(1.5)
        probe.cancel()
        await asyncio.sleep(10)
        assert probe.signals == [0]

    def test_the_bound_counts_the_waiting_tick(self) -> None:
        assert r.interval(1).bound().total == 1
        assert r.interval(1, overflow="drop_newest").bound().total == 0

    @pytest.mark.parametrize("period", [0, -1, float("nan"), float("inf")])
    def test_the_period_must_be_positive(self, period: float) -> None:
        with pytest.raises(ValueError, match=r"^interval: period must be"):
            r.interval(period)

    def test_the_policy_must_be_known(self) -> None:
        with pytest.raises(ValueError, match="latest"):
            r.interval(1, overflow="fail")  # type: ignore[arg-type]


async def test_ticks_delayed_by_a_busy_loop_count_as_one() -> None:
    probe = SubscriberProbe[int](MANY).subscribed_to(r.interval(0.005))
    await probe.wait_for_signals(1)
    until = time.perf_counter() + 0.03
    while time.perf_counter() < until:
        pass
    await probe.wait_for_signals(2)
    probe.cancel()
    assert probe.elements[1] - probe.elements[0] >= 5


@pytest.mark.virtual_time
class TestTimer:
    async def test_emits_once_after_the_delay_and_completes(self) -> None:
        probe = SubscriberProbe[str]().subscribed_to(r.timer(5, "now"))
        await asyncio.sleep(100)
        assert probe.signals == [], "the first request starts the clock"
        probe.request(1)
        await probe.end()
        assert probe.signals == ["now", "|"]
        assert now() == 105

    async def test_cancelling_stops_it(self) -> None:
        probe = SubscriberProbe[int](1).subscribed_to(r.timer(5))
        probe.cancel()
        await asyncio.sleep(10)
        assert probe.signals == []

    def test_arguments(self) -> None:
        with pytest.raises(NotAnElement):
            r.timer(1, None)
        with pytest.raises(TypeError, match="delay"):
            r.timer("1")  # type: ignore[call-overload]


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Make a flow": {
        "that ticks at a fixed rate": "interval",
        "that emits one element after a time": "timer",
    },
}


async def example_interval() -> None:
    print(await r.interval(0.1).take(3).to_list())


async def example_timer() -> None:
    print(await r.timer(0.1, "time is up").to_list())
