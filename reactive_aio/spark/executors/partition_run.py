"""The run of a pipeline over one partition, in a Python worker of Spark.

The worker is synchronous: Spark gives its main thread an iterator of Arrow batches, and takes from
it the next batch of the result whenever it can send one. So demand begins with the iterator that is
returned here, and reaches Spark's batches through the flow.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from functools import partial
from inspect import iscoroutine
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import anyio

from ...errors import Interrupted
from ...flow import Flow
from ...stage import describe
from ..conversion import RowConversion, RowMismatch
from ..errors import LARGEST_INT
from ..gathering import Elements
from ..rows import RowKind, cut, elements_of
from .batch_size import BatchSize
from .input_rows import InputRows
from .spark_connection import SparkConnection
from .spark_task import inside, running_task
from .worker_loop import WORKER, WorkerLoop

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Pipeline = Callable[[Flow[Any]], Flow[Any]]
"""Makes the flow of a partition's result of that of its rows."""

TICK: Final = 0.25
"""Seconds after which the main thread looks whether Spark still waits for this task."""
LONGEST_WAIT: Final = 1.0
"""Seconds after which rows are sent although their batch is not full."""
_PART: Final = 1024
_PART_VALUES: Final = 1 << 18
"""Rows, and values, that are made at a time at most, which delays other work on the loop."""
_LARGEST_BATCH: Final = 64 << 20
"""Bytes of a record batch of the result, about, unless one row has more."""


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
        source = _source(input_schema, rows, most)
        run = _PartitionRun(worker, function, source, connection)
        with inside(task), closing(run.chunks(pipeline, size := BatchSize(most))) as chunks:
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
    elements = elements_of(schema, rows)
    together = max(1, min(_PART, _PART_VALUES // max(1, len(schema.names))))
    holds = 0 if rows == "batch" else most - 1 if most < LARGEST_INT else None
    return InputRows(lambda batch: elements(batch, together), holds=holds)


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


class _PartitionRun:
    """The run of one pipeline: its flow is on the loop, and the main thread works for it.

    The main thread asks for the rows of a batch, and then does what the loop requests until it has
    them: it reads record batches of the partition, which blocks. The loop goes on meanwhile, so
    that calls in flight are answered, and time limits are kept, while Spark is slow.
    """

    def __init__(
        self, worker: WorkerLoop, function: str, source: InputRows, connection: SparkConnection
    ) -> None:
        self._worker = worker
        self._function = function
        self._source = source
        self._connection = connection
        self._elements: Elements

    # -- on the main thread -----------------------------------------------------------------------
    def chunks(self, pipeline: Pipeline, size: BatchSize) -> Generator[list[Any]]:
        """Yield lists of elements, each as long as *size* says, or those of a second."""
        self._worker.call(self._build, pipeline)
        try:
            while (rows := self._next_rows(size.rows)) is not None:
                yield rows
        except BaseException as error:
            with suppress(Interrupted):  # of a loop that has stopped; *error* says why
                self._worker.call(self._elements.__aexit__, None, error, None)
            raise
        self._worker.call(self._elements.__aexit__, None, None, None)

    def _next_rows(self, count: int) -> list[Any] | None:
        act: Callable[[], object] = partial(self._elements.ask, count)
        due = monotonic() + LONGEST_WAIT
        while True:
            answer = self._worker.call(self._answer, act, due)
            if answer is None or answer:
                return answer
            act = _go_on
            if self._source.is_wanted:  # which only the answer to it changes
                act = partial(self._source.feed, self._connection.next())
            else:
                self._connection.require_open()

    # -- on the loop ------------------------------------------------------------------------------
    async def _build(self, pipeline: Pipeline) -> None:
        """Call the pipeline on the loop: what it makes may belong to that."""
        flow = pipeline(self._source.flow)
        if not isinstance(cast("object", flow), Flow):
            self._refuse(pipeline, flow)
        self._elements = Elements(f"{self._function}()", flow)
        self._source.on_wanted = self._elements.wake

    def _refuse(self, pipeline: Pipeline, made: object) -> NoReturn:
        if iscoroutine(made):
            made.close()  # else it would warn that it was never awaited
        raise TypeError(
            f"{self._function}: {describe(pipeline)} returned {type(made).__name__}, which is "
            "not a flow; the pipeline is a function of a flow that returns a flow"
        )

    async def _answer(self, act: Callable[[], object], due: float) -> list[Any] | None:
        """Call *act*, and return rows; none where a record batch is wanted, or it takes long."""
        act()
        elements = self._elements
        if not self._source.is_wanted:
            await elements.wait(anyio.current_time() + TICK)
        return elements.take() if elements.is_ready or monotonic() >= due else []


def _go_on() -> None:
    """Only wait."""
