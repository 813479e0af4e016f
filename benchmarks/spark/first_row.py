"""How long does the first row of a job of 64 partitions take?

The limit computes one partition, reads it in pieces and blocks the loop meanwhile.
"""

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..runner.question import Question
from .tables import CHUNK, by_executor, clear_results, flow, numbers

if TYPE_CHECKING:
    from reactive_aio.spark.rows import RowKind

question = Question("The first row of a Spark job", 4_000_000, unit="ms", prepare=clear_results)

TIMES = 5


async def timed(count: int, first: Callable[[Any], Awaitable[float]]) -> float:
    """Return the milliseconds until *first* has a row, at the time that it returns.

    The shortest of a few: the machine is not the benchmark's alone.
    """
    times = list[float]()
    for _ in range(TIMES):
        table = numbers(count)
        began = perf_counter()
        times.append(1000 * (await first(table) - began))
    return min(times)


@question.handwritten("`df.toLocalIterator()`, on the loop")
async def to_local_iterator(count: int) -> float:
    async def first(table: Any) -> float:
        rows = iter(table.toLocalIterator())
        assert next(rows)
        return perf_counter()

    return await timed(count, first)


@question.peer("`df.toLocalIterator()`, in an executor, 1024 per hop")
async def in_executor(count: int) -> float:
    async def first(table: Any) -> float:
        chunks = by_executor(table)
        assert await anext(chunks)
        return perf_counter()

    return await timed(count, first)


@question.other("`df.toArrow()`")
async def to_arrow(count: int) -> float:
    async def first(table: Any) -> float:
        assert table.toArrow()[0][0].is_valid
        return perf_counter()

    return await timed(count, first)


async def by_flow(count: int, kind: "RowKind") -> float:
    async def first(table: Any) -> float:
        async with flow(table, kind).stream(prefetch=CHUNK) as rows:
            assert await anext(rows)
            return perf_counter()

    return await timed(count, first)


@question.ours("first row of Spark: tuples", goal=0.5)
async def tuples(count: int) -> float:
    return await by_flow(count, "tuple")


@question.ours("first row of Spark: batches", goal=0.5)
async def batches(count: int) -> float:
    return await by_flow(count, "batch")
