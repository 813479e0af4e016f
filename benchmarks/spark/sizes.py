"""Does the bridge keep its place beside `toArrow` as the result grows: 2 and 10 million rows?

The same rows as in `rows`, whatever the scale is. `toArrow` has its first row with its last one.
Spark uses both cores of this machine, or, as in `rows_beside`, one of them.
"""

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..runner.question import Question
from .tables import CHUNK, clear_results, flow, numbers, session, session_beside, size

if TYPE_CHECKING:
    from reactive_aio.spark.rows import RowKind

TUPLES, BATCHES, FIRST_ROW = 1 / 0.65, 1 / 0.85, 0.5  # × the time of toArrow, at most


def rates(millions: int, where: str = "", make: Callable[[], Any] = session) -> Question:
    """Return the question about the time of all rows, in the session that *make* returns."""
    text = f"{millions},000,000 rows of Spark{where}"
    prepare = partial(clear_results, make)
    count = millions * 1_000_000
    question = Question(text, count, clock=perf_counter, prepare=prepare, is_scaled=False)

    @question.handwritten("`df.toArrow()`")
    async def to_arrow(count: int) -> int:
        return int(numbers(count, make).toArrow().num_rows)

    @question.ours(f"{text}: tuples", goal=TUPLES)
    async def tuples(count: int) -> int:
        return await flow(numbers(count, make), "tuple").count()

    @question.ours(f"{text}: batches", goal=BATCHES)
    async def batches(count: int) -> int:
        read: Any = flow(numbers(count, make), "batch").map(size)
        return int(await read.sum())

    return question


def first_rows(millions: int) -> Question:
    """Return the question about the time of the first row."""
    text = f"first of {millions},000,000 rows of Spark"
    question = Question(
        text, millions * 1_000_000, unit="ms", prepare=clear_results, rounds=5, is_scaled=False
    )

    @question.handwritten("`df.toArrow()`")
    async def to_arrow(count: int) -> float:
        table = numbers(count)
        began = perf_counter()
        assert table.toArrow()[0][0].is_valid
        return 1000 * (perf_counter() - began)

    async def by_flow(count: int, kind: "RowKind") -> float:
        table = numbers(count)
        began = perf_counter()
        async with flow(table, kind).stream(prefetch=CHUNK) as rows:
            assert await anext(rows)
            return 1000 * (perf_counter() - began)

    @question.ours(f"{text}: tuples", goal=FIRST_ROW)
    async def tuples(count: int) -> float:
        return await by_flow(count, "tuple")

    @question.ours(f"{text}: batches", goal=FIRST_ROW)
    async def batches(count: int) -> float:
        return await by_flow(count, "batch")

    return question


two_millions = rates(2)
ten_millions = rates(10)
two_millions_beside = rates(2, " on one core", session_beside)
ten_millions_beside = rates(10, " on one core", session_beside)
first_of_two_millions = first_rows(2)
first_of_ten_millions = first_rows(10)
