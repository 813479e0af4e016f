"""What does a real row cost? The flights of 2013 from New York City: 19 columns of a Parquet file.

Each round reads all 336,776 rows, whatever the scale; times are divided by the scaled number.
"""

from time import perf_counter
from typing import Any

from ..runner.question import Question
from .tables import by_executor, clear_results, flights, flow, size

ROWS = 336_776
question = Question("Flights out of Spark", ROWS, clock=perf_counter, prepare=clear_results)


@question.handwritten("`df.toArrow()`")
async def to_arrow(_: int) -> int:
    return int(flights().toArrow().num_rows)


@question.other("`df.toArrow()`, then tuples")
async def to_arrow_tuples(_: int) -> int:
    arrow = flights().toArrow()
    return sum(1 for _ in zip(*(column.to_pylist() for column in arrow.columns), strict=True))


@question.other("`df.toPandas()`")
async def to_pandas(_: int) -> int:
    return len(flights().toPandas())


@question.peer("`df.toLocalIterator()`, on the loop")
async def to_local_iterator(_: int) -> int:
    return sum(1 for _ in flights().toLocalIterator())


@question.peer("`df.toLocalIterator()`, in an executor, 1024 per hop")
async def in_executor(_: int) -> int:
    return sum([len(chunk) async for chunk in by_executor(flights())])


@question.ours("flights of Spark: rows")
async def rows(_: int) -> int:
    return await flow(flights(), "row").count()


@question.ours("flights of Spark: tuples")
async def tuples(_: int) -> int:
    return await flow(flights(), "tuple").count()


@question.ours("flights of Spark: batches", goal=1.18)
async def batches(_: int) -> int:
    read: Any = flow(flights(), "batch").map(size)
    return int(await read.sum())
