"""A timer of an operator never runs, nor waits, after the end of its flow."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.testing import SubscriberProbe
from tests.harness.one_run import in_one_run
from tests.operators.streams import MANY

pytestmark = pytest.mark.virtual_time


async def fails() -> AsyncIterator[int]:
    yield 1
    raise ValueError


def numbers() -> Flow[int]:
    return r.interval(0.01)


WITH_A_TIMER: dict[str, Callable[[], Flow[Any]]] = {
    "buffer_timeout": lambda: numbers().buffer_timeout(3, 100),
    "buffer_timeout: by time": lambda: numbers().buffer_timeout(1000, 0.05),
    "debounce": lambda: r.interval(10).debounce(0.05),
    "delay": lambda: numbers().delay(0.05),
    "delay_subscription": lambda: numbers().delay_subscription(0.05),
    "group_by: idle": lambda: numbers().group_by(lambda x: x % 2, idle=100).flat_map(lambda x: x),
    "group_by: stalls": lambda: numbers().group_by(abs).concat_map(lambda x: x),
    "interval": numbers,
    "rate_limit": lambda: numbers().rate_limit(1, 0.05),
    "rate_limit: a list": lambda: r.range(9).rate_limit(1, 100),
    "rate_limit: limiter": lambda: r.range(9).rate_limit(limiter=r.RateLimit(1, per=100)),
    "repeat": lambda: r.just(1).repeat(r.RetryPolicy(attempts=None, delay=100)),
    "restart": lambda: r.from_aiter(fails).restart(r.RetryPolicy(attempts=None, delay=100)),
    "retry": lambda: r.from_aiter(fails).retry(r.RetryPolicy(attempts=None, delay=100)),
    "sample": lambda: numbers().sample(0.05),
    "share": lambda: numbers().share(grace=0),
    "throttle_first": lambda: numbers().throttle_first(100),
    "throttle_latest": lambda: numbers().throttle_latest(100),
    "timeout": lambda: numbers().timeout(100),
    "timeout: fallback": lambda: r.never().timeout(0.05, fallback=numbers()),
    "timer": lambda: r.timer(0.01).concat_with(r.timer(100)),
    "window_timeout": lambda: numbers().window_timeout(3, 100).flat_map(lambda x: x),
    "map_async: retry": lambda: numbers().map_async(
        lambda x: asyncio.sleep(0, x) if x == 0 else fails().__anext__(), retry=3, timeout=100
    ),
}
every_operator = pytest.mark.parametrize("make", WITH_A_TIMER.values(), ids=WITH_A_TIMER)


def timers() -> list[asyncio.TimerHandle]:
    loop: Any = asyncio.get_running_loop()
    return [timer for timer in loop._scheduled if not timer.cancelled()]


async def expect_no_timer() -> None:
    for _ in range(5):
        await asyncio.sleep(0)
    assert timers() == []


@in_one_run
@every_operator
@pytest.mark.parametrize("demand", [1, 2, MANY])
async def test_after_an_emission_that_ends_the_flow(
    make: Callable[[], Flow[Any]], demand: int
) -> None:
    probe = SubscriberProbe[Any](demand).subscribed_to(make().take(1))
    await probe.end()
    await expect_no_timer()


@in_one_run
@every_operator
async def test_after_a_failure_below(make: Callable[[], Flow[Any]]) -> None:
    with pytest.raises(ZeroDivisionError):
        await make().map(lambda _: 1 // 0).run()
    await expect_no_timer()


@in_one_run
@every_operator
async def test_after_a_break(make: Callable[[], Flow[Any]]) -> None:
    async for _ in make():
        break
    await expect_no_timer()
    async with make().stream() as elements:
        async for _ in elements:
            break
    await expect_no_timer()


@in_one_run
@every_operator
@pytest.mark.parametrize("seconds", [0, 0.005, 0.012, 0.052])
async def test_after_a_cancellation(make: Callable[[], Flow[Any]], seconds: float) -> None:
    probe = SubscriberProbe[Any](3).subscribed_to(make())
    await asyncio.sleep(seconds)
    probe.cancel()
    await expect_no_timer()


async def test_a_source_that_ends_while_nobody_reads_it_is_waited_for_no_longer() -> None:
    async def shortly() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(1)

    shared = r.from_aiter(shortly).share(grace=100)
    assert await shared.first() == 1
    await asyncio.sleep(2)
    await expect_no_timer()
