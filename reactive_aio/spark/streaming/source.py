"""from_stream and from_micro_batches: a streaming query as a flow."""

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from ..._core.compiler.chain import Chain
from ...flow import Flow
from ...stage import Downstream, InnerSubscriber, SequentialCoordinator, from_push
from ..read_mode import ReadMode
from ..rows import RowKind, batch_sizes
from .query import MicroBatch, OutputMode, QueryPlan, StreamSubscription, Trigger

if TYPE_CHECKING:
    from os import PathLike

    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import StructType

__all__ = ("StreamFlow", "from_micro_batches", "from_stream")

T_co = TypeVar("T_co", covariant=True)
Numbered = tuple[int, Any]


class StreamFlow(Flow[T_co]):
    """The flow of `from_stream` and `from_micro_batches`: a `Flow` with a `schema`."""

    __slots__ = ("schema",)

    def __init__(self, chain: Chain, schema: "StructType") -> None:
        super().__init__(chain)
        self.schema: StructType = schema
        """The columns, as ``df.schema``."""


@overload
def from_stream(
    df: "DataFrame", *, checkpoint: "str | PathLike[str] | None", rows: Literal["row"] = ...,
    trigger: Trigger = ..., output_mode: OutputMode = ..., name: str | None = ...,
    mode: ReadMode = ..., window: int = ..., batch: int | None = ...,
) -> "StreamFlow[tuple[int, Row]]": ...  # fmt: skip
@overload
def from_stream(
    df: "DataFrame", *, checkpoint: "str | PathLike[str] | None", rows: Literal["tuple"],
    trigger: Trigger = ..., output_mode: OutputMode = ..., name: str | None = ...,
    mode: ReadMode = ..., window: int = ..., batch: int | None = ...,
) -> StreamFlow[tuple[int, tuple[Any, ...]]]: ...  # fmt: skip
@overload
def from_stream(
    df: "DataFrame", *, checkpoint: "str | PathLike[str] | None", rows: Literal["dict"],
    trigger: Trigger = ..., output_mode: OutputMode = ..., name: str | None = ...,
    mode: ReadMode = ..., window: int = ..., batch: int | None = ...,
) -> StreamFlow[tuple[int, dict[str, Any]]]: ...  # fmt: skip
@overload
def from_stream(
    df: "DataFrame", *, checkpoint: "str | PathLike[str] | None", rows: RowKind,
    trigger: Trigger = ..., output_mode: OutputMode = ..., name: str | None = ...,
    mode: ReadMode = ..., window: int = ..., batch: int | None = ...,
) -> StreamFlow[tuple[int, Any]]: ...  # fmt: skip
def from_stream(
    df: "DataFrame",
    *,
    checkpoint: "str | PathLike[str] | None",
    rows: RowKind = "row",
    trigger: Trigger = None,
    output_mode: OutputMode = "append",
    name: str | None = None,
    mode: ReadMode = "auto",
    window: int = 16,
    batch: int | None = None,
) -> StreamFlow[Any]:
    """Emit the rows of the streaming query *df*, each with the number of its micro-batch.

    Elements are ``(batch_id, row)``; *rows* is the kind of row, as in `from_dataframe`, which also
    describes *mode*, *window* and *batch*. The first request starts the query. Its position is
    stored in the directory *checkpoint*: a subscription continues after what was completed there.
    With None each subscription starts from the beginning.

    **Each row comes at least once.** A micro-batch enters the checkpoint when all of its rows have
    been processed *and one more is requested*; until then, a crash or a cancellation makes the
    next run repeat it as a whole, with the same number. Rows in a later ``boundary`` or ``buffer``,
    and prefetched ones, count as processed. A sink that needs each row exactly once takes
    `from_micro_batches`, and stores the number with the rows.

    ::

        from_stream(df, checkpoint="…")
        r--r--r--r-->

    *trigger*: None looks for new data whenever there is demand, a duration at most that often;
    ``"available_now"`` and ``"once"`` read the available data, and complete. *output_mode* and
    *name* are those of ``df.writeStream``.

    Demand: passed through. At demand 0 no query is started, and a running one waits: it plans the
        next micro-batch when demand reaches one of its rows, and computes partitions as
        `from_dataframe` does.
    Completes: with *trigger* ``"available_now"`` or ``"once"``, when all is read and one more row
        is requested; otherwise never.
    Fails: when the query or the job of a row fails, with PySpark's exception; with
        `SparkSessionLost` when the session is lost, with `StreamStopped` when other code has
        stopped the query.
    Cancels: returns at once; the job is cancelled, then the query is stopped, on a thread.
        ``aclose`` waits for that.
    Holds: up to *batch* - 1 rows, the rest of a batch; nothing in mode ``"rows"``, or of batches.
    Rules: 1.1, 3.4, 3.5, 3.13
    """
    plan = QueryPlan(
        name="from_stream", df=df, checkpoint=checkpoint, rows=rows, trigger=trigger,
        output_mode=output_mode, query_name=name, mode=mode, window=window, batch=batch,
    )  # fmt: skip
    micro_batches = _micro_batches(plan)
    flow: Flow[Any] = from_push(
        lambda downstream: _MicroBatchRows(downstream, micro_batches),
        name=plan.name,
        holds=0 if rows == "batch" else batch_sizes(df.schema, rows, batch).most - 1,
        checked=True,
    )
    return StreamFlow(flow.chain, df.schema)


def from_micro_batches(
    df: "DataFrame",
    *,
    checkpoint: "str | PathLike[str] | None",
    rows: RowKind = "row",
    trigger: Trigger = None,
    output_mode: OutputMode = "append",
    name: str | None = None,
    mode: ReadMode = "auto",
    window: int = 16,
    batch: int | None = None,
) -> StreamFlow[MicroBatch[Any]]:
    """Emit the micro-batches of the streaming query *df*, one at a time.

    A `MicroBatch` has an ``id``, its ``rows`` as a flow, which computes them under demand, and the
    same as a DataFrame, ``df``. It is over, and enters the checkpoint, when it was processed and
    another one is requested. So each micro-batch comes at least once, and a sink that commits its
    ``id`` together with its rows, and skips an ``id`` that it has, stores each row exactly once. A
    stateful query (aggregation, deduplication) needs all rows of a micro-batch to be read.

    The arguments are those of `from_stream`.

    ::

        from_micro_batches(df, checkpoint="…")
        b-----b-----b-->

    Demand: passed through: at demand 0 the query waits, and plans no micro-batch.
    Completes: with *trigger* ``"available_now"`` or ``"once"``, when all is read and one more
        micro-batch is requested; otherwise never.
    Fails: when the query fails, with PySpark's exception; with `SparkSessionLost` when the session
        is lost, with `StreamStopped` when other code has stopped the query.
    Cancels: returns at once; the query is stopped on a thread, and ``aclose`` waits for that.
    Holds: nothing.
    Rules: 1.1, 3.4, 3.5, 3.13
    """
    plan = QueryPlan(
        name="from_micro_batches", df=df, checkpoint=checkpoint, rows=rows, trigger=trigger,
        output_mode=output_mode, query_name=name, mode=mode, window=window, batch=batch,
    )  # fmt: skip
    return StreamFlow(_micro_batches(plan).chain, df.schema)


def _micro_batches(plan: QueryPlan) -> Flow[MicroBatch[Any]]:
    return from_push(partial(StreamSubscription, plan), name=plan.name, checked=True)


class _MicroBatchRows(SequentialCoordinator[Numbered]):
    """Requests a micro-batch when a row is requested and all rows before have been processed.

    Spark writes the checkpoint then, so it covers only rows that have been processed.
    """

    def __init__(
        self, downstream: Downstream[Numbered], micro_batches: Flow[MicroBatch[Any]]
    ) -> None:
        super().__init__(downstream)
        self._source = micro_batches

    def begin(self) -> None:
        self._micro_batches = self.subscribe_to(self._source)

    def on_demand(self) -> None:
        super().on_demand()
        self._request_micro_batch()

    def on_processed(self) -> None:
        self._request_micro_batch()

    def _request_micro_batch(self) -> None:
        is_requested = self._micro_batches.outstanding > 0
        is_processed = self.processed_count == self.emitted
        if self.active is None and not is_requested and self.demand and is_processed:
            self._micro_batches.request(1)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        super().on_elements(inner)
        if inner is self._micro_batches:
            for batch in inner.take(1):
                self.switch(batch.rows.map(partial(_numbered, batch.id)))

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        super().on_inner_complete(inner)
        if inner is self._micro_batches:
            self.complete()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        super().on_inner_error(inner, error)
        if inner is self._micro_batches:
            self.fail(error)

    def next_after(self, error: BaseException | None) -> None:
        if error is not None:
            self.fail(error)
        elif self.active is not None:
            self.release(self.active)
            self.active = None
            self._request_micro_batch()


def _numbered(batch_id: int, row: Any) -> Numbered:
    return batch_id, row
