"""What does a row of 3,000 columns cost, where each column has a part in the cost of a batch?

The columns are longs, doubles and strings in turn. The figures are for one row. Two limits read
batches of Arrow, `toArrow` and `mapInArrow`; a third one makes tuples in `mapInArrow`, as one would
write it. `toArrow` with tuples is what 3,000 Python objects a row cost without a flow.

Functions are inside of others, so that they are sent to the workers with their text.
"""

from collections.abc import Iterator
from functools import cache
from time import perf_counter
from typing import Any

from reactive_aio import Flow
from reactive_aio.spark import map_flow

from ..runner.question import Question
from .tables import clear_results, flow, session, size

COLUMNS, PARTITIONS, ROWS = 3000, 4, 2000
GOAL = 1.5
KINDS = ("id + {0}", "id * 0.5d", "concat('s-', cast(id + {0} as string))")


def rows_of(text: str) -> Question:
    return Question(text, ROWS, clock=perf_counter, prepare=clear_results, rounds=5,
                    is_scaled=False, counted=0)  # fmt: skip


reading = rows_of("Rows of 3,000 columns out of Spark")
batches_in_workers = rows_of("Batches of 3,000 columns in Spark's workers")
tuples_in_workers = rows_of("Tuples of 3,000 columns in Spark's workers")


@cache
def _table(spark: Any) -> Any:
    made = [f"{KINDS[at % 3].format(at)} as c{at}" for at in range(COLUMNS)]
    return spark.range(0, ROWS, 1, PARTITIONS).selectExpr(*made)


def table() -> Any:
    """Return the rows, of a new DataFrame."""
    return _table(session()).select("*")


def summed(df: Any) -> int:
    return int(df.selectExpr("sum(c0)").first()[0])


# -- reading ---------------------------------------------------------------------------------------
@reading.handwritten("`df.toArrow()`")
async def to_arrow(_: int) -> int:
    return int(table().toArrow().num_rows)


@reading.other("`df.toArrow()`, then tuples")
async def to_arrow_tuples(_: int) -> int:
    arrow = table().toArrow()
    return sum(1 for _ in zip(*(column.to_pylist() for column in arrow.columns), strict=True))


@reading.ours("rows of 3,000 columns: tuples")
async def tuples(_: int) -> int:
    return await flow(table(), "tuple").count()


@reading.ours("rows of 3,000 columns: batches", goal=GOAL)
async def batches(_: int) -> int:
    read: Any = flow(table(), "batch").map(size)
    return int(await read.sum())


# -- in workers ------------------------------------------------------------------------------------
@batches_in_workers.handwritten("`mapInArrow`, batch by batch")
async def same_batches(_: int) -> int:
    def partition(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches

    df = table()
    return summed(df.mapInArrow(partition, df.schema))


@batches_in_workers.ours("`map_flow` of 3,000 columns: batches", goal=GOAL)
async def flow_of_batches(_: int) -> int:
    def pipeline(batches: Flow[Any]) -> Flow[Any]:
        return batches

    df = table()
    return summed(map_flow(df, pipeline, df.schema, rows="batch"))


@tuples_in_workers.handwritten("`mapInArrow`, a `for` loop over tuples")
async def loop(_: int) -> int:
    def partition(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        untyped: Any = pyarrow
        for batch in batches:
            kinds = batch.schema.types
            rows = [*zip(*(each.to_pylist() for each in batch.columns), strict=True)]
            columns = zip(zip(*rows, strict=True), kinds, strict=True)
            made = [untyped.array(values, kind) for values, kind in columns]
            yield untyped.RecordBatch.from_arrays(made, batch.schema.names)

    df = table()
    return summed(df.mapInArrow(partition, df.schema))


@tuples_in_workers.ours("`map_flow` of 3,000 columns: tuples", goal=GOAL)
async def flow_of_tuples(_: int) -> int:
    def pipeline(rows: Flow[Any]) -> Flow[Any]:
        return rows

    df = table()
    return summed(map_flow(df, pipeline, df.schema, rows="tuple"))
