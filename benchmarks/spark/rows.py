"""What does a row of a Spark job cost, from the partition to the consumer, in elapsed time?

The rows are (long, double, string) in 64 partitions, each time of a new DataFrame, since a service
plans each query as well. The limit, ``toArrow``, holds all of them in memory, and creates no Python
object for a row.

Spark uses both cores of this machine, so Python's time for a row is added to Spark's. In
`rows_beside` Spark uses one core, and Python reads on the other.
"""

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from ..runner.question import Question
from .tables import CHUNK, by_executor, clear_results, flow, numbers, session, size


def rows_of(text: str, make: Callable[[], Any]) -> Question:
    """Return the question, for the session that *make* returns."""
    question = Question(text, 4_000_000, clock=perf_counter, prepare=partial(clear_results, make))

    @question.handwritten("`df.toArrow()`")
    async def to_arrow(count: int) -> int:
        return int(numbers(count, make).toArrow().num_rows)

    @question.other("`df.toArrow()`, then tuples")
    async def to_arrow_tuples(count: int) -> int:
        arrow = numbers(count, make).toArrow()
        return sum(1 for _ in zip(*(column.to_pylist() for column in arrow.columns), strict=True))

    @question.other("`df.toPandas()`")
    async def to_pandas(count: int) -> int:
        return len(numbers(count, make).toPandas())

    @question.peer("`df.toLocalIterator()`, on the loop")
    async def to_local_iterator(count: int) -> int:
        return sum(1 for _ in numbers(count, make).toLocalIterator())

    @question.peer("`df.toLocalIterator()`, in an executor, 1024 per hop")
    async def in_executor(count: int) -> int:
        return sum([len(chunk) async for chunk in by_executor(numbers(count, make))])

    @question.ours(f"{text}: mode='rows', tuples")
    async def by_rows(count: int) -> int:
        return await flow(numbers(count, make), "tuple", "rows").count()

    @question.ours(f"{text}: dicts", goal=4.0)
    async def dicts(count: int) -> int:
        return await flow(numbers(count, make), "dict").count()

    @question.ours(f"{text}: rows", goal=3.0)
    async def rows(count: int) -> int:
        return await flow(numbers(count, make), "row").count()

    @question.ours(f"{text}: tuples", goal=1.54)
    async def tuples(count: int) -> int:
        return await flow(numbers(count, make), "tuple").count()

    @question.ours(f"{text}: tuples, requests of 1024")
    async def tuples_bounded(count: int) -> int:
        return await flow(numbers(count, make), "tuple").boundary(CHUNK).count()

    @question.ours(f"{text}: batches", goal=1.18)
    async def batches(count: int) -> int:
        read: Any = flow(numbers(count, make), "batch").map(size)
        return int(await read.sum())

    return question


question = rows_of("rows of Spark", session)
