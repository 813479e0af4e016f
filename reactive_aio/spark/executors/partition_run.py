"""The run of a pipeline over one partition, in a Python worker of Spark.

The worker is synchronous: Spark gives its main thread an iterator of Arrow batches, and takes from
it the next batch of the result whenever it can send one. So demand begins with the iterator that is
returned here, and reaches Spark's batches through the flow.
"""

import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, cast

from ...flow import Flow
from ...stage import describe
from ..conversion import RowConversion, RowMismatch
from ..errors import LARGEST_INT
from ..gathering import cut
from ..rows import RowKind, row_converter
from .batch_size import BatchSize
from .input_rows import InputRows
from .loop_run import LoopRun
from .pulled_run import PulledRun, pulled
from .spark_connection import SparkConnection
from .spark_task import inside, running_task
from .worker_loop import WORKER, WorkerLoop

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Pipeline = Callable[[Flow[Any]], Flow[Any]]
"""Makes the flow of a partition's result of that of its rows."""

_LARGEST_BATCH: Final = 64 << 20
"""Bytes of a record batch of the result, about, unless one row has more."""
_log: Final = logging.getLogger("reactive_aio.spark")


def run_partition(
    pipeline: Pipeline,
    batches: Iterator[Any],
    *,
    function: str,
    input_schema: "StructType",
    output_schema: "StructType",
    rows: RowKind,
    most: int,
    zone: str = "UTC",
    worker: WorkerLoop = WORKER,
) -> Generator[Any]:
    """Yield the record batches of the result; closing the iterator cancels the flow."""
    task, is_last = running_task(), True
    worker.begin_task()
    try:
        connection = SparkConnection(batches)
        run = _PartitionRun(worker, function, connection)
        source = _source(input_schema, rows, most)
        with inside(task), run.chunks(pipeline, source, size := BatchSize(most)) as chunks:
            conversion = RowConversion(
                function, output_schema, zone, counted="of the output", rejected=RowMismatch
            )
            for batch in _encoded(chunks, conversion, size):
                yield batch
                connection.flush()
        is_last = False
    except Exception as error:  # after which Spark ends this process
        with suppress(Exception):  # it may be frozen
            error.add_note(f"in {function}: {task}")
        raise
    finally:
        worker.end_task(is_last=is_last)


def _source(schema: "StructType", rows: RowKind, most: int) -> InputRows:
    if rows == "batch":
        names = schema.names
        return InputRows(lambda batch: _one_batch(batch, names), has_batches=True, holds=0)
    holds = most - 1 if most < LARGEST_INT else None
    return InputRows(row_converter(schema, rows), has_batches=False, holds=holds)


def _one_batch(batch: Any, names: list[str]) -> Iterator[Any]:
    """The batch, with the names that the columns have in the DataFrame."""
    if not names:  # the column was added for Spark
        return iter((batch.select([]),))
    return iter((batch if batch.schema.names == names else batch.rename_columns(names),))


def _encoded(
    chunks: Iterator[list[Any]], conversion: RowConversion, size: BatchSize
) -> Generator[Any]:
    began = perf_counter()
    for rows in chunks:
        seconds, size_in_bytes = perf_counter() - began, 0
        for batch in conversion.batches(rows):
            size_in_bytes += batch.nbytes
            yield from cut(batch, size.most, _LARGEST_BATCH)
        size.measure(len(rows), size_in_bytes, seconds)
        began = perf_counter()


@dataclass(eq=False)
class _PartitionRun:
    """One run of a pipeline."""

    worker: WorkerLoop
    function: str
    connection: SparkConnection

    @contextmanager
    def chunks(
        self, pipeline: Pipeline, source: InputRows, size: BatchSize
    ) -> Generator[Iterator[list[Any]]]:
        """Run the flow as long as its elements are iterated inside the ``with``."""
        flow = self.worker.call(self._build, pipeline, source)
        chain = pulled(flow, source, self.connection)
        run: LoopRun | PulledRun
        if chain is None:
            run = LoopRun(flow, source, self.connection)
        else:
            run = PulledRun(chain, self.worker)
        self.worker.call(run.start)
        try:
            yield run.chunks(size)
        except BaseException:
            self._close_after_error(run)
            raise
        self.worker.call(run.aclose)

    async def _build(self, pipeline: Pipeline, source: InputRows) -> Flow[Any]:
        """Call the pipeline on the loop: what it makes may belong to that."""
        flow = pipeline(source.flow)
        if isinstance(cast("object", flow), Flow):
            return flow
        close = getattr(flow, "close", None)
        if hasattr(flow, "__await__") and callable(close):
            close()  # a coroutine, which would warn that it was never awaited
        raise TypeError(
            f"{self.function}: {describe(pipeline)} returned {type(flow).__name__}, which is not a "
            "flow; the pipeline is a function of a flow that returns a flow"
        )

    def _close_after_error(self, run: LoopRun | PulledRun) -> None:
        try:
            self.worker.call(run.aclose)
        except Exception:
            _log.warning("%s: the cleanup of the flow has failed", self.function, exc_info=True)
