"""How late are other tasks while rows are read from Spark? A heartbeat every 2 ms measures it.

The figure is the lag that 99 of 100 beats do not exceed. The time in which the thread waits for a
processor is subtracted where the system reports it: only the program's own effect is measured.
"""

import asyncio
import gc
import os
from collections.abc import Awaitable
from time import perf_counter
from typing import Any

from ..runner.question import Question
from .tables import CHUNK, by_executor, flow, numbers

question = Question("Lag of the loop while rows stream (p99)", 4_000_000, unit="ms")

BEAT = 0.002


class Clock:
    """Elapsed seconds, less those in which this thread waited for a processor (on Linux)."""

    def __init__(self) -> None:
        try:
            self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self._file = -1

    def __call__(self) -> float:
        waited = 0 if self._file < 0 else int(os.pread(self._file, 99, 0).split()[1])
        return perf_counter() - waited / 1e9


async def lag(work: Awaitable[int], count: int) -> float:
    late, clock = list[float](), Clock()
    gc.freeze()  # as in a service: otherwise the collector traverses all of PySpark at times

    async def beat() -> None:
        while True:
            began = clock()
            await asyncio.sleep(BEAT)
            late.append(clock() - began - BEAT)

    heart = asyncio.create_task(beat())
    try:
        assert await work == count
    finally:
        heart.cancel()
    late.sort()
    return 1000 * late[int(len(late) * 0.99)]


@question.handwritten("`df.toLocalIterator()`, in an executor, 1024 per hop")
async def in_executor(count: int) -> float:
    async def read() -> int:
        return sum([len(chunk) async for chunk in by_executor(numbers(count // 4))])

    return await lag(read(), count // 4)


@question.other("only the heartbeat, while Spark computes")
async def idle(count: int) -> float:
    def compute() -> int:
        return int(numbers(4 * count).selectExpr("max(text)", f"{count}L as n").first()[1])

    return await lag(asyncio.to_thread(compute), count)


def case(kind: Any, goal: float) -> Any:
    async def run(count: int) -> float:
        return await lag(flow(numbers(count), kind).boundary(CHUNK).count(), count)

    async def unbounded(count: int) -> float:
        return await lag(flow(numbers(count), kind).count(), count)

    question.ours(f"lag beside Spark: {kind}s, requests of 1024", goal=goal)(run)
    question.ours(f"lag beside Spark: {kind}s", goal=goal)(unbounded)


case("tuple", 0.25)
case("row", 0.25)
