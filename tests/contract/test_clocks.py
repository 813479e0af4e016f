"""What an operator means in time does not depend on how its reader requests.

Each operator and source with a clock emits the same elements at the same times to each reader:
``async for``, a subscriber that requests one after each element or all at once, ``for_each``,
``stream(prefetch=2)``. Readers that take no time are compared with each other, and so are those
that work for the same time on each element.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from operator import add
from typing import Any, Final

import pytest

import reactive_aio as r
from reactive_aio import Emitter, Flow
from tests.cases import PUBLIC
from tests.operators.ways import Failed

pytestmark = pytest.mark.virtual_time

Record = list[tuple[float, Any]]
TIMES: Final = [1, 2, 2.5, 6, 6.25, 6.5, 6.6, 12, 12.25, 19]
"""When the sources emit 0, 1, 2 …; they end at 21."""
END: Final = 21


def hot() -> Flow[int]:
    """A source that emits by the clock, whatever is requested."""

    def register(to: Emitter[int]) -> None:
        loop = asyncio.get_running_loop()
        for number, at in enumerate(TIMES):
            loop.call_later(at, to.try_emit, number)
        loop.call_later(END, to.complete)

    return r.create(register)


def cold() -> Flow[int]:
    """A source that sleeps before each element; it waits until that is requested."""

    async def generate() -> AsyncIterator[int]:
        now = 0.0
        for number, at in enumerate(TIMES):
            await asyncio.sleep(at - now)
            now = at
            yield number
        await asyncio.sleep(END - now)

    return r.from_aiter(generate)


def lists(flows: Flow[Any]) -> Flow[Any]:
    return flows.flat_map(lambda each: each.buffer(99), concurrency=99)


def failing(flow: Flow[int], times: int) -> Flow[int]:
    """It fails with its third element, so many times."""
    left = times

    def check(element: int) -> int:
        nonlocal left
        if element == 2 and left:
            left -= 1
            raise Failed
        return element

    return flow.map(check)


def timestamped(flow: Flow[int]) -> Flow[Any]:
    """The seconds since the beginning, as its timestamps say."""
    began = asyncio.get_running_loop().time()
    return flow.timestamp().map(lambda x: (round(x[0] - began, 6), x[1]))


async def slowly(element: Any) -> Any:
    await asyncio.sleep(0.75)
    return element


Make = Callable[[Flow[int]], Flow[Any]]
POLICY: Final = r.RetryPolicy(attempts=5, delay=3, jitter=0)

OPERATORS: Mapping[str, Make] = {
    "buffer_timeout": lambda flow: flow.buffer_timeout(3, 1.5),
    "debounce": lambda flow: flow.debounce(0.4),
    "delay": lambda flow: flow.delay(5),
    "delay: capacity": lambda flow: flow.delay(0.7, capacity=1),
    "delay_subscription": lambda flow: flow.delay_subscription(5),
    "elapsed": lambda flow: flow.elapsed().map(lambda x: (round(x[0], 6), x[1])),
    "group_by": lambda flow: lists(flow.group_by(lambda x: x % 2, idle=3)),
    "map_async": lambda flow: flow.map_async(slowly, timeout=2),
    "map_async: concurrency": lambda flow: flow.map_async(slowly, concurrency=2, timeout=2),
    "map_async: limiter": lambda flow: flow.map_async(slowly, limiter=r.RateLimit(2, per=3)),
    "rate_limit": lambda flow: flow.rate_limit(2, 4),
    "rate_limit: limiter": lambda flow: flow.rate_limit(limiter=r.RateLimit(2, per=4)),
    "repeat": lambda flow: flow.take(3).repeat(2),
    "replay": lambda flow: flow.replay(2, ttl=3),
    "restart": lambda flow: failing(flow.take(4), 2).restart(POLICY).take(4),
    "retry": lambda flow: failing(flow, 2).retry(POLICY),
    "sample": lambda flow: flow.sample(2),
    "share": lambda flow: flow.share(grace=1),
    "switch_map": lambda flow: flow.switch_map(lambda x: r.timer(0.3, x)),
    "take_until": lambda flow: flow.take_until(r.timer(6.3)),
    "throttle_first": lambda flow: flow.throttle_first(1),
    "throttle_latest": lambda flow: flow.throttle_latest(1),
    "timeout": lambda flow: flow.timeout(5, fallback=[-1]),
    "timestamp": timestamped,
    "window_reduce": lambda flow: flow.window_reduce(1.5, add, 0).map(lambda window: window.value),
    "window_timeout": lambda flow: lists(flow.window_timeout(3, 1.5)),
    "then": lambda flow: flow.delay(1).then([1, 2]),
    "on_backpressure_buffer": lambda flow: flow.on_backpressure_buffer(4, overflow="drop_oldest"),
    "on_backpressure_drop": lambda flow: flow.on_backpressure_drop(),
    "on_backpressure_latest": lambda flow: flow.on_backpressure_latest(),
    "with_latest_from": lambda flow: flow.with_latest_from(r.interval(0.9)),
    "combine_latest": lambda flow: r.combine_latest(flow, r.interval(4.1).take(3)),
    "merge": lambda flow: flow.merge_with(r.interval(1.3).take(6)),
}
SOURCES: Mapping[str, Callable[[], Flow[Any]]] = {
    "interval": lambda: r.interval(1.7).take(8),
    "interval: drop_newest": lambda: r.interval(1.7, overflow="drop_newest").take(8),
    "timer": lambda: r.timer(3, 1),
}


def _make(source: Callable[[], Flow[int]], name: str) -> Flow[Any]:
    return OPERATORS[name](source())


# -- readers ---------------------------------------------------------------------------------------
class Recorder:
    """Records when each element arrived; it works on it for *pace* seconds."""

    def __init__(self, pace: float) -> None:
        self.loop = asyncio.get_running_loop()
        self.began = self.loop.time()
        self.pace = pace
        self.record: Record = []

    def note(self, element: object) -> None:
        at = self.loop.time() - self.began
        self.record.append((round(at, 6), element))

    async def work(self, element: object) -> bool:
        self.note(element)
        if self.pace:
            await asyncio.sleep(self.pace)
        return True


class Subscriber:
    """Requests *n*, and again so many after each *n* elements."""

    def __init__(self, recorder: Recorder, n: int) -> None:
        self.recorder = recorder
        self.n = self.left = n
        self.ended = asyncio.get_running_loop().create_future()

    def on_subscribe(self, subscription: r.Subscription) -> None:
        self.subscription = subscription
        subscription.request(self.n)

    def on_next(self, element: Any) -> Any:
        self.recorder.note(element)
        self.processed()

    def processed(self) -> None:
        self.left -= 1
        if not self.left:
            self.left = self.n
            self.subscription.request(self.n)

    def on_error(self, error: BaseException) -> None:
        self.ended.set_exception(error)

    def on_complete(self) -> None:
        self.ended.set_result(None)


class AwaitingSubscriber(Subscriber):
    async def on_next(self, element: Any) -> None:
        await self.recorder.work(element)
        self.processed()


Read = Callable[[Flow[Any], Recorder], Awaitable[object]]


def by_subscriber(n: int) -> Read:
    async def read(flow: Flow[Any], recorder: Recorder) -> None:
        kind = AwaitingSubscriber if recorder.pace else Subscriber
        subscriber = kind(recorder, n)
        flow.subscribe(subscriber)
        await subscriber.ended

    return read


async def by_async_for(flow: Flow[Any], recorder: Recorder) -> None:
    async for element in flow:
        await recorder.work(element)


def by_stream(prefetch: int) -> Read:
    async def read(flow: Flow[Any], recorder: Recorder) -> None:
        async with flow.stream(prefetch=prefetch) as elements:
            async for element in elements:
                await recorder.work(element)

    return read


ONE_BY_ONE: Mapping[str, Read] = {
    "request(1)": by_subscriber(1),
    "async for": by_async_for,
    "stream(prefetch=1)": by_stream(1),
}
ALL_AT_ONCE: Mapping[str, Read] = {
    "unbounded": by_subscriber(2**63 - 1),
    "for_each": lambda flow, recorder: flow.for_each(recorder.work),
    "map_async, run": lambda flow, recorder: flow.map_async(recorder.work).run(),
}
SOME_AHEAD: Mapping[str, Read] = {
    "request(2)": by_subscriber(2),
    "stream(prefetch=2)": by_stream(2),
}


async def reading(make: Callable[[], Flow[Any]], read: Read, pace: float) -> Record:
    recorder = Recorder(pace)
    await read(make(), recorder)
    recorder.note("|")
    return recorder.record


async def check(make: Callable[[], Flow[Any]], readers: Mapping[str, Read], pace: float) -> None:
    expected = await reading(make, readers["request(1)"], pace)
    found = {key: await reading(make, read, pace) for key, read in readers.items()}
    different = {key: record for key, record in found.items() if record != expected}
    assert not different, f"request(1): {expected}"


MAKES: Final[Mapping[str, Callable[[], Flow[Any]]]] = {
    **{f"{name}, hot": partial(_make, hot, name) for name in OPERATORS},
    **{f"{name}, cold": partial(_make, cold, name) for name in OPERATORS},
    **SOURCES,
}


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
async def test_every_reader_that_takes_no_time_sees_the_same(make: Callable[[], Flow[Any]]) -> None:
    await check(make, {**ONE_BY_ONE, **ALL_AT_ONCE, **SOME_AHEAD}, 0)


BY_POLICY: Final = ("on_backpressure_buffer", "on_backpressure_drop", "on_backpressure_latest")
"""What they drop is tested with the policies."""
SLOW: Final = {key: make for key, make in MAKES.items() if not key.startswith(BY_POLICY)}


@pytest.mark.parametrize("pace", [0.6, 2.2])
@pytest.mark.parametrize("make", SLOW.values(), ids=SLOW)
async def test_every_slow_reader_that_asks_one_by_one_sees_the_same(
    make: Callable[[], Flow[Any]], pace: float
) -> None:
    await check(make, ONE_BY_ONE, pace)


BY_THE_CLOCK: Final = (
    "buffer_timeout",
    "debounce",
    "delay",
    "delay: capacity",
    "delay_subscription",
    "rate_limit",
    "rate_limit: limiter",
    "replay",
    "sample",
    "share",
    "throttle_first",
    "throttle_latest",
    "window_reduce",
    "window_timeout",
)
"""Which emit by the clock alone, also to a slow reader. The others read ahead for one that requests
ahead: so a source that waits goes on earlier, and what is cut later has been delivered."""
CLOCKED: Final = {
    **{f"{name}, hot": partial(_make, hot, name) for name in BY_THE_CLOCK},
    **SOURCES,
}


@pytest.mark.parametrize("pace", [0.6, 2.2])
@pytest.mark.parametrize("make", CLOCKED.values(), ids=CLOCKED)
async def test_slow_readers_see_the_same_where_only_the_clock_counts(
    make: Callable[[], Flow[Any]], pace: float
) -> None:
    await check(make, {**ONE_BY_ONE, **ALL_AT_ONCE}, pace)


# -- the registry ----------------------------------------------------------------------------------
CLOCKS: Final = ("Duration", "timedelta", "RetryPolicy", "Limit")
WITHOUT: Final = {
    "for_each": "a sink; the readers above use it",
    "running": "a sink",
    "run_until_signal": "a sink",
    "from_lines": "polls a file, and not by the clock of the test",
    "from_process": "waits for a program, and not by the clock of the test",
    "CircuitBreaker": "a limit",
    "RateLimit": "a limit",
    "RetryPolicy": "a policy",
    "ReplayProcessor": "as replay",
}


def with_a_clock() -> set[str]:
    """The names that have a parameter of time."""
    return {
        name
        for owner in (r, Flow)
        for name in {*PUBLIC, *dir(Flow)}
        if not name.startswith("_") and callable(getattr(owner, name, None))
        if has_a_clock(getattr(owner, name))
    }


def has_a_clock(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(word in str(each.annotation) for each in parameters for word in CLOCKS)


def test_every_operator_and_source_with_a_clock_is_in_the_table() -> None:
    known = {key.partition(":")[0] for key in (*OPERATORS, *SOURCES)}
    missing = with_a_clock() - known - {*WITHOUT}
    assert not missing, f"add them to OPERATORS or SOURCES in {__name__}: {sorted(missing)}"
    assert {*WITHOUT} <= with_a_clock()
