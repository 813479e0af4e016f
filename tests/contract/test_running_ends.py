"""Neither a run nor its drain waits for a time that no element needs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from tests.harness.one_run import in_one_run

pytestmark = pytest.mark.virtual_time

HOUR = 3600.0


class Endless:
    """An iterable, not a sequence."""

    def __init__(self) -> None:
        self.closed = 0

    def __iter__(self) -> Iterator[int]:
        try:
            yield from range(10**9)
        finally:
            self.closed += 1


async def numbers() -> AsyncIterator[int]:
    for number in range(10**9):
        yield number


async def fails() -> AsyncIterator[int]:
    yield 1
    raise ValueError


def now() -> float:
    return asyncio.get_running_loop().time()


LIMITED: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "rate_limit": lambda flow: flow.rate_limit(1, HOUR),
    "rate_limit: limiter": lambda flow: flow.rate_limit(limiter=r.RateLimit(1, per=HOUR)),
}
every_limit = pytest.mark.parametrize("limited", LIMITED.values(), ids=LIMITED)

FINITE: dict[str, Callable[[], Flow[Any]]] = {
    "range": lambda: r.range(3),
    "just": lambda: r.just(1, 2, 3),
    "a list": lambda: r.from_iterable([1, 2, 3]),
    "map": lambda: r.range(3).map(abs),
    "map_async": lambda: r.range(3).map_async(lambda x: asyncio.sleep(0, x)),
    "take": lambda: r.from_aiter(numbers).take(3),
    "flat_map": lambda: r.range(3).flat_map(lambda x: [x]),
    "boundary": lambda: r.range(3).boundary(2),
}


@every_limit
@pytest.mark.parametrize("make", FINITE.values(), ids=FINITE)
async def test_a_run_ends_when_for_each_does(
    make: Callable[[], Flow[Any]], limited: Callable[[Flow[Any]], Flow[Any]]
) -> None:
    took: list[float] = []
    for _ in range(2):
        began = now()
        if took:
            async with limited(make()).running(lambda _: None) as run:
                await run.wait()
        else:
            await limited(make()).for_each(lambda _: None)
        took.append(now() - began)
    assert took[0] == took[1]


ENDLESS: dict[str, Callable[[], Flow[Any]]] = {
    "range": lambda: r.range(10**9),
    "a generator": lambda: r.from_iterable(Endless()),
    "map": lambda: r.from_iterable(Endless()).map(abs),
    "filter": lambda: r.from_iterable(Endless()).filter(lambda x: x % 2),
    "generate": lambda: r.generate(lambda x: (x, x + 1), 0),
    "from_aiter": lambda: r.from_aiter(numbers),
    "from_aiter: map": lambda: r.from_aiter(numbers).map(abs),
    "map_async": lambda: r.from_iterable(Endless()).map_async(lambda x: asyncio.sleep(0, x)),
    "from_awaitable": lambda: r.from_awaitable(lambda: asyncio.sleep(0, 1)).repeat(),
    "interval": lambda: r.interval(HOUR),
    "repeat": lambda: r.just(1).repeat(),
    "defer": lambda: r.defer(Endless),
    "using": lambda: r.using(Nothing, lambda _: Endless()),
    "timeout": lambda: r.from_aiter(numbers).timeout(10 * HOUR),
    "share": lambda: r.from_aiter(numbers).share(capacity=1),
    "limit_rate": lambda: r.from_iterable(Endless()).limit_rate(1),
}


class Nothing:
    """A resource."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


@in_one_run
@every_limit
@pytest.mark.parametrize("make", ENDLESS.values(), ids=ENDLESS)
async def test_a_drain_does_not_wait_for_the_next_request(
    make: Callable[[], Flow[Any]], limited: Callable[[Flow[Any]], Flow[Any]]
) -> None:
    async with limited(make()).running(lambda _: None) as run:
        await asyncio.sleep(1)
        began = now()
        report = await run.drain(None)
        held = report.drained  # an element that a queue holds needs a period of its own
        assert now() - began <= held * HOUR
        assert report.is_complete


WAITING: dict[str, Callable[[], Flow[Any]]] = {
    "delay_subscription": lambda: r.range(3).delay_subscription(HOUR),
    "repeat": lambda: r.range(3).repeat(r.RetryPolicy(attempts=None, delay=HOUR)),
    "restart": lambda: r.from_aiter(fails).restart(r.RetryPolicy(attempts=None, delay=HOUR)),
    "retry": lambda: r.from_aiter(fails).retry(r.RetryPolicy(attempts=None, delay=HOUR)),
    "interval": lambda: r.interval(HOUR),
    "timer": lambda: r.timer(HOUR),
    "never": r.never,
    "take_until": lambda: r.never().take_until(r.timer(HOUR)),
    "timeout": lambda: r.never().timeout(HOUR),
    "debounce": lambda: r.interval(HOUR).debounce(HOUR),
    "sample": lambda: r.never().sample(HOUR),
    "throttle_latest": lambda: r.interval(1).throttle_latest(HOUR),
    "buffer_timeout": lambda: r.interval(1).buffer_timeout(10**6, HOUR),
    "window_timeout": lambda: (
        r.interval(1).window_timeout(10**6, HOUR).flat_map(lambda window: window)
    ),
    "group_by": lambda: r.interval(1).group_by(abs, idle=HOUR).flat_map(lambda group: group),
}


@pytest.mark.parametrize("make", WAITING.values(), ids=WAITING)
async def test_a_drain_does_not_wait_for_a_timer(make: Callable[[], Flow[Any]]) -> None:
    async with make().running(lambda _: None) as run:
        await asyncio.sleep(10)
        began = now()
        assert (await run.drain(None)).is_complete
        assert now() == began


@pytest.mark.parametrize("demand", [1, 2, 2**63 - 1])
async def test_a_pulled_source_is_closed_by_the_drain(demand: int) -> None:
    source = Endless()
    async with r.from_iterable(source).map(abs).rate_limit(demand, HOUR).running() as run:
        await asyncio.sleep(0 if demand > 2 else 1)
        await run.drain(None)
        assert source.closed == 1
