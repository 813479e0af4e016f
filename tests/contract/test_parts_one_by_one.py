"""Windows and groups that are awaited one after another: what is held is what `bound` reports."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from tests.harness.one_run import in_one_run

pytestmark = pytest.mark.virtual_time

COUNT = 120
Part = Flow[int]
Call = Callable[[Part], Awaitable[object]]


@dataclass
class Meter:
    """A source that gives as many numbers as are requested, and how many of them are held."""

    received: list[int] = field(default_factory=list[int])
    most_held: int = 0

    def numbers(self) -> Iterator[int]:
        for number in range(COUNT):
            yield number
            # The reader of a part may be about to receive the number.
            self.most_held = max(self.most_held, number - len(self.received))

    def of(self, part: Part) -> Part:
        return part.do_on_next(self.received.append)


Split = Callable[[Flow[int]], Flow[Any]]

SPLITS: dict[str, Split] = {
    "window": lambda flow: flow.window(4),
    "window of one": lambda flow: flow.window(1),
    "window_timeout": lambda flow: flow.window_timeout(4, 60),
    "window_timeout, short": lambda flow: flow.window_timeout(4, 0.5),
    "group_by, evict": lambda flow: flow.group_by(
        lambda n: n // 5, max_groups=2, prefetch=5, on_full="evict"
    ),
    "group_by, evict, one group": lambda flow: flow.group_by(
        lambda n: n // 5, max_groups=1, prefetch=5, on_full="evict"
    ),
    "group_by, wait": lambda flow: flow.group_by(
        lambda n: n // 5, max_groups=2, prefetch=5, on_full="wait", idle=0.1
    ),
}

SOURCES: dict[str, Callable[[Meter], Flow[int]]] = {
    "pulled": lambda meter: r.from_iterable(meter.numbers()),
    "slow": lambda meter: r.from_iterable(meter.numbers()).map_async(
        lambda n: asyncio.sleep(0.01, n)
    ),
}


def reads_first(meter: Meter) -> Call:
    async def call(part: Part) -> int:
        count = await meter.of(part).count()
        await asyncio.sleep(1)
        return count

    return call


def reads_last(meter: Meter) -> Call:
    async def call(part: Part) -> int:
        await asyncio.sleep(1)
        return await meter.of(part).count()

    return call


def reads_slowly(meter: Meter) -> Call:
    async def call(part: Part) -> int:
        count = 0
        async for _ in meter.of(part):
            await asyncio.sleep(0.2)
            count += 1
        return count

    return call


CALLS: dict[str, Callable[[Meter], Call]] = {
    "reads first": reads_first,
    "reads last": reads_last,
    "reads slowly": reads_slowly,
}


async def running(flow: Flow[Any], call: Call) -> None:
    async with flow.running(call) as run:
        await run.wait()


async def subscribed(flow: Flow[Any], call: Call) -> None:
    """By a subscriber that requests everything, and whose on_next awaits."""
    ended = asyncio.get_running_loop().create_future()

    class Subscriber:
        def on_subscribe(self, subscription: r.Subscription) -> None:
            subscription.request(10**6)

        async def on_next(self, part: Part) -> None:
            await call(part)

        def on_error(self, error: BaseException) -> None:
            ended.set_exception(error)

        def on_complete(self) -> None:
            ended.set_result(None)

    flow.subscribe(Subscriber())
    await ended


READERS: dict[str, Callable[[Flow[Any], Call], Awaitable[object]]] = {
    "for_each": lambda flow, call: flow.for_each(call),
    "running": running,
    "map_async": lambda flow, call: flow.map_async(call).run(),
    "map_async, boundary": lambda flow, call: flow.map_async(call).boundary(256).run(),
    "subscriber": subscribed,
}


@in_one_run
@pytest.mark.parametrize("make_call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
async def test_no_more_is_held_than_is_reported(
    split: Split,
    source: Callable[[Meter], Flow[int]],
    read: Callable[[Flow[Any], Call], Awaitable[object]],
    make_call: Callable[[Meter], Call],
) -> None:
    meter = Meter()
    bound = split(r.from_iterable(meter.numbers())).bound().total
    assert bound is not None
    await read(split(source(meter)), make_call(meter))
    assert meter.received == [*range(COUNT)]
    assert meter.most_held <= bound


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
async def test_parts_that_are_never_read_are_passed_over(split: Split) -> None:
    meter = Meter()

    async def leave(part: Part) -> None:
        await asyncio.sleep(1)

    assert await split(r.from_iterable(meter.numbers())).for_each(leave) >= COUNT // 5


KEPT = {name: split for name, split in SPLITS.items() if name != "group_by, wait"}


@pytest.mark.parametrize("split", KEPT.values(), ids=KEPT)
async def test_parts_that_are_kept_can_be_read_later(split: Split) -> None:
    meter, kept = Meter(), list[Part]()

    async def keep(part: Part) -> None:
        await asyncio.sleep(0)
        kept.append(part)

    numbers = split(r.from_iterable(meter.numbers()))
    await asyncio.gather(numbers.for_each(keep), r.timer(9).run())
    for part in kept:
        await meter.of(part).run()
    assert meter.received == [*range(COUNT)]


async def test_calls_that_await_several_windows_at_a_time_receive_them() -> None:
    meter = Meter()

    async def read_both(windows: list[Part]) -> None:
        await asyncio.gather(*(meter.of(window).run() for window in reversed(windows)))

    windows = r.from_iterable(meter.numbers()).window(3).buffer(2)
    await windows.for_each(read_both)
    assert sorted(meter.received) == [*range(COUNT)]


async def test_the_next_window_fills_while_the_last_one_is_worked_on() -> None:
    """But not before that has been read, which holds its elements until then."""
    meter = Meter()
    read: list[int] = []

    async def work(window: Part) -> None:
        await asyncio.sleep(1)
        read.append(meter.most_held)
        await meter.of(window).run()
        await asyncio.sleep(1)
        read.append(len(meter.received) + meter.most_held)

    await r.from_iterable(meter.numbers()).window(4).take(2).for_each(work)
    assert read[0] <= 4
    assert read[1] >= 4
