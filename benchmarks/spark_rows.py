"""What does a row of a Spark job cost, from the partition to the consumer? By the wall clock.

The rows are (long, double, string) in 64 partitions, on two cores of this machine. The limit,
``toArrow``, holds all of them in memory, and no row of it exists as a Python object.
"""

import asyncio
from functools import cache
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from reactive_aio.spark import from_dataframe, local_session

from .runner import Question

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reactive_aio import Flow
    from reactive_aio.spark.mode import Mode
    from reactive_aio.spark.rows import Kind

question = Question("Rows of a Spark job", 2_000_000, clock=perf_counter)

PARTITIONS = 64
CHUNK = 1024
OPTIONS = {"spark.driver.memory": "4g"}


@cache
def table(count: int) -> Any:
    spark = local_session("benchmark", cores=2, config=OPTIONS)
    columns = ("id", "id * 0.5D as half", "concat('s-', cast(id as string)) as text")
    return spark.range(0, count, 1, PARTITIONS).selectExpr(*columns)


@question.case("limit: df.toArrow()")
async def to_arrow(count: int) -> int:
    return int(table(count).toArrow().num_rows)


@question.case("df.toArrow(), then tuples")
async def to_arrow_tuples(count: int) -> int:
    arrow = table(count).toArrow()
    return sum(1 for _ in zip(*(column.to_pylist() for column in arrow.columns), strict=True))


@question.case("df.toPandas()")
async def to_pandas(count: int) -> int:
    return len(table(count).toPandas())


@question.case("df.collect()")
async def collect(count: int) -> int:
    return len(table(count).collect())


@question.case("df.toLocalIterator(), on the loop")
async def to_local_iterator(count: int) -> int:
    return sum(1 for _ in table(count).toLocalIterator())


@question.case("df.toLocalIterator(), in an executor, 1024 a hop")
async def in_executor(count: int) -> int:
    rows = cast("Iterator[Any]", table(count).toLocalIterator())
    loop = asyncio.get_running_loop()
    found = 0
    while chunk := await loop.run_in_executor(None, lambda: list(islice(rows, CHUNK))):
        found += len(chunk)
    return found


@question.case("flow, mode='rows', tuples")
async def by_rows(count: int) -> int:
    return await flow(count, "tuple", "rows").count()


@question.case("flow, dicts", goal=4.0)
async def dicts(count: int) -> int:
    return await flow(count, "dict").count()


@question.case("flow, rows", goal=3.0)
async def rows(count: int) -> int:
    return await flow(count, "row").count()


@question.case("flow, tuples", goal=1.54)
async def tuples(count: int) -> int:
    return await flow(count, "tuple").count()


@question.case("flow, tuples, asked for 1024 at a time")
async def tuples_bounded(count: int) -> int:
    return await flow(count, "tuple").boundary(CHUNK).count()


@question.case("flow, batches", goal=1.18)
async def batches(count: int) -> int:
    return await flow(count, "batch").map(size).sum()


def size(batch: Any) -> int:
    return int(batch.num_rows)


def flow(count: int, kind: "Kind", mode: "Mode" = "arrow") -> "Flow[Any]":
    return from_dataframe(table(count), rows=kind, mode=mode)
