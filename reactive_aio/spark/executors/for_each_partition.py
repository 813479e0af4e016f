"""for_each_partition: a flow in each of Spark's tasks, for its side effects."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from ..._sources.asynchronous import from_awaitable
from ...stage import Fluent, describe, require_callable
from ..errors import UnsupportedDataFrame, explained, require_dataframe_type
from ..rows import RowKind
from ..tagged_jobs import SparkCalls
from .map_flow import map_partitions
from .spark_task import spark_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ...flow import Flow

FUNCTION: Final = "for_each_partition"
_SCHEMA: Final = "partition int, attempt int, elements long"


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """The result of the attempt that counted, of the task of one partition."""

    partition: int
    attempt: int
    """How many attempts there were before it."""
    elements: int
    """The elements that the flow delivered, or the number that the coroutine returned."""


async def for_each_partition(
    df: "DataFrame",
    pipeline: "Callable[[Flow[Any]], Flow[Any] | Awaitable[int | None]]",
    *,
    rows: RowKind = "row",
) -> list[PartitionResult]:
    """Run a flow over each partition of *df* in Spark's Python workers, for its side effects.

    ::

        async def store(rows: Flow[Row]) -> int:
            task = spark_task()
            async with await (await pool()).transaction() as transaction:
                await transaction.delete(partition=task.partition)  # of an attempt before
                return await rows.buffer(500).for_each(transaction.insert)

        await for_each_partition(df, store)

    *pipeline* gets the flow of the rows of a partition, as in `map_flow`, and returns a flow, whose
    elements are counted, or is a coroutine function that returns a number or None. Spark runs a
    task again that has failed, or that ran on an executor which was lost; it may run two attempts
    at the same time (``spark.speculation``), and repeats a task that has succeeded if its result
    was lost. So effects happen at least once: `spark_task` returns the partition and the attempt,
    by which an effect can be made idempotent.

    Demand: unbounded for a flow; a coroutine decides.
    Completes: returns the results, in the order of the partitions, when all tasks have succeeded.
    Fails: raises Spark's error when a task has failed as often as Spark allows. What other tasks
        have done stays.
    Cancels: when the task is cancelled that awaits it: the job is cancelled, and its flows are.
    Holds: what `map_flow` does, without a batch of the result.
    Rules: 2.1
    """
    require_dataframe_type(FUNCTION, df)
    require_callable(FUNCTION, "pipeline", pipeline, takes=1)

    def collect() -> list[PartitionResult]:
        with explained(df):
            if df.isStreaming:
                raise UnsupportedDataFrame(
                    f"{FUNCTION}() cannot run over a streaming DataFrame, which has no end: call "
                    "it for each micro-batch, of from_micro_batches(df) or writeStream.foreachBatch"
                )
            results = map_partitions(FUNCTION, df, partial(_counted, pipeline), _SCHEMA, rows)
            return sorted(
                (PartitionResult(*row) for row in cast("Any", results).collect()),
                key=lambda result: result.partition,
            )

    async with SparkCalls(FUNCTION, df.sparkSession) as calls:
        return await calls.call(collect)


def _counted(pipeline: Callable[[Any], Any], rows: "Flow[Any]") -> "Flow[tuple[int, int, int]]":
    """The result of a partition, as a row. It runs in the worker."""
    return from_awaitable(partial(_count, pipeline, rows))


async def _count(pipeline: Callable[[Any], Any], rows: "Flow[Any]") -> tuple[int, int, int]:
    made: object = pipeline(rows)
    if isinstance(made, Fluent):
        count: object = await cast("Flow[Any]", made).count()
    elif isinstance(made, Awaitable):
        count = await cast("Awaitable[object]", made)
    else:
        raise TypeError(
            f"{FUNCTION}: {describe(pipeline)} returned {type(made).__name__}; it has to return a "
            "flow, or be a coroutine function"
        )
    if count is not None and not isinstance(count, int):
        raise TypeError(
            f"{FUNCTION}: the coroutine of {describe(pipeline)} returned {type(count).__name__}; "
            "it has to return a number of elements, or None"
        )
    task = spark_task()
    return (task.partition, task.attempt, count or 0)
