"""The operators and sources that combine or queue: a small flow of each, and its elements.

A key is the name of an operator or source, or ``"name: variant"``. `test_registered` fails if one
is missing.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from anyio import BrokenResourceError, create_memory_object_stream
from anyio.streams.memory import MemoryObjectReceiveStream

from reactive_aio import (
    ConcurrencyLimit,
    Emitter,
    Flow,
    RateLimit,
    combine_latest,
    concat,
    create,
    from_aiter,
    from_anyio,
    from_awaitable,
    from_iterable,
    from_lines,
    from_publisher,
    from_queue,
    from_thread,
    interval,
    merge,
    never,
    race,
    timer,
    using,
    zip,
)
from reactive_aio.errors import TimedOut
from reactive_aio.testing.schedules import Schedule
from tests.schedules.checks import (
    Combined,
    Expected,
    Interleaved,
    InterleavedLists,
    Lossy,
    OneOf,
)
from tests.schedules.sources import (
    SourceError,
    async_steps,
    failing_cleanup,
    in_a_task_group,
    in_an_anyio_task_group,
    steps,
)

Part = tuple[Callable[[Schedule], Flow[Any]], Expected]


async def slow(x: int) -> int:
    """Takes longer for smaller numbers, so that later elements finish first."""
    for _ in range(3 - x % 3):
        await asyncio.sleep(0)
    return x


async def not_two(x: int) -> int:
    await asyncio.sleep(0)
    if x == 2:
        raise SourceError
    return x


def beside(flow: Flow[Any]) -> Flow[Any]:
    """*flow*, which another subscriber reads at the same time."""
    return merge(flow, flow.filter(lambda _: False))


async def is_odd(x: int) -> bool:
    await asyncio.sleep(0)
    return x % 2 == 1


def filled_queue(*elements: Any) -> "asyncio.Queue[Any]":
    queue: asyncio.Queue[Any] = asyncio.Queue()
    for element in elements:
        queue.put_nowait(element)
    return queue


def filled_later(*elements: Any) -> "asyncio.Queue[Any]":
    """A queue that timers fill."""
    queue: asyncio.Queue[Any] = asyncio.Queue(len(elements))
    for index, element in enumerate(elements):
        asyncio.get_running_loop().call_later(index * 0.001, queue.put_nowait, element)
    return queue


def received_later(*elements: Any) -> MemoryObjectReceiveStream[Any]:
    """A stream into which timers send."""
    send, receive = create_memory_object_stream[Any](len(elements))
    loop = asyncio.get_running_loop()

    def emit(element: Any) -> None:
        with suppress(BrokenResourceError):  # the receiver has left
            send.send_nowait(element)

    for index, element in enumerate(elements):
        loop.call_later(index * 0.001, emit, element)
    loop.call_later(len(elements) * 0.001, send.close)
    loop.call_later(1, receive.close)  # a flow that is cancelled before it begins does not
    return receive


@asynccontextmanager
async def opened(*elements: Any) -> AsyncGenerator[tuple[Any, ...]]:
    await asyncio.sleep(0)
    yield elements
    await asyncio.sleep(0)


async def emit_all(to: Emitter[int]) -> None:
    for n in range(1, 4):
        await to.emit(n)
        await asyncio.sleep(0)


def emitted_by_thread(schedule: Schedule) -> Flow[Any]:
    def begin(to: Emitter[int]) -> None:
        def work() -> None:
            for n in range(1, 4):
                assert to.emit_threadsafe(n) or to.is_done
            to.complete()

        schedule.thread(work, "the emitter")

    return create(begin, capacity=4, overflow="wait")


def failing_once() -> Flow[Any]:
    """Fails after 1 and 2 on the first subscription, then sends 3."""
    attempts = iter([steps(1, 2, error=SourceError()), steps(3)])
    return from_publisher(_Attempts(attempts))


def two_runs() -> Flow[Any]:
    """Sends 1 and 2 to the first subscriber, 3 to the next."""
    return from_publisher(_Attempts(iter([steps(1, 2), steps(3)])))


class _Attempts:
    """A publisher that uses another publisher for each subscription."""

    def __init__(self, attempts: Any) -> None:
        self._attempts = attempts

    def subscribe(self, subscriber: Any, /) -> None:
        next(self._attempts).subscribe(subscriber)


ABC = ("a", "b", "c")
THREE_LINES = Path(__file__).parents[1] / "sources" / "three_lines.txt"


def appended(so_far: tuple[Any, ...], n: Any) -> tuple[Any, ...]:
    return (*so_far, n)


PARTS: dict[str, Part] = {
    "from_publisher": (lambda _: steps(1, 2, 3), Interleaved([1, 2, 3])),
    "from_publisher: fails": (
        lambda _: steps(1, 2, error=SourceError()),
        Interleaved([1, 2], fails=SourceError),
    ),
    "boundary": (lambda _: steps(1, 2, 3).boundary(2), Interleaved([1, 2, 3])),
    "boundary: synchronous": (
        lambda _: from_iterable((1, 2, 3)).boundary(2),
        Interleaved([1, 2, 3]),
    ),
    "boundary: two": (lambda _: steps(1, 2, 3).boundary(2).boundary(1), Interleaved([1, 2, 3])),
    "merge": (lambda _: merge(steps(1, 2), steps("a", "b")), Interleaved([1, 2], ["a", "b"])),
    "merge: prefetch 1": (
        lambda _: merge(steps(1, 2), from_iterable("ab"), prefetch=1),
        Interleaved([1, 2], ["a", "b"]),
    ),
    "merge: priority": (
        lambda _: merge(steps(1, 2), steps("a", "b"), priority=[1, 2], prefetch=1),
        Interleaved([1, 2], ["a", "b"]),
    ),
    "race": (lambda _: race(steps(1, 2), async_steps("a", "b")), OneOf([1, 2], ["a", "b"])),
    "switch_if_empty": (lambda _: steps().switch_if_empty(steps(1, 2)), Interleaved([1, 2])),
    "take_until": (lambda _: steps(1, 2, 3).take_until(async_steps("x")), Lossy([1, 2, 3])),
    "combine_latest": (
        lambda _: combine_latest(steps(1, 2), async_steps("a", "b"), prefetch=1),
        Combined([1, 2], ["a", "b"]),
    ),
    "with_latest_from": (
        lambda _: steps(1, 2).with_latest_from(steps("a"), combine=lambda x, _: x),
        Lossy([1, 2]),
    ),
    "switch_map": (
        lambda _: steps(1, 2).switch_map(lambda n: async_steps((n, 1), (n, 2))),
        Lossy([(1, 1), (1, 2), (2, 1), (2, 2)], last=True),
    ),
    "window": (
        lambda _: steps(1, 2, 3).window(2).flat_map(lambda window: window, concurrency=1),
        Interleaved([1, 2, 3]),
    ),
    "window_timeout": (
        lambda _: (
            steps(1, 2, 3).window_timeout(2, 0.002).flat_map(lambda window: window, concurrency=1)
        ),
        Interleaved([1, 2, 3]),
    ),
    "window_timeout: no size": (
        lambda _: (
            steps(1, 2, 3)
            .window_timeout(None, 0.002, emit_empty=True)
            .flat_map(lambda window: window, concurrency=1)
        ),
        Interleaved([1, 2, 3]),
    ),
    "window_reduce": (
        lambda _: (
            steps(1, 2, 3).window_reduce(0.002, appended, ()).flat_map(lambda window: window.value)
        ),
        Interleaved([1, 2, 3]),
    ),
    "group_by": (
        lambda _: (
            steps(1, 2, 3, 4)
            .group_by(lambda n: n % 2, prefetch=1)
            .flat_map(lambda group: group, concurrency=2)
        ),
        Interleaved([1, 3], [2, 4]),
    ),
    "group_by: evicted": (
        lambda _: (
            steps(1, 2, 3, 4)
            .group_by(lambda n: n % 2, max_groups=1, on_full="evict")
            .flat_map(lambda group: group)
        ),
        Interleaved([1, 3], [2, 4]),
    ),
    "share": (lambda _: steps(1, 2, 3).share(capacity=2), Interleaved([1, 2, 3])),
    "share: with another subscriber": (
        lambda _: beside(steps(1, 2, 3).share(capacity=1)),
        Interleaved([1, 2, 3]),
    ),
    "replay": (lambda _: steps(1, 2, 3).replay(2), Interleaved([1, 2, 3])),
    "cache": (lambda _: steps(1, 2, 3).cache(), Interleaved([1, 2, 3])),
    "cache: with another subscriber": (
        lambda _: beside(steps(1, 2, 3).cache()),
        Interleaved([1, 2, 3]),
    ),
    "expand": (
        lambda _: steps(1).expand(lambda n: steps(n + 1) if n < 3 else []),
        Interleaved([1, 2, 3]),
    ),
    "repeat": (lambda _: two_runs().repeat(2), Interleaved([1, 2, 3])),
    "restart": (lambda _: two_runs().restart(2), Interleaved([1, 2, 3])),
    "merge_with": (
        lambda _: steps(1, 2).merge_with(async_steps("a", "b")),
        Interleaved([1, 2], ["a", "b"]),
    ),
    "concat": (lambda _: concat(steps(1, 2), steps(3)), Interleaved([1, 2, 3])),
    "concat_with": (lambda _: steps(1).concat_with(async_steps(2), [3]), Interleaved([1, 2, 3])),
    "zip": (
        lambda _: zip(steps(1, 2), steps(*ABC)),
        Interleaved([(1, "a"), (2, "b")]),
    ),
    "zip: prefetch 1": (
        lambda _: zip(steps(1, 2, 3), steps("a", "b"), prefetch=1),
        Interleaved([(1, "a"), (2, "b")]),
    ),
    "zip_with": (
        lambda _: steps(1, 2).zip_with(async_steps("a", "b")),
        Interleaved([(1, "a"), (2, "b")]),
    ),
    "flat_map": (
        lambda _: steps(1, 2).flat_map(lambda n: steps((n, 1), (n, 2)), concurrency=2),
        Interleaved([(1, 1), (1, 2)], [(2, 1), (2, 2)]),
    ),
    "flat_map: one after another": (
        lambda _: steps(1, 2).flat_map(lambda n: steps((n, 1), (n, 2)), concurrency=1, prefetch=1),
        Interleaved([(1, 1), (1, 2), (2, 1), (2, 2)]),
    ),
    "concat_map": (
        lambda _: steps(1, 2).concat_map(lambda n: steps((n, 1), (n, 2)), prefetch=1),
        Interleaved([(1, 1), (1, 2), (2, 1), (2, 2)]),
    ),
    "flat_map: both kinds": (
        lambda _: steps(1, 2, 3).flat_map(
            lambda n: [(n, 1), (n, 2)] if n % 2 else async_steps((n, 1), (n, 2)),
            concurrency=2,
            prefetch=1,
        ),
        Interleaved([(1, 1), (1, 2)], [(2, 1), (2, 2)], [(3, 1), (3, 2)]),
    ),
    "map_async": (lambda _: steps(1, 2, 3).map_async(slow), Interleaved([1, 2, 3])),
    "map_async: ordered": (
        lambda _: steps(1, 2, 3).map_async(slow, concurrency=2),
        Interleaved([1, 2, 3]),
    ),
    "map_async: unordered": (
        lambda _: steps(1, 2, 3).map_async(slow, concurrency=2, ordered=False),
        Interleaved([1], [2], [3]),
    ),
    "map_async: by key": (
        lambda _: steps(1, 2, 3, 5).map_async(
            slow, concurrency=3, ordered=False, key=lambda n: n % 2
        ),
        Interleaved([1, 3, 5], [2]),
    ),
    "map_async: skips": (
        lambda _: steps(1, 2, 3).map_async(not_two, concurrency=2, retry=2, on_error="skip"),
        Interleaved([1, 3]),
    ),
    "map_async: limited": (
        lambda _: steps(1, 2, 3).map_async(slow, concurrency=3, limiter=ConcurrencyLimit(1)),
        Interleaved([1, 2, 3]),
    ),
    "map_async: pulled": (
        lambda _: from_iterable([1, 2, 3]).map_async(slow, concurrency=2),
        Interleaved([1, 2, 3]),
    ),
    "filter_async": (
        lambda _: steps(1, 2, 3).filter_async(is_odd, concurrency=2),
        Interleaved([1, 3]),
    ),
    "on_error_resume": (
        lambda _: steps(1, 2, error=SourceError()).on_error_resume(steps(3)),
        Interleaved([1, 2, 3]),
    ),
    "on_error_return": (
        lambda _: steps(1, error=SourceError()).on_error_return(2),
        Interleaved([1, 2]),
    ),
    "on_error_complete": (
        lambda _: steps(1, 2, error=SourceError()).on_error_complete(),
        Interleaved([1, 2]),
    ),
    "retry": (lambda _: failing_once().retry(2), Interleaved([1, 2, 3])),
    "then": (lambda _: steps(1, 2).then(steps("a", "b")), Interleaved(["a", "b"])),
    "timeout": (lambda _: steps(1, 2, 3).timeout(1), Interleaved([1, 2, 3])),
    "timeout: over": (
        lambda _: steps(1).concat_with(timer(2)).timeout(1),
        Interleaved([1], fails=TimedOut),
    ),
    "buffer_timeout": (
        lambda _: steps(1, 2, 3).buffer_timeout(2, 0.005),
        InterleavedLists([1, 2, 3]),
    ),
    "buffer_timeout: in time": (
        lambda _: steps(1).concat_with(timer(1, 2), [3]).buffer_timeout(2, 1),
        InterleavedLists([1, 2, 3]),
    ),
    "on_backpressure_buffer": (
        lambda _: steps(1, 2, 3).on_backpressure_buffer(3),
        Interleaved([1, 2, 3]),
    ),
    "on_backpressure_buffer: drops": (
        lambda _: steps(1, 2, 3).on_backpressure_buffer(1, overflow="drop_oldest"),
        Lossy([1, 2, 3]),
    ),
    "limit_rate": (lambda _: steps(1, 2, 3).limit_rate(2, 1), Interleaved([1, 2, 3])),
    "progress": (lambda _: steps(1, 2, 3).progress(3), Interleaved([1, 2, 3])),
    "delay": (lambda _: steps(1, 2, 3).delay(0.002, capacity=2), Interleaved([1, 2, 3])),
    "delay_subscription": (
        lambda _: steps(1, 2, 3).delay_subscription(0.002),
        Interleaved([1, 2, 3]),
    ),
    "rate_limit": (lambda _: steps(1, 2, 3).rate_limit(2, 0.002), Interleaved([1, 2, 3])),
    "rate_limit: by a limiter": (
        lambda _: steps(1, 2, 3).rate_limit(limiter=RateLimit(2, per=0.002)),
        Interleaved([1, 2, 3]),
    ),
    "debounce": (lambda _: steps(1, 2, 3).debounce(0.002), Lossy([1, 2, 3], last=True)),
    "throttle_first": (lambda _: steps(1, 2, 3).throttle_first(0.002), Lossy([1, 2, 3])),
    "throttle_latest": (
        lambda _: steps(1, 2, 3).throttle_latest(0.002),
        Lossy([1, 2, 3], last=True),
    ),
    "sample": (lambda _: steps(1, 2, 3).sample(0.001), Lossy([1, 2, 3])),
    "sample: the last": (
        lambda _: steps(1, 2, 3).sample(0.001, emit_last=True),
        Lossy([1, 2, 3], last=True),
    ),
    "timeout: total": (lambda _: never().timeout(total=1), Interleaved([], fails=TimedOut)),
    "on_backpressure_error": (lambda _: steps(1).on_backpressure_error(), Interleaved([1])),
    "on_backpressure_drop": (lambda _: steps(1, 2, 3).on_backpressure_drop(), Lossy([1, 2, 3])),
    "on_backpressure_latest": (
        lambda _: steps(1, 2, 3).on_backpressure_latest(),
        Lossy([1, 2, 3], last=True),
    ),
    "do_on_request": (lambda _: steps(1, 2, 3).do_on_request(abs), Interleaved([1, 2, 3])),
    "do_on_discard": (
        lambda _: steps(1, 2, 3).boundary(2).buffer(2).do_on_discard(id),
        Interleaved([[1, 2], [3]]),
    ),
    "from_aiter": (lambda _: from_aiter(lambda: async_steps(1, 2, 3)), Interleaved([1, 2, 3])),
    "from_aiter: in a task group": (
        lambda _: from_aiter(lambda: in_a_task_group(1, 2, 3)),
        Interleaved([1, 2, 3]),
    ),
    "from_aiter: in an anyio task group": (
        lambda _: from_aiter(lambda: in_an_anyio_task_group(1, 2, 3)),
        Interleaved([1, 2, 3]),
    ),
    "from_aiter: its cleanup fails": (
        lambda _: from_aiter(lambda: failing_cleanup(1, 2, 3)),
        Interleaved([1, 2, 3], fails=SourceError),
    ),
    "boundary: after a task group": (
        lambda _: from_aiter(lambda: in_a_task_group(1, 2, 3)).boundary(2),
        Interleaved([1, 2, 3]),
    ),
    "concat: a cleanup fails": (
        lambda _: concat(steps(1), from_aiter(lambda: failing_cleanup(2, 3)), steps(4)),
        Interleaved([1, 2, 3], fails=SourceError),
    ),
    "from_awaitable": (lambda _: from_awaitable(lambda: slow(1)), Interleaved([1])),
    "from_lines": (lambda _: from_lines(THREE_LINES), Interleaved(["a", "b", "c"])),
    "from_lines: to be continued": (
        lambda _: from_lines(THREE_LINES, follow=True).take(3),
        Interleaved(["a", "b", "c"]),
    ),
    "from_queue": (lambda _: from_queue(filled_queue(1, 2, "end"), end="end"), Interleaved([1, 2])),
    "from_anyio": (
        lambda schedule: from_anyio(received_later(1, 2)),
        Interleaved([1, 2]),
    ),
    "from_queue: filled later": (
        lambda _: from_queue(filled_later(1, 2, "end"), end="end"),
        Interleaved([1, 2]),
    ),
    "create": (lambda _: create(emit_all, capacity=1), Interleaved([1, 2, 3])),
    "create: by a thread": (emitted_by_thread, Interleaved([1, 2, 3])),
    "using": (lambda _: using(lambda: opened(1, 2), steps_of), Interleaved([1, 2])),
    "from_thread": (lambda _: from_thread([1, 2, 3], chunk=2), Interleaved([1, 2, 3])),
    "interval": (lambda _: interval(1).take(2), Interleaved([0, 1])),
    "timer": (lambda _: timer(1, "a"), Interleaved(["a"])),
}


def steps_of(elements: tuple[Any, ...]) -> Flow[Any]:
    return steps(*elements)
