"""In every order of cancellation, failure and end, each open resource is closed exactly once."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing, asynccontextmanager, closing, contextmanager, suppress
from typing import Any

import anyio
import pytest

from reactive_aio import Emitter, Flow, create, from_aiter, from_thread, merge, using
from reactive_aio.testing.schedules import Schedule
from tests.schedules.checks import UNLIMITED, AsyncCheckedSubscriber, CheckedSubscriber
from tests.schedules.explored import explored
from tests.schedules.sources import SourceError, async_steps, steps

Log = list[str]
Make = Callable[[Log], Flow[Any]]


class Resource:
    """Records that it was opened, and that it was closed."""

    def __init__(self, log: Log) -> None:
        self.log = log
        log.append("opened")

    def close(self) -> None:
        self.log.append("closed")


def plain_resource(log: Log) -> Flow[Any]:
    @contextmanager
    def manager() -> Generator[int]:
        with closing(Resource(log)):
            yield 1

    return using(manager, lambda _: steps(1, 2))


def awaited_resource(log: Log) -> Flow[Any]:
    @asynccontextmanager
    async def manager() -> AsyncGenerator[int]:
        await asyncio.sleep(0)
        with closing(Resource(log)):
            try:
                yield 1
            finally:
                await asyncio.sleep(0)

    return using(manager, lambda _: async_steps(1, 2))


def generator(log: Log) -> Flow[Any]:
    async def elements() -> AsyncIterator[int]:
        with closing(Resource(log)):
            for n in range(3):
                await asyncio.sleep(0)
                yield n

    return from_aiter(elements)


def task_group(log: Log) -> Flow[Any]:
    async def elements() -> AsyncIterator[int]:
        async with asyncio.TaskGroup() as group:
            child = group.create_task(asyncio.sleep(1))
            with closing(Resource(log)):
                for n in range(3):
                    await asyncio.sleep(0)
                    yield n
            child.cancel()

    return from_aiter(elements)


def anyio_task_group(log: Log) -> Flow[Any]:
    async def elements() -> AsyncIterator[int]:
        async with anyio.create_task_group() as group:
            group.start_soon(asyncio.sleep, 1)
            with closing(Resource(log)):
                for n in range(3):
                    await asyncio.sleep(0)
                    yield n
            group.cancel_scope.cancel()

    return from_aiter(elements)


def generator_whose_cleanup_fails(log: Log) -> Flow[Any]:
    async def elements() -> AsyncIterator[int]:
        try:
            with closing(Resource(log)):
                for n in range(3):
                    await asyncio.sleep(0)
                    yield n
        finally:
            raise SourceError

    return from_aiter(elements)


def thread(log: Log) -> Flow[Any]:
    def elements() -> Iterator[int]:
        with closing(Resource(log)):
            yield from range(3)

    return from_thread(elements)


def emitter(log: Log) -> Flow[Any]:
    async def emit(to: Emitter[int]) -> None:
        with closing(Resource(log)):
            for n in range(3):
                await to.emit(n)

    return create(emit, capacity=1)


def workers(log: Log) -> Flow[Any]:
    async def work(n: int) -> int:
        with closing(Resource(log)):
            await asyncio.sleep(0)
            return n

    return steps(1, 2, 3).map_async(work, concurrency=2)


def merged_with_one_that_fails(log: Log) -> Flow[Any]:
    return merge(generator(log), steps(1, error=SourceError()))


MAKERS: tuple[Make, ...] = (
    plain_resource,
    awaited_resource,
    generator,
    task_group,
    anyio_task_group,
    generator_whose_cleanup_fails,
    thread,
    emitter,
    workers,
    merged_with_one_that_fails,
)
EACH = pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)


def check(schedule: Schedule, log: Log) -> None:
    assert log.count("opened") == log.count("closed"), log
    schedule.errors[:] = [
        each for each in schedule.errors if not isinstance(each.get("exception"), SourceError)
    ]


@EACH
@explored(max_orders=80, random_orders=30)
async def test_after_the_end_or_a_cancellation_by_a_thread(schedule: Schedule, make: Make) -> None:
    log: Log = []
    subscriber = CheckedSubscriber(UNLIMITED)
    make(log).subscribe(subscriber)
    schedule.thread(subscriber.cancel, "cancel()")
    await schedule.wait_until_idle()
    check(schedule, log)
    assert subscriber.violations == []


@EACH
@explored(max_orders=80, random_orders=30)
async def test_after_a_cancellation_from_within_while_a_thread_requests(
    schedule: Schedule, make: Make
) -> None:
    class CancelsAtOnce(AsyncCheckedSubscriber):
        async def on_next(self, element: Any, /) -> None:  # type: ignore[override]
            await super().on_next(element)
            self.cancel()

    log: Log = []
    subscriber = CancelsAtOnce()
    make(log).subscribe(subscriber)
    schedule.thread(lambda: subscriber.request(UNLIMITED), "request(UNLIMITED)")
    await schedule.wait_until_idle()
    check(schedule, log)
    assert subscriber.violations == []
    assert len(subscriber.elements) <= 1


@EACH
@explored(max_orders=80, random_orders=30)
async def test_after_leaving_the_block_around_async_for(schedule: Schedule, make: Make) -> None:
    log: Log = []
    with suppress(SourceError):  # of the cleanup
        async with aclosing(make(log).stream()) as elements:
            async for _ in elements:
                break
    check(schedule, log)  # `aclose` has waited


@EACH
@explored(max_orders=80, random_orders=30)
async def test_after_cancelling_the_iterating_task(schedule: Schedule, make: Make) -> None:
    log: Log = []

    async def iterate() -> None:
        async for _ in make(log):
            await asyncio.sleep(0)

    task = asyncio.ensure_future(iterate())
    loop = asyncio.get_running_loop()
    schedule.thread(lambda: loop.call_soon_threadsafe(task.cancel), "task.cancel()")
    await asyncio.wait([task])
    await schedule.wait_until_idle()
    if not task.cancelled() and task.exception() is not None:
        assert isinstance(task.exception(), SourceError)
    check(schedule, log)
