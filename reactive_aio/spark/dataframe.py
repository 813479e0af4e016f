"""from_dataframe: the rows of a DataFrame as a flow that can change the query."""

import io
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast, overload

from .._core.arguments import require_int, require_number
from .._core.compiler.chain import Chain, PushSource
from .._core.compiler.inline import describe
from .._operators.select import TAKE
from ..flow import Flow
from ..stage import Downstream, InlineStage, LoopHandle, from_push
from ._internals import limit_partitions, session_tags
from ._internals.partition_jobs import missing_marking_call
from .arrow.reading_state import ReadingState
from .arrow.subscription import ArrowSubscription, WindowJobs
from .checkpoint import Checkpoint, CheckpointStore, Resume, require_repeatable
from .connect import ConnectSession, from_connect
from .errors import (
    LARGEST_INT,
    explained,
    is_connect,
    require_dataframe,
    require_java_int,
    require_option,
)
from .local_iterator import from_local_iterator
from .progress import NO_PROGRESS, OnProgress, ProgressMeter, require_on_progress
from .read_mode import READ_MODES, ChosenMode, ModeUnavailable, ReadMode, choose_mode
from .rows import DEFAULT_BATCH, ROW_KINDS, RowKind, batch_sizes, decoder, read_schema
from .tagged_jobs import InheritProperties, TaggedJobs, inherit_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from os import PathLike

    from pyspark.sql import Column, DataFrame, Row
    from pyspark.sql.types import StructType

    from ..delivery import Delivery

    CheckpointPlace = str | PathLike[str] | CheckpointStore | Checkpoint

T_co = TypeVar("T_co", covariant=True)
FUNCTION: Final = "from_dataframe"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A DataFrame, and how its rows are read. Immutable, as a DataFrame is."""

    df: "DataFrame"
    inherit: InheritProperties | None
    """Gives jobs their local properties; None with Spark Connect, which has none."""
    tags: tuple[str, ...]
    """Those by which the classic session interrupts jobs."""
    connect: ConnectSession | None
    """The session of Spark Connect, if it is one."""
    kind: RowKind
    mode: ReadMode
    chosen: ChosenMode
    window: int
    batch: int | None
    """Rows of a record batch, or of what a thread hands to the loop at a time; None: the best."""
    ordered: bool
    on_progress: OnProgress | None = None
    checkpoint: Checkpoint | None = None
    schema: "StructType"
    """The columns, with the types by which values are read."""
    is_query_stopped: "Callable[[], bool] | None" = None
    """Whether the streaming query was stopped of which *df* is a micro-batch."""
    first: int | None = None
    """How many rows of each partition are taken at most; no more of them are computed."""

    def over(self, df: "DataFrame") -> "_Source":
        """Return the same for another DataFrame, whose columns may allow another mode."""
        chosen = choose_mode(df, self.mode, self.kind)
        if self.checkpoint is not None:
            require_resumable(df, chosen, self.checkpoint)
        with explained(df):
            return replace(self, df=df, chosen=chosen, schema=read_schema(df))

    def chain(self) -> Chain:
        """Return the chain of a flow; its `explain()` shows Spark's plan."""
        source = cast("PushSource", self._flow().chain.source)
        return Chain(replace(source, details=self._explain))

    def _make_meter(self, loop_handle: LoopHandle) -> ProgressMeter:
        if self.on_progress is None:
            return NO_PROGRESS
        return ProgressMeter(self.on_progress, loop_handle, self._rows_of())

    def _rows_of(self) -> "Callable[[Any], int] | None":
        """Return what counts the rows of an element, if it may have several."""
        if self.kind != "batch":
            return None
        return attrgetter("num_rows" if self.checkpoint is None else "value.num_rows")

    def _flow(self) -> Flow[Any]:
        batch, schema = self.batch or DEFAULT_BATCH, self.schema
        if self.connect is not None:
            return from_connect(
                self._plan, schema, self.connect, self.kind,
                by_batches=self.chosen.mode == "connect", name=FUNCTION, batch=batch,
                make_meter=self._make_meter,
            )  # fmt: skip
        if self.chosen.mode == "rows":
            return from_local_iterator(
                self._jobs, self.kind, batch=batch, make_meter=self._make_meter
            )
        decode = decoder(schema, self.kind)
        sizes = batch_sizes(schema, self.kind, self.batch)

        def open_subscription(downstream: Downstream[Any]) -> ArrowSubscription[Any]:
            resume = None if self.checkpoint is None else Resume(self.checkpoint)
            largest, is_ordered = self.window, self.ordered
            state = ReadingState[Any](largest=largest, batch_sizes=sizes, is_ordered=is_ordered)
            jobs = WindowJobs(self._jobs(), sizes.least, resume)
            return ArrowSubscription(downstream, state, jobs, decode, self._make_meter)

        holds = 0 if self.kind == "batch" else sizes.most - 1
        return from_push(open_subscription, name=FUNCTION, holds=holds, checked=True)

    def _jobs(self) -> TaggedJobs:
        assert self.inherit is not None, "a session of Spark Connect has no jobs here"
        jobs = TaggedJobs(self.df, self.inherit, self._plan, self.tags)
        if self.is_query_stopped is not None:
            jobs.is_query_stopped = self.is_query_stopped
        return jobs

    def _plan(self) -> "DataFrame":
        """Return the same DataFrame with a plan of its own.

        A DataFrame keeps its plan and the results of it: its shuffles, and also that their job was
        cancelled, which would fail every later subscription.
        """
        if self.connect is not None:  # its plan is sent for each subscription
            return self.df if self.first is None else self.connect.limited(self.df, self.first)
        df = self.df.alias(FUNCTION)  # select("*") would be the same, in nine calls of the JVM
        if self.first is not None:
            # Without it a Spark that lacks the call computes more; the flow takes no more anyway.
            with suppress(Exception):
                return limit_partitions(df, self.first)
        return df

    def _explain(self) -> str:
        """Return the mode, its reason, and Spark's plan. Calls the JVM."""
        with explained(self.df), redirect_stdout(io.StringIO()) as plan:
            self._plan().explain()
        return f"{self.chosen}\n{plan.getvalue().strip()}"


class SparkFlow(Flow[T_co]):
    """The flow of `from_dataframe`: it has a `schema`, a `mode`, and operators that Spark runs.

    `where`, `select`, `limit` and `sample_fraction` change the query, so that Spark does their work
    before a row leaves it. They take columns and SQL, which Spark can plan, and never Python
    functions. Like those of a DataFrame, they call the JVM and block for some milliseconds. A
    `take` directly after them is pushed down as well: Spark computes no more rows of a partition
    than it takes.

    Every other operator returns an ordinary flow, since its elements may not be rows any more.
    ``explain()`` shows Spark's plan and where the flow begins.
    """

    __slots__ = ("_source",)

    def __init__(self, source: _Source) -> None:
        super().__init__(source.chain())
        self._source = source

    @property
    def schema(self) -> "StructType":
        """The columns, as ``df.schema``."""
        return self._source.df.schema

    @property
    def mode(self) -> ChosenMode:
        """How rows come out of Spark, and why: ``mode.mode`` is "arrow", "connect" or "rows"."""
        return self._source.chosen

    # -- push-down --------------------------------------------------------------------------------
    def where(self, condition: "Column | str") -> "SparkFlow[T_co]":
        """Keep the rows for which *condition* holds, in Spark: ``where("delay > 30")``."""
        _require_expression("where", condition, "filter()")
        return self._over(lambda df: df.where(condition))

    def select(self, *columns: "Column | str") -> "SparkFlow[T_co]":
        """Compute other columns, in Spark: ``select("carrier", "delay / 60 as hours")``."""
        for column in columns:
            _require_expression("select", column, "map()")
        return self._over(lambda df: df.select(*_expressions(df, columns)))

    def limit(self, count: int) -> "SparkFlow[T_co]":
        """Compute any *count* rows, as ``df.limit``; `take` computes the first ones."""
        require_java_int("limit", "count", count, least=0)
        return self._over(lambda df: df.limit(count))

    def sample_fraction(self, fraction: float, *, seed: int | None = None) -> "SparkFlow[T_co]":
        """Pick about that *fraction* of the rows in Spark, each at most once."""
        share = require_number("sample_fraction: fraction", fraction)
        if not 0 <= share <= 1:
            raise ValueError(f"sample_fraction: fraction must be from 0 to 1, not {fraction}")
        return self._over(lambda df: df.sample(fraction=float(share), seed=seed))

    def _over(self, change: "Callable[[DataFrame], DataFrame]") -> "SparkFlow[T_co]":
        source = self._source
        with explained(source.df):
            changed = change(source.df)
        return SparkFlow(source.over(changed))

    def via(
        self, stage: InlineStage, *arguments: object, holds: int | None = 0, contents: int = 1
    ) -> Flow[Any]:
        """Attach an inline stage; a `take` is pushed down."""
        count = cast("int", arguments[0]) if stage is TAKE else LARGEST_INT + 1
        source = self._source
        if count > LARGEST_INT or source.kind == "batch" or source.checkpoint is not None:
            return super().via(stage, *arguments, holds=holds, contents=contents)
        limited = replace(source, first=count)
        return Flow[Any](limited.chain()).via(stage, *arguments, holds=holds, contents=contents)


def _require_expression(method: str, value: object, alternative: str) -> None:
    from pyspark.sql import Column

    if not isinstance(value, str | Column):
        kind = type(value).__name__
        raise TypeError(
            f"{method}: a column or SQL is needed, which Spark can plan, not {describe(value)} "
            f"({kind}); for a Python function use {alternative}"
        )


def _expressions(df: "DataFrame", columns: "Iterable[Column | str]") -> "Iterator[Column]":
    """Return SQL as columns; those of Spark Connect have another class than those of a JVM."""
    functions: Any = import_module(
        "pyspark.sql.connect.functions" if is_connect(df) else "pyspark.sql.functions"
    )
    return (functions.expr(each) if isinstance(each, str) else each for each in columns)


def require_resumable(df: "DataFrame", chosen: ChosenMode, checkpoint: Checkpoint) -> None:
    """Raise unless partitions of *df* can be computed one by one, with the same rows each time.

    The place of the *checkpoint* must be one that can keep them.
    """
    checkpoint.opened()
    if chosen.mode != "arrow":
        raise ModeUnavailable(
            "from_dataframe(checkpoint=…) computes single partitions, which only mode='arrow' can, "
            f"and this DataFrame is read in mode {chosen.mode!r}: {chosen.why}."
        )
    missing = missing_marking_call(df.sparkSession.sparkContext)
    if missing is not None:
        raise ModeUnavailable(f"from_dataframe(checkpoint=…) is not possible: {missing}.")
    require_repeatable(df, checkpoint)


@overload
def from_dataframe(
    df: "DataFrame", *, checkpoint: "CheckpointPlace", rows: Literal["row"] = ...,
    mode: ReadMode = ..., window: int = ..., batch: int | None = ..., ordered: bool = ...,
    progress: "bool | OnProgress" = ...,
) -> "SparkFlow[Delivery[Row]]": ...  # fmt: skip
@overload
def from_dataframe(
    df: "DataFrame", *, checkpoint: "CheckpointPlace", rows: Literal["tuple"], mode: ReadMode = ...,
    window: int = ..., batch: int | None = ..., ordered: bool = ...,
    progress: "bool | OnProgress" = ...,
) -> "SparkFlow[Delivery[tuple[Any, ...]]]": ...  # fmt: skip
@overload
def from_dataframe(
    df: "DataFrame", *, checkpoint: "CheckpointPlace", rows: Literal["dict"], mode: ReadMode = ...,
    window: int = ..., batch: int | None = ..., ordered: bool = ...,
    progress: "bool | OnProgress" = ...,
) -> "SparkFlow[Delivery[dict[str, Any]]]": ...  # fmt: skip
@overload
def from_dataframe(
    df: "DataFrame", *, checkpoint: "CheckpointPlace", rows: RowKind, mode: ReadMode = ...,
    window: int = ..., batch: int | None = ..., ordered: bool = ...,
    progress: "bool | OnProgress" = ...,
) -> "SparkFlow[Delivery[Any]]": ...  # fmt: skip
@overload
def from_dataframe(
    df: "DataFrame", *, rows: Literal["row"] = ..., mode: ReadMode = ..., window: int = ...,
    batch: int | None = ..., ordered: bool = ..., progress: "bool | OnProgress" = ...,
) -> "SparkFlow[Row]": ...  # fmt: skip
@overload
def from_dataframe(
    df: "DataFrame", *, rows: Literal["tuple"], mode: ReadMode = ..., window: int = ...,
    batch: int | None = ..., ordered: bool = ..., progress: "bool | OnProgress" = ...,
) -> SparkFlow[tuple[Any, ...]]: ...  # fmt: skip
@overload
def from_dataframe(
    df: "DataFrame", *, rows: Literal["dict"], mode: ReadMode = ..., window: int = ...,
    batch: int | None = ..., ordered: bool = ..., progress: "bool | OnProgress" = ...,
) -> SparkFlow[dict[str, Any]]: ...  # fmt: skip
@overload
def from_dataframe(
    df: "DataFrame", *, rows: RowKind, mode: ReadMode = ..., window: int = ...,
    batch: int | None = ..., ordered: bool = ..., progress: "bool | OnProgress" = ...,
) -> SparkFlow[Any]: ...  # fmt: skip
def from_dataframe(
    df: "DataFrame",
    *,
    rows: RowKind = "row",
    mode: ReadMode = "auto",
    window: int = 16,
    batch: int | None = None,
    ordered: bool = True,
    progress: "bool | OnProgress" = False,
    checkpoint: "CheckpointPlace | None" = None,
) -> SparkFlow[Any]:
    """Emit the rows of *df*, in its order, computed under demand.

    Elements are ``"row"``: a ``pyspark.sql.Row`` as ``collect()`` returns it; ``"tuple"``: the same
    without names, faster; ``"dict"``; or ``"batch"``: a ``pyarrow.RecordBatch`` of up to *batch*
    rows. `SparkFlow.schema` describes the columns. By default *batch* is 4096 for a
    ``RecordBatch``; for rows it is 1024, or where rows are small and have few columns of simple
    types, up to 8192 tuples and 4096 others.

    *mode* ``"arrow"`` computes partitions in windows, one Spark job each: of 1, 1, 2, 4, … up to
    *window* partitions, if demand covers them, and of fewer at the end; their rows are read on the
    loop as Arrow batches. ``"rows"`` drains ``toLocalIterator`` on a thread, which is much slower
    and uses little but PySpark's public API. ``"connect"`` fetches the batches of a DataFrame of
    Spark Connect, on a thread; *window* and *ordered* have no effect there. ``"auto"`` takes the
    best mode that is possible; `SparkFlow.mode` reports it and the reason. With *ordered* false, a
    window whose job is done does not wait for the windows before it.

    *progress* is a function that receives a `Progress` of each subscription. It is called on the
    loop, outside of signals, after changes, at most ten times a second, and once before the
    terminal signal. If it raises, the loop's exception handler is called, and the flow continues
    without it. True means a `ProgressBar`.

    With *checkpoint*, a directory or a `Checkpoint`, elements are `Delivery` objects of these. A
    partition is committed when it was read and each of its elements is acknowledged, whether the
    other partitions of its job are or not; the next subscription, in this process or another one,
    computes only those that are not committed. Read it with ``deliveries(flow)``.

    Each subscription runs jobs of its own, with the local properties (the scheduler pool, the job
    group, the job tags) that were set in the thread that called this.

    ::

        from_dataframe(df)
        r--r--r--|

    Demand: passed through. At demand 0 no job is started and nothing is read; a window is launched
        when demand reaches one of its rows, by the size of the partitions before. While there is
        demand, as many rows as have been read are expected to be requested besides, unless *window*
        is 1. Spark itself computes whole partitions: they wait in the driver's JVM, so make
        partitions small where rows are large (``df.repartition(n)``). A server of Spark Connect
        computes everything as soon as one row is requested, and keeps what has not been fetched.
    Completes: after the last row, when Spark has confirmed that it sent everything; whether the
        remaining partitions are empty is known only when one more row is requested.
    Fails: when a job fails, with PySpark's exception for the cause and Spark's message (the Py4J
        error is its ``__cause__``), after the rows of the windows before; with `SparkSessionLost`
        when the session was stopped, its JVM died, or its server is gone; with `JobCancelled` when
        other code has cancelled a job; with `PartitionTooLarge` when the rows of one partition are
        more than ``spark.driver.maxResultSize``; with `CheckpointMismatch` when *checkpoint* is of
        another query or of other input.
    Cancels: returns at once. The running jobs are cancelled, their tasks are interrupted, and the
        threads that wait for them end.
    Holds: up to *batch* - 1 rows, the rest of a batch; nothing in mode ``"rows"``, or of batches.
        ``flow.bound()`` reports the number. In mode ``"connect"``, a batch has the size that the
        server gives it: ``spark.sql.execution.arrow.maxRecordsPerBatch`` rows.
    Rules: 1.1, 3.4, 3.5, 3.13

    Raises `UnsupportedDataFrame` for a streaming DataFrame, for a column that PySpark has no Python
    value for, and with *checkpoint* for a query that may have other rows the next time;
    `ModeUnavailable` when the requested mode, batches, or a checkpoint are not possible. Like most
    methods of a DataFrame, this calls the JVM, or the server, and blocks for some milliseconds (the
    first time, for some tens).
    """
    require_dataframe(FUNCTION, df, is_streaming=False)
    require_option(FUNCTION, "rows", rows, ROW_KINDS)
    require_option(FUNCTION, "mode", mode, READ_MODES)
    require_int(FUNCTION, "window", window, least=1)
    if batch is not None:
        require_java_int(FUNCTION, "batch", batch)
    on_progress = require_on_progress(progress)
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint)
    return _flow_of(
        df, rows, mode, window=window, batch=batch, ordered=ordered,
        on_progress=on_progress, checkpoint=checkpoint,
    )  # fmt: skip


def micro_batch_rows(
    df: "DataFrame", rows: RowKind, mode: ReadMode, *, window: int, batch: int | None,
    is_query_stopped: "Callable[[], bool]",
) -> SparkFlow[Any]:  # fmt: skip
    """Return the flow of the rows of a micro-batch of a query, which cancels jobs when it stops."""
    return _flow_of(
        df, rows, mode, window=window, batch=batch, ordered=True, is_query_stopped=is_query_stopped
    )


def _flow_of(df: "DataFrame", kind: RowKind, mode: ReadMode, **options: Any) -> SparkFlow[Any]:
    chosen = choose_mode(df, mode, kind)
    connect = ConnectSession.of(df) if is_connect(df) else None
    if (checkpoint := options.get("checkpoint")) is not None:
        require_resumable(df, chosen, checkpoint)
    with explained(df):
        schema = read_schema(df)
    inherit = None if connect else inherit_properties(df)
    tags = () if connect else session_tags(df.sparkSession)
    source = _Source(
        df=df, schema=schema, inherit=inherit, tags=tags, connect=connect,
        kind=kind, mode=mode, chosen=chosen, **options,
    )  # fmt: skip
    return SparkFlow(source)
