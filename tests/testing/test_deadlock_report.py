"""The message of a deadlock: what each task waits for, which task holds it, and the cycle."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from reactive_aio.testing.schedules import ScheduleFailure, explore
from reactive_aio.testing.virtual_time import Deadlock, VirtualTimeLoop

Main = Callable[[], Coroutine[Any, Any, object]]


def waits_in(main: Main) -> dict[str, str]:
    """What each task waits for, by its name; the cycle as ``"cycle"``."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner, pytest.raises(Deadlock) as caught:
        runner.run(named(main))
    return parse(str(caught.value))


def parse(message: str) -> dict[str, str]:
    waits: dict[str, str] = {}
    task = ""
    for line in message.splitlines():
        if line.startswith("cycle: "):
            waits["cycle"] = line.removeprefix("cycle: ")
        elif line.startswith("    waits for "):
            waits[task] = line.removeprefix("    waits for ")
        elif line.startswith("  "):
            task = line.split(":")[0].strip()
    return waits


async def named(main: Main) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.set_name("main")
    await main()


def start(name: str, work: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
    return asyncio.create_task(work, name=name)


async def take(mine: Any, theirs: Any) -> None:
    """Inside of *mine*, enter *theirs*."""
    async with mine:
        await asyncio.sleep(1)
        async with theirs:
            pass


async def two_locks() -> None:
    left, right = asyncio.Lock(), asyncio.Lock()
    async with asyncio.TaskGroup() as group:
        group.create_task(take(left, right), name="first")
        group.create_task(take(right, left), name="second")


def test_two_locks_taken_in_opposite_order() -> None:
    assert waits_in(two_locks) == {
        "cycle": "first -> second -> first",
        "first": "the Lock 'theirs', held by second",
        "second": "the Lock 'theirs', held by first",
        "main": "the tasks first, second",
    }


def test_a_semaphore_and_the_lock_of_a_condition() -> None:
    async def main() -> None:
        gate, room = asyncio.Semaphore(1), asyncio.Condition()
        await asyncio.wait([start("first", take(gate, room)), start("second", take(room, gate))])

    waits = waits_in(main)
    assert waits["first"] == "the Lock 'theirs._lock', held by second"
    assert waits["second"] == "the Semaphore 'theirs', held by first"
    assert waits["cycle"] == "first -> second -> first"


def test_a_lock_that_was_never_released() -> None:
    async def main() -> None:
        lock = asyncio.Lock()
        await lock.acquire()
        await lock.acquire()

    assert waits_in(main)["main"] == (
        "the Lock 'lock', held outside of 'async with', reachable from no other task"
    )


def test_two_queues_that_are_full() -> None:
    async def fill(mine: asyncio.Queue[int], theirs: asyncio.Queue[int]) -> None:
        await mine.put(1)
        await mine.put(2)
        await theirs.get()

    async def main() -> None:
        there, back = asyncio.Queue[int](1), asyncio.Queue[int](1)
        works = fill(there, back), fill(back, there)
        del there, back
        tasks = [start(f"filler {n}", work) for n, work in enumerate(works, 1)]
        del works
        await asyncio.gather(*tasks)

    waits = waits_in(main)
    assert waits["cycle"] == "filler 1 -> filler 2 -> filler 1"
    assert waits["filler 1"] == "room in the Queue 'mine', full with 1, reachable from filler 2"
    assert waits["main"] == "the tasks filler 1, filler 2"


def test_an_event_whose_setter_waits_for_the_waiter() -> None:
    async def main() -> None:
        go = asyncio.Event()

        async def child() -> None:
            await go.wait()

        await start("child", child())
        go.set()

    waits = waits_in(main)
    assert waits["child"] == "the Event 'go' to be set, reachable from main"
    assert waits["main"] == "the task child"
    assert waits["cycle"] in ("child -> main -> child", "main -> child -> main")


def test_a_future_in_a_slot_through_an_asynchronous_generator() -> None:
    class Holder:
        __slots__ = ("waiter",)

        def __init__(self) -> None:
            self.waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def elements(holder: Holder) -> AsyncIterator[int]:
        yield 1
        await holder.waiter

    async def main() -> None:
        async for _ in elements(Holder()):
            pass

    assert waits_in(main)["main"] == ("the future 'holder.waiter', reachable from no other task")


def test_a_task_inside_a_shield() -> None:
    async def main() -> None:
        await asyncio.shield(start("shielded", asyncio.Queue[int]().get()))

    waits = waits_in(main)
    assert waits["main"] == "the task shielded"
    assert waits["shielded"].startswith("an item in a Queue")


def test_the_explorer_reports_the_same() -> None:
    with pytest.raises(ScheduleFailure) as caught:
        explore(lambda _: two_locks())
    assert parse(str(caught.value.error))["first"] == "the Lock 'theirs', held by second"
