"""What is still waited for, in one line: the tasks of a loop, its thread, and other threads."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import reactive_aio as r
from reactive_aio._core.observation.waiting import what_waits
from reactive_aio.testing import SubscriberProbe


async def hangs(_: object = None) -> int:
    await asyncio.Event().wait()
    return 1


async def hanging_tasks(count: int) -> "list[asyncio.Task[int]]":
    """So many tasks of a program, which have begun."""
    tasks = [asyncio.create_task(hangs(), name=f"task {number}") for number in range(count)]
    await asyncio.sleep(0)
    return tasks


def test_the_task_that_waits_for_the_others_is_named_if_there_are_none() -> None:
    with asyncio.Runner() as runner:
        first, second = runner.run(hanging_tasks(2))
        assert what_waits(runner.get_loop(), first).startswith("task 1: hangs (")
        second.cancel()
        runner.run(asyncio.sleep(0))
        assert what_waits(runner.get_loop(), first).startswith("task 0: hangs (")


def test_a_task_of_a_flow_without_a_name_comes_before_those_of_the_program() -> None:
    async def begin() -> None:
        await hanging_tasks(50)
        r.just(1).map_async(hangs).subscribe(probe)
        await asyncio.sleep(0)

    probe = SubscriberProbe[int](1)
    with asyncio.Runner() as runner:
        runner.run(begin())
        line = what_waits(runner.get_loop())
        probe.cancel()
    assert line.startswith("just(1) → map_async(hangs): hangs (")
    assert line.endswith("; and 48 more")


def test_what_blocks_the_loop_is_named_in_another_thread_alone() -> None:
    with asyncio.Runner() as runner, ThreadPoolExecutor(1) as pool:
        loop = runner.get_loop()
        line = pool.submit(what_waits, loop).result()
        assert "blocked" not in what_waits(loop)
    here = "test_what_blocks_the_loop_is_named_in_another_thread_alone"
    assert line.startswith(f"the event loop is blocked by {here} ({__file__}:")


def test_a_thread_is_named_with_the_line_that_it_runs_if_that_is_of_the_user() -> None:
    entered, may_return = Event(), Event()

    def waits() -> None:
        entered.set()
        may_return.wait()

    with asyncio.Runner() as runner, ThreadPoolExecutor(2, "pool") as pool:
        try:
            pool.submit(waits)
            entered.wait()
            pool.submit(str).result()  # in a second thread, which rests now
            line = what_waits(runner.get_loop())
        finally:
            may_return.set()
    assert ".<locals>.waits (" in line
    assert line.count(", in the thread pool_") == 1
    assert "MainThread" not in line
