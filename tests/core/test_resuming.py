"""Tasks that continue within the callback that has what they await."""

import asyncio
from contextvars import ContextVar, copy_context

import pytest

from reactive_aio._core.loop import resume_now

name: ContextVar[str] = ContextVar("name", default="")


class Waiting:
    """Tasks, each of which awaits a future of its own."""

    def __init__(self, count: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.futures = {key: self.loop.create_future() for key in range(count)}
        self.log: list[object] = []
        self.tasks = [
            self.loop.create_task(self.wait(key, each)) for key, each in self.futures.items()
        ]

    async def wait(self, key: int, future: "asyncio.Future[str]") -> None:
        name.set(f"task {key}")
        value = await future
        self.log.append((key, value, name.get()))

    def resume(self, *keys: int) -> None:
        resume_now(self.futures, [(key, "value") for key in keys])
        self.log.append("resumed")


async def waiting(count: int) -> Waiting:
    made = Waiting(count)
    await asyncio.sleep(0)
    return made


async def test_tasks_continue_at_once_in_their_context() -> None:
    tasks = await waiting(3)
    asyncio.get_running_loop().call_soon(tasks.resume, 0, 2, 7)
    await asyncio.sleep(0)
    assert tasks.log == [(0, "value", "task 0"), (2, "value", "task 2"), "resumed"]
    assert tasks.futures.keys() == {1}
    assert name.get() == ""
    tasks.resume(1)
    await asyncio.gather(*tasks.tasks)


async def test_within_a_task_others_continue_later() -> None:
    tasks = await waiting(1)
    tasks.resume(0)
    assert tasks.log == ["resumed"]
    await asyncio.gather(*tasks.tasks)
    assert tasks.log == ["resumed", (0, "value", "task 0")]


def test_in_debug_mode_each_task_is_measured_by_itself() -> None:
    async def main() -> list[object]:
        tasks = await waiting(1)
        tasks.loop.call_soon(tasks.resume, 0)
        await asyncio.gather(*tasks.tasks)
        return tasks.log

    assert asyncio.run(main(), debug=True) == ["resumed", (0, "value", "task 0")]


async def test_a_task_that_was_cancelled_stays_cancelled() -> None:
    tasks = await waiting(2)

    def cancel_and_resume() -> None:
        tasks.tasks[0].cancel()
        tasks.resume(0, 1)

    tasks.loop.call_soon(cancel_and_resume)
    await asyncio.sleep(0)
    assert tasks.log == [(1, "value", "task 1"), "resumed"]
    with pytest.raises(asyncio.CancelledError):
        await tasks.tasks[0]


async def test_a_future_that_nothing_or_several_tasks_await_is_completed() -> None:
    tasks = await waiting(1)
    other = asyncio.ensure_future(tasks.wait(9, tasks.futures[0]))
    alone: asyncio.Future[str] = tasks.loop.create_future()
    tasks.futures[5] = alone
    await asyncio.sleep(0)
    tasks.loop.call_soon(tasks.resume, 0, 5)
    await asyncio.gather(other, *tasks.tasks)
    assert alone.result() == "value"
    assert tasks.log[0] == "resumed"
    assert len(tasks.log) == 3


async def test_a_task_whose_context_is_entered_continues_later() -> None:
    loop = asyncio.get_running_loop()
    context = copy_context()
    future: asyncio.Future[int] = loop.create_future()
    log: list[object] = []

    async def wait() -> None:
        log.append(await future)

    task = asyncio.Task(wait(), loop=loop, context=context)
    await asyncio.sleep(0)

    def resume() -> None:
        resume_now({1: future}, [(1, 2)])
        log.append("resumed")

    loop.call_soon(resume, context=context)
    await task
    assert log == ["resumed", 2]


def test_an_exit_of_a_task_stops_the_loop_after_all_have_continued() -> None:
    log: list[object] = []

    async def leave(future: "asyncio.Future[str]") -> None:
        await future
        raise SystemExit(3)

    async def main() -> None:
        tasks = await waiting(2)
        last: asyncio.Future[str] = tasks.loop.create_future()
        tasks.futures = {0: tasks.loop.create_future(), 1: last}
        first = asyncio.ensure_future(leave(tasks.futures[0]))
        second = asyncio.ensure_future(tasks.wait(1, last))
        await asyncio.sleep(0)
        tasks.log = log
        tasks.loop.call_soon(tasks.resume, 0, 1)
        await asyncio.gather(first, second)

    with pytest.raises(SystemExit) as caught:
        asyncio.run(main())
    assert caught.value.code == 3
    assert log == [(1, "value", "task 1"), "resumed"]
