"""Which waits of a coroutine belong to a cleanup."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from reactive_aio._core.unwinding import is_cleaning_up
from tests.harness.one_run import in_one_run


async def wait() -> None:
    await asyncio.Event().wait()


def work() -> None:
    pass


def fail() -> None:
    raise OSError


class Leaves:
    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *_: object) -> None:
        await wait()


class Enters:
    async def __aenter__(self) -> None:
        await wait()

    async def __aexit__(self, *_: object) -> None:
        pass


@asynccontextmanager
async def manager() -> AsyncGenerator[None]:
    yield
    await wait()


# -- cleanups --------------------------------------------------------------------------------------
async def finally_at_the_end() -> None:
    try:
        work()
    finally:
        await wait()


async def finally_after_an_error() -> None:
    try:
        fail()
    finally:
        await wait()


async def handler_in_a_finally() -> None:
    try:
        work()
    finally:
        try:
            fail()
        except OSError:
            await wait()


async def handler_in_a_finally_after_an_error() -> None:
    try:
        fail()
    finally:
        try:
            fail()
        except OSError:
            await wait()


async def handler_in_a_finally_that_goes_on() -> None:
    try:
        fail()
    finally:
        try:
            fail()
        except OSError:
            await wait()
        work()


async def time_limit_in_a_finally() -> None:
    try:
        work()
    finally:
        async with asyncio.timeout(5):
            await wait()


async def group_in_a_finally() -> None:
    try:
        work()
    finally:
        async with asyncio.TaskGroup() as group:
            group.create_task(wait())


async def gather_in_a_finally() -> None:
    try:
        fail()
    finally:
        await asyncio.gather(wait(), wait())


async def async_for_in_a_finally() -> None:
    async def source() -> AsyncGenerator[int]:
        await wait()
        yield 1

    try:
        work()
    finally:
        async for _ in source():
            pass


async def handler_that_raises() -> None:
    try:
        fail()
    except BaseException as error:
        await wait()
        raise RuntimeError from error


async def branch_of_a_handler_that_raises() -> None:
    try:
        fail()
    except OSError as error:
        if not error.args:
            await wait()
            raise
        await asyncio.sleep(1)


async def exit_of_async_with() -> None:
    async with Leaves():
        work()


async def exit_of_async_with_after_an_error() -> None:
    async with Leaves():
        fail()


async def exit_of_a_generator() -> None:
    async with manager():
        work()


async def source_that_ends() -> None:
    async def source() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            await wait()

    async for _ in source():
        work()


async def source_that_is_closed() -> None:
    async def source() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            await wait()

    generator = source()
    await anext(generator)
    await generator.aclose()


# -- work ------------------------------------------------------------------------------------------
async def body_of_a_try() -> None:
    try:
        await wait()
    finally:
        work()


async def after_a_finally() -> None:
    try:
        await asyncio.sleep(0)
    finally:
        await asyncio.sleep(0)
    await wait()


async def handler_that_goes_on() -> None:
    while True:
        try:
            fail()
        except OSError:
            await wait()


async def handler_that_goes_on_elsewhere() -> None:
    try:
        fail()
    except OSError:
        try:
            await wait()
        finally:
            work()


async def body_of_an_else() -> None:
    try:
        work()
    except OSError:
        raise
    else:
        await wait()


async def handler_of_a_group() -> None:
    try:
        raise ExceptionGroup("several", [OSError()])
    except* OSError:
        await wait()


async def entering() -> None:
    async with Enters():
        work()


async def group_that_waits_for_its_tasks() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(wait())


async def source_that_waits() -> None:
    async def source() -> AsyncGenerator[int]:
        try:
            yield 1
            await wait()
        finally:
            work()

    async for _ in source():
        work()


CLEANUPS: list[Callable[[], Awaitable[None]]] = [
    finally_at_the_end,
    finally_after_an_error,
    handler_in_a_finally,
    handler_in_a_finally_after_an_error,
    handler_in_a_finally_that_goes_on,
    time_limit_in_a_finally,
    group_in_a_finally,
    gather_in_a_finally,
    async_for_in_a_finally,
    handler_that_raises,
    branch_of_a_handler_that_raises,
    exit_of_async_with,
    exit_of_async_with_after_an_error,
    exit_of_a_generator,
    source_that_ends,
    source_that_is_closed,
]
WORK: list[Callable[[], Awaitable[None]]] = [
    body_of_a_try,
    after_a_finally,
    handler_that_goes_on,
    handler_that_goes_on_elsewhere,
    body_of_an_else,
    handler_of_a_group,
    entering,
    group_that_waits_for_its_tasks,
    source_that_waits,
]


@in_one_run
@pytest.mark.parametrize("function", [*CLEANUPS, *WORK], ids=lambda function: function.__name__)
async def test_where_a_coroutine_waits(function: Callable[[], Awaitable[None]]) -> None:
    task: asyncio.Task[None] = asyncio.ensure_future(function())
    for _ in range(6):
        await asyncio.sleep(0)
    assert not task.done()
    assert is_cleaning_up(task.get_coro()) is (function in CLEANUPS)
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()


async def test_what_is_over_does_not_clean_up() -> None:
    task = asyncio.ensure_future(finally_at_the_end())
    await asyncio.sleep(0)
    assert is_cleaning_up(task.get_coro())
    task.cancel()
    await asyncio.wait([task])
    assert not is_cleaning_up(task.get_coro())
