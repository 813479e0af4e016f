"""from_stream and from_micro_batches: a streaming query as a flow."""

from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from ..._core.arguments import require_int
from ...stage import Downstream, from_push
from ..decoding import batch_sizes
from ..failures import UnsupportedDataFrame, is_connect, require_pyspark, telling
from ..jobs import inheriting
from ..mode import MODES, Mode
from ..rows import KINDS, Kind
from ..source import check_names
from ..values import unreadable
from ._rows import StreamRows
from .flow import StreamFlow
from .microbatch import MicroBatch
from .query import Plan
from .subscription import StreamSubscription
from .trigger import Trigger, trigger_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from ...flow import Flow

__all__ = ("from_micro_batches", "from_stream")

OutputMode = Literal["append", "update", "complete"]
_OUTPUT_MODES: Final = ("append", "update", "complete")


@overload
def from_stream(
    df: "DataFrame", *, checkpoint: "str | PathLike[str] | None", rows: Literal["row"] = ...,
    trigger: Trigger = ..., output_mode: OutputMode = ..., name: str | None = ...,
    mode: Mode = ..., window: int = ..., batch: int | None = ...,
) -> "StreamFlow[tuple[int, Row]]": ...  # fmt: skip
@overload
def from_stream(
    df: "DataFrame", *, checkpoint: "str | PathLike[str] | None", rows: Literal["tuple"],
    trigger: Trigger = ..., output_mode: OutputMode = ..., name: str | None = ...,
    mode: Mode = ..., window: int = ..., batch: int | None = ...,
) -> StreamFlow[tuple[int, tuple[Any, ...]]]: ...  # fmt: skip
@overload
def from_stream(
    df: "DataFrame", *, checkpoint: "str | PathLike[str] | None", rows: Literal["dict"],
    trigger: Trigger = ..., output_mode: OutputMode = ..., name: str | None = ...,
    mode: Mode = ..., window: int = ..., batch: int | None = ...,
) -> StreamFlow[tuple[int, dict[str, Any]]]: ...  # fmt: skip
@overload
def from_stream(
    df: "DataFrame", *, checkpoint: "str | PathLike[str] | None", rows: Kind,
    trigger: Trigger = ..., output_mode: OutputMode = ..., name: str | None = ...,
    mode: Mode = ..., window: int = ..., batch: int | None = ...,
) -> StreamFlow[tuple[int, Any]]: ...  # fmt: skip
def from_stream(
    df: "DataFrame",
    *,
    checkpoint: "str | PathLike[str] | None",
    rows: Kind = "row",
    trigger: Trigger = None,
    output_mode: OutputMode = "append",
    name: str | None = None,
    mode: Mode = "auto",
    window: int = 16,
    batch: int | None = None,
) -> StreamFlow[Any]:
    """Emit the rows of the streaming query *df*, each with the number of its micro-batch.

    Elements are ``(batch_id, row)``; what a row is, *rows* says, as in `from_dataframe`, whose
    *mode*, *window* and *batch* these are too. The query is started by the first request and keeps
    where it is in the directory *checkpoint*: a subscription goes on behind what was completed
    there. With None each one begins anew.

    **Each row comes at least once.** A micro-batch enters the checkpoint when all of its rows have
    been processed *and one more is asked for*; until then, a crash or a cancellation makes it come
    again as a whole, with the same number. What waits in a ``boundary`` or ``buffer`` behind this,
    or was prefetched, has been processed as far as this can tell. A sink that wants each row
    exactly once takes `from_micro_batches`, and keeps the number with the rows.

    ::

        from_stream(df, checkpoint="…")
        r--r--r--r-->

    *trigger*: None looks for new data whenever there is demand, a duration at most that often;
    ``"available_now"`` and ``"once"`` read what is there, and complete. *output_mode* and *name*
    are those of ``df.writeStream``.

    Demand: passed through. At demand 0 no query is started, and one that runs waits: it plans the
        next micro-batch when a row of it is due, and computes partitions as `from_dataframe` does.
    Completes: with *trigger* ``"available_now"`` or ``"once"``, when all is read and one more row
        is asked for; else never.
    Fails: when the query or the job of a row fails, with PySpark's exception; with
        `SparkSessionLost` when the session is gone, with `StreamStopped` when somebody else has
        stopped the query.
    Cancels: returns at once; the job is cancelled, then the query is stopped, on a thread.
        ``aclose`` waits for that.
    Holds: up to *batch* - 1 rows, the rest of a batch of which something was asked for; nothing in
        mode ``"rows"``, or of batches.
    Rules: 1.1, 3.4, 3.5, 3.13
    """
    plan = _plan(
        "from_stream", df, checkpoint=checkpoint, rows=rows, trigger=trigger,
        output_mode=output_mode, name=name, mode=mode, window=window, batch=batch,
    )  # fmt: skip
    batches = _batches(plan)
    flow: Flow[Any] = from_push(
        lambda downstream: StreamRows(downstream, batches),
        name=plan.name,
        holds=0 if rows == "batch" else batch_sizes(df.schema, rows, batch).most - 1,
        checked=True,
    )
    return StreamFlow(flow.chain, df.schema)


def from_micro_batches(
    df: "DataFrame",
    *,
    checkpoint: "str | PathLike[str] | None",
    rows: Kind = "row",
    trigger: Trigger = None,
    output_mode: OutputMode = "append",
    name: str | None = None,
    mode: Mode = "auto",
    window: int = 16,
    batch: int | None = None,
) -> StreamFlow[MicroBatch[Any]]:
    """Emit the micro-batches of the streaming query *df*, one at a time.

    A `MicroBatch` has an ``id``, its ``rows`` as a flow, which computes them as they are asked for,
    and the same as a DataFrame, ``df``. It is over, and enters the checkpoint, when it was
    processed and another one is asked for. So each batch comes at least once, and a sink that
    commits its ``id`` together with its rows has each row exactly once: it skips an ``id`` that it
    knows. A stateful query (aggregation, deduplication) wants all rows of a batch read.

    The arguments are those of `from_stream`.

    ::

        from_micro_batches(df, checkpoint="…")
        b-----b-----b-->

    Demand: passed through: at demand 0 the query waits, and plans no batch.
    Completes: with *trigger* ``"available_now"`` or ``"once"``, when all is read and one more batch
        is asked for; else never.
    Fails: when the query fails, with PySpark's exception; with `SparkSessionLost` when the session
        is gone, with `StreamStopped` when somebody else has stopped the query.
    Cancels: returns at once; the query is stopped on a thread, and ``aclose`` waits for that.
    Holds: nothing.
    Rules: 1.1, 3.4, 3.5, 3.13
    """
    plan = _plan(
        "from_micro_batches", df, checkpoint=checkpoint, rows=rows, trigger=trigger,
        output_mode=output_mode, name=name, mode=mode, window=window, batch=batch,
    )  # fmt: skip
    return StreamFlow(_batches(plan).chain, df.schema)


def _batches(plan: Plan) -> "Flow[MicroBatch[Any]]":
    def attach(downstream: Downstream[MicroBatch[Any]]) -> StreamSubscription:
        return StreamSubscription(downstream, plan)

    return from_push(attach, name=plan.name, checked=True)


def _plan(
    function: str,
    df: "DataFrame",
    *,
    checkpoint: "str | PathLike[str] | None",
    rows: Kind,
    trigger: Trigger,
    output_mode: str,
    name: str | None,
    mode: Mode,
    window: int,
    batch: int | None,
) -> Plan:
    _check(function, df)
    _one_of(function, "rows", rows, KINDS)
    _one_of(function, "mode", mode, MODES)
    _one_of(function, "output_mode", output_mode, _OUTPUT_MODES)
    check_names(df, rows)
    options = {} if checkpoint is None else {"checkpointLocation": fspath(checkpoint)}
    return Plan(
        df=df, inherit=inheriting(df), name=function, kind=rows, mode=mode,
        window=require_int(function, "window", window, least=1),
        batch=None if batch is None else require_int(function, "batch", batch, least=1),
        options=options, output_mode=output_mode, trigger=trigger_options(function, trigger),
        query_name=name,
    )  # fmt: skip


def _check(function: str, df: object) -> None:
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
    with telling(df):
        streaming = df.isStreaming
    if not streaming:
        raise UnsupportedDataFrame(
            f"{function}() needs a streaming DataFrame, made with spark.readStream; this one has "
            "an end: from_dataframe(df) reads it."
        )
    if (found := unreadable(df.schema)) is not None:
        raise UnsupportedDataFrame(
            f"{function}() cannot read {found}: PySpark has no Python value for it. Cast it to a "
            "string or to numbers in the query."
        )


def _one_of(function: str, parameter: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        given = ", ".join(allowed)
        raise ValueError(f"{function}: {parameter} must be one of {given}, not {value!r}.")
