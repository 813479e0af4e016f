"""Crash marks: an element is buried for what processes died of, and not for its deliveries."""

import asyncio
from collections.abc import Sequence

import anyio
import pytest

from reactive_aio import RetryPolicy
from reactive_aio.delivery import Outage
from reactive_aio.delivery.crash_marks import DIED, CrashMarks

pytestmark = pytest.mark.virtual_time


class Store:
    """Marks that outlive the process."""

    def __init__(self) -> None:
        self.marks: dict[str, int] = {}

    async def read(self, ids: Sequence[str]) -> list[int]:
        return [self.marks.get(id, 0) for id in ids]

    async def write(self, id: str, crashes: int) -> None:
        self.marks[id] = crashes

    async def clear(self, ids: Sequence[str]) -> None:
        for id in ids:
            del self.marks[id]


def marks_in(store: Store) -> CrashMarks:
    """Those of a process that has just started."""
    return CrashMarks(store, Outage("the server", RetryPolicy(attempts=1)), patience=30)


async def test_a_process_that_ends_leaves_a_mark_and_one_that_does_the_work_does_not() -> None:
    store = Store()
    for _ in range(2):  # of each of which nothing more is heard
        marks = marks_in(store)
        [(id, crashes)] = await marks.crashes_of(["7"])
        await marks.begin(id, crashes)
    marks = marks_in(store)
    assert await marks.crashes_of(["7", "8"]) == [("8", 0), ("7", 2)], "others pass before"
    await marks.begin("7", 2)
    assert store.marks == {"7": 3}
    marks.working["7"] = "in work"
    await marks.over(["7", "8"])
    assert (store.marks, marks.working) == ({}, {})


async def test_an_orderly_end_clears_what_is_in_work() -> None:
    store = Store()
    marks = marks_in(store)
    await marks.begin("7", 0)
    await marks.worked()
    assert store.marks == {}


async def test_a_suspect_waits_until_nothing_else_is_in_work_but_not_for_ever() -> None:
    marks = marks_in(Store())
    assert await marks.all_done()
    marks.working["1"] = marks.working["2"] = "in work"

    async def work() -> None:
        await asyncio.sleep(5)
        await marks.over(["1"])
        await asyncio.sleep(5)
        await marks.over(["2"])

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        assert await marks.all_done()
        assert asyncio.get_running_loop().time() == 10
    marks.working["3"] = "in work"
    assert not await marks.all_done(), "then it is not alone"
    assert asyncio.get_running_loop().time() == 40


async def test_what_is_buried_has_no_mark_after_it_is_acknowledged() -> None:
    store, buried = Store(), list[str]()
    store.marks["7"] = 3
    marks = marks_in(store)

    async def keep(element: str, error: Exception) -> None:
        buried.append(f"{element}: {error}")

    await marks.bury("an order", "7", 3, keep)
    assert buried == [f"an order: {DIED.format(3)}"]
    assert store.marks == {"7": 3}, "until the server knows that it is done"
    await marks.over(["7"])
    assert store.marks == {}
