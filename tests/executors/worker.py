"""A Python worker of Spark in this process: it runs a pipeline as Spark's workers do."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

import pyarrow
from pyspark.sql.types import LongType, StructField, StructType

from reactive_aio.spark._internals import arrow_schema
from reactive_aio.spark.executors.partition_run import Pipeline, run_partition
from reactive_aio.spark.executors.worker_loop import WorkerLoop
from reactive_aio.spark.rows import RowKind

NUMBERS: Final = StructType([StructField("n", LongType())])


def batches(columns: Sequence[Sequence[Any]], schema: StructType, size: int) -> Iterator[Any]:
    """Yield record batches of up to *size* rows, as Spark sends them."""
    arrow: Any = arrow_schema(schema)
    untyped: Any = pyarrow
    for start in range(0, len(columns[0]), size):
        parts = zip(columns, arrow, strict=True)
        arrays = [untyped.array(each[start : start + size], field.type) for each, field in parts]
        yield untyped.RecordBatch.from_arrays(arrays, schema=arrow)


def numbers(count: int, size: int = 10_000) -> Iterator[Any]:
    """Yield record batches of the numbers below *count*."""
    return batches([range(count)], NUMBERS, size)


class Worker:
    """Runs tasks one after another, on one loop; with *reuse*, that outlives them."""

    def __init__(self, loop: WorkerLoop) -> None:
        self.loop = loop

    def task(
        self,
        pipeline: Pipeline,
        given: Iterable[Any],
        *,
        schema: StructType = NUMBERS,
        output: StructType | None = None,
        rows: RowKind = "tuple",
        most: int = 10_000,
    ) -> Generator[Any]:
        """Return the record batches of the result, which are computed as they are taken."""
        return run_partition(
            pipeline, iter(given), function="map_flow", input_schema=schema,
            output_schema=output or schema, rows=rows, most=most, worker=self.loop,
        )  # fmt: skip

    def rows(self, pipeline: Pipeline, given: Iterable[Any], **options: Any) -> list[Any]:
        """Run a task; return the rows of the result."""
        return [row for batch in self.task(pipeline, given, **options) for row in rows_of(batch)]

    def numbers(self, pipeline: Pipeline, count: int, **options: Any) -> list[int]:
        """Run a pipeline of rows of one number."""
        return [n for (n,) in self.rows(pipeline, numbers(count), **options)]


def rows_of(batch: Any) -> list[tuple[Any, ...]]:
    """The rows of a record batch."""
    columns: list[list[Any]] = [column.to_pylist() for column in batch.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * cast("int", batch.num_rows)


@contextmanager
def new_worker(idle_seconds: float = 30.0) -> Generator[Worker]:
    """A worker whose thread ends with the ``with``."""
    loop = WorkerLoop(idle_seconds)
    try:
        yield Worker(loop)
    finally:
        loop.close()
