"""from_stream and from_micro_batches: a streaming query as a flow."""

from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, overload

from ..._core.arguments import require_int
from ..._core.compiler.chain import Chain
from ...flow import Flow
from ...stage import Downstream, from_push
from ..arrow.decoder import batch_sizes
from ..column_values import unreadable_column
from ..errors import (
    UnsupportedDataFrame,
    explained,
    is_connect,
    require_option,
    require_pyspark,
    require_unique_names,
)
from ..read_mode import READ_MODES, ReadMode
from ..rows import ROW_KINDS, RowKind
from ..tagged_jobs import inherit_properties
from .micro_batch import MicroBatch
from .micro_batch_rows import MicroBatchRows
from .query import QueryPlan
from .subscription import StreamSubscription
from .trigger import Trigger, trigger_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import StructType

__all__ = ("StreamFlow", "from_micro_batches", "from_stream")

T_co = TypeVar("T_co", covariant=True)
OutputMode = Literal["append", "update", "complete"]
_OUTPUT_MODES: Final = ("append", "update", "complete")


class StreamFlow(Flow[T_co]):
    """The flow of `from_stream` and `from_micro_batches`: a `Flow` with a `schema`."""

    __slots__ = ("_schema",)

    def __init__(self, chain: Chain, schema: "StructType") -> None:
        super().__init__(chain)
        self._schema = schema

    @property
    def schema(self) -> "StructType":
        """The columns, as ``df.schema``."""
        return self._schema


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
    plan = _plan(
        "from_stream", df, checkpoint=checkpoint, rows=rows, trigger=trigger,
        output_mode=output_mode, name=name, mode=mode, window=window, batch=batch,
    )  # fmt: skip
    micro_batches = _micro_batches(plan)
    flow: Flow[Any] = from_push(
        lambda downstream: MicroBatchRows(downstream, micro_batches),
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
    plan = _plan(
        "from_micro_batches", df, checkpoint=checkpoint, rows=rows, trigger=trigger,
        output_mode=output_mode, name=name, mode=mode, window=window, batch=batch,
    )  # fmt: skip
    return StreamFlow(_micro_batches(plan).chain, df.schema)


def _micro_batches(plan: QueryPlan) -> Flow[MicroBatch[Any]]:
    def open_subscription(downstream: Downstream[MicroBatch[Any]]) -> StreamSubscription:
        return StreamSubscription(downstream, plan)

    return from_push(open_subscription, name=plan.name, checked=True)


def _plan(
    function: str,
    df: "DataFrame",
    *,
    checkpoint: "str | PathLike[str] | None",
    rows: RowKind,
    trigger: Trigger,
    output_mode: str,
    name: str | None,
    mode: ReadMode,
    window: int,
    batch: int | None,
) -> QueryPlan:
    _require_streaming(function, df)
    require_option(function, "rows", rows, ROW_KINDS)
    require_option(function, "mode", mode, READ_MODES)
    require_option(function, "output_mode", output_mode, _OUTPUT_MODES)
    require_unique_names(df.schema, rows)
    options = {} if checkpoint is None else {"checkpointLocation": fspath(checkpoint)}
    return QueryPlan(
        df=df, inherit=inherit_properties(df), name=function, kind=rows, mode=mode,
        window=require_int(function, "window", window, least=1),
        batch=None if batch is None else require_int(function, "batch", batch, least=1),
        options=options, output_mode=output_mode, trigger=trigger_options(function, trigger),
        query_name=name,
    )  # fmt: skip


def _require_streaming(function: str, df: object) -> None:
    if is_connect(df):
        raise UnsupportedDataFrame(
            f"{function}() cannot read a DataFrame of Spark Connect: its server would call back "
            "into a process of its own. Use a classic session, made with "
            "SparkSession.builder.master(...)."
        )
    require_pyspark()
    from pyspark.sql import DataFrame

    if not isinstance(df, DataFrame):
        kind = type(df).__name__
        raise UnsupportedDataFrame(f"{function}() needs a streaming DataFrame, got {kind!r}.")
    with explained(df):
        is_streaming = df.isStreaming
    if not is_streaming:
        raise UnsupportedDataFrame(
            f"{function}() needs a streaming DataFrame, made with spark.readStream; this one has "
            "an end: from_dataframe(df) reads it."
        )
    if (column := unreadable_column(df.schema)) is not None:
        raise UnsupportedDataFrame(
            f"{function}() cannot read {column}: PySpark has no Python value for it. Cast it to a "
            "string or to numbers in the query."
        )
