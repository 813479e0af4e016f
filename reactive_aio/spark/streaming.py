"""Streaming queries as flows: micro-batches, and their rows, under demand.

Spark calls a function with each micro-batch (``foreachBatch``), on a thread of Py4J, and writes the
checkpoint when the function has returned. So the function waits there until the micro-batch is
over; to the query, time without demand is time in which the function runs.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast, overload
from weakref import WeakMethod, finalize

from .._core.compiler.chain import Chain
from ..errors import ReactiveError
from ..flow import Flow
from ..stage import (
    Downstream,
    Duration,
    InnerSubscriber,
    SequentialCoordinator,
    from_push,
    require_int,
    to_seconds,
)
from ._internals import computed_state, has_no_new_data, is_context_stopped
from .call_threads import CallThreads
from .dataframe import micro_batch_rows
from .errors import (
    SparkSessionLost,
    StreamStopped,
    UnsupportedDataFrame,
    explained,
    is_connect,
    require_dataframe,
    require_java_int,
    require_option,
    require_path,
    require_text,
)
from .executor_watch import watch_executors
from .read_mode import READ_MODES, ReadMode, choose_mode
from .rows import ROW_KINDS, RowKind, batch_sizes
from .stepping import SteppedSubscription
from .tagged_jobs import InheritProperties, inherit_properties
from .thread_pool import NEW_THREADS

if TYPE_CHECKING:
    from os import PathLike

    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from .dataframe import SparkFlow

T_co = TypeVar("T_co", covariant=True)
Numbered = tuple[int, Any]
OutputMode = Literal["append", "update", "complete"]
_OUTPUT_MODES: Final = ("append", "update", "complete")
Trigger = Duration | Literal["available_now", "once"] | None
"""None: as soon as there is demand; a duration: at most that often; or until all is read."""

_SPARK_NAMES: Final = {"available_now": "availableNow", "once": "once"}
_CHECK_LOOP_EVERY: Final = 1.0
"""Seconds between two checks whether the loop of the subscription was closed."""
_CHECK_QUERY_EVERY: Final = 0.25
"""Seconds between two checks whether the query was stopped while it waits for demand. Any code can
stop it, and the call that does so returns when this wait has ended."""


class BatchNotRead(ReactiveError, RuntimeError):
    """A micro-batch of a stateful query was left before all of its rows were computed."""

    def __init__(self, function: str, batch: int, computed: int, partitions: int) -> None:
        super().__init__(
            f"{function}: micro-batch {batch} of a stateful query was left when Spark had the "
            f"state of {computed} of its {partitions} partitions; the next one would lack that of "
            "the others. Read all of batch.rows, or run an action over batch.df, before you "
            "request another micro-batch. Subscribe again: this one is repeated."
        )


@dataclass(frozen=True, slots=True, eq=False)
class MicroBatch(Generic[T_co]):
    """The data between two checkpoints of a streaming query.

    It is over when it was processed and another one is requested; until then the query waits, and
    *rows* and *df* can be read. When the program ends before that, the next run from the same
    checkpoint repeats the micro-batch, with the same *id* and the same rows. So a sink that stores
    *id* together with the rows, in one transaction, stores each row exactly once.
    """

    id: int
    """0, 1, 2 …: continues from the checkpoint."""
    rows: "SparkFlow[T_co]"
    """The rows, computed under demand, once for each subscription."""
    df: "DataFrame"
    """The same as a DataFrame, for other operations of Spark."""

    def __repr__(self) -> str:
        return f"<MicroBatch {self.id}>"


# -- the query -------------------------------------------------------------------------------------
@dataclass(slots=True, kw_only=True)
class QueryPlan:
    """The query that each subscription runs: the arguments of *name*, which are checked here."""

    name: str
    """The function that made it."""
    df: "DataFrame"
    checkpoint: "str | PathLike[str] | None"
    rows: RowKind
    trigger: Trigger
    output_mode: OutputMode
    query_name: str | None
    mode: ReadMode
    window: int
    batch: int | None
    inherit: InheritProperties = field(init=False)
    options: dict[str, str] = field(init=False)
    trigger_options: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        if is_connect(self.df):
            raise UnsupportedDataFrame(
                f"{self.name}() cannot read a DataFrame of Spark Connect: its server would call "
                "back into a process of its own. Use a classic session, made with "
                "SparkSession.builder.master(...)."
            )
        require_dataframe(self.name, self.df, is_streaming=True)
        require_option(self.name, "rows", self.rows, ROW_KINDS)
        require_option(self.name, "mode", self.mode, READ_MODES)
        require_option(self.name, "output_mode", self.output_mode, _OUTPUT_MODES)
        choose_mode(self.df, self.mode, self.rows, self.name)  # as for each micro-batch
        if self.query_name is not None:
            require_text(self.name, "name", self.query_name)
        require_int(self.name, "window", self.window, least=1)
        if self.batch is not None:
            require_java_int(self.name, "batch", self.batch)
        self.options = {}
        if self.checkpoint is not None:
            path = require_path(self.name, "checkpoint", self.checkpoint)
            self.options["checkpointLocation"] = path
        self.trigger_options = trigger_options(self.name, self.trigger)
        self.inherit = inherit_properties(self.df)


def trigger_options(name: str, trigger: Trigger) -> dict[str, Any]:
    """Return the arguments for ``DataStreamWriter.trigger``; none for its default."""
    if trigger is None:
        return {}
    if isinstance(trigger, str):
        spark_name = _SPARK_NAMES.get(cast("str", trigger))
        if spark_name is None:
            raise ValueError(
                f"{name}: trigger must be a duration, 'available_now', 'once' or None, not "
                f"{trigger!r}"
            )
        return {spark_name: True}
    milliseconds = to_seconds(trigger, f"{name}: trigger") * 1000
    return {"processingTime": f"{milliseconds:.0f} milliseconds"}


# -- its run --------------------------------------------------------------------------------------
class _Abandoned(Exception):
    """Fails the function that Spark has called, so that the checkpoint lacks the micro-batch."""


def _is_logged(record: logging.LogRecord) -> bool:
    """Py4J logs every exception of a callback as an error; `_Abandoned` is not an error."""
    return not (record.exc_info and record.exc_info[0] is _Abandoned)


class QueryRun:
    """Starts the query, waits for its end, and waits between its micro-batches."""

    def __init__(
        self,
        plan: QueryPlan,
        on_batch: Callable[[MicroBatch[Any]], object],
        is_loop_closed: Callable[[], bool],
    ) -> None:
        """*on_batch* is called on a thread; it posts the micro-batch to the loop."""
        self._plan = plan
        self._on_batch = on_batch
        self._is_loop_closed = is_loop_closed
        self.keepalive: object = None
        """The subscription, while it waits for a micro-batch: the run then keeps it alive."""
        self._query: StreamingQuery | None = None
        self._is_cancelled = False
        self._reason: Exception | None = None  # why a micro-batch was not finished
        self._finished = 0  # micro-batches
        self._is_stateless = False  # which is known after the first one
        self._releases: SimpleQueue[None] = SimpleQueue()

    # -- from the loop ----------------------------------------------------------------------------
    def release(self) -> None:
        """The running micro-batch is over: Spark may write the checkpoint and continue."""
        self._releases.put(None)

    def cancel(self) -> None:
        """End every wait, now and later."""
        self._is_cancelled = True
        self.keepalive = None
        self._releases.put(None)

    # -- on a thread of the subscription ----------------------------------------------------------
    def run(self) -> None:
        """Run the query from its start to its end; raise its error, or why it ended too early."""
        watch_executors(self._plan.df.sparkSession.sparkContext, self)
        try:
            with explained(self._plan.df):
                self._run_query()
        except SparkSessionLost:
            raise  # the query of a lost session has stopped as well
        except Exception as error:
            if self._reason is not None:
                raise self._reason from error
            raise

    def _run_query(self) -> None:
        try:
            query = self._plan.inherit(self._start)()
            self._query = query
            while not query.awaitTermination(_CHECK_LOOP_EVERY):
                if self._is_loop_closed():
                    self.cancel()
                if self._is_cancelled:
                    query.stop()
        except Exception:
            if self._reason is not None or not self._is_cancelled:
                raise
        else:
            if not self._is_cancelled and not self._has_read_all(query):
                raise StreamStopped(self._plan.name)

    def _has_read_all(self, query: "StreamingQuery") -> bool:
        """Whether the query, which has ended without an error, has ended by itself."""
        match self._plan.trigger:
            case "once" if self._finished:
                return True
            case "once" | "available_now":
                return has_no_new_data(query)
            case _:
                return False

    def _start(self) -> "StreamingQuery":
        plan = self._plan
        logging.getLogger("py4j.clientserver").addFilter(_is_logged)  # it is added only once
        writer = plan.df.writeStream.foreachBatch(self._process).outputMode(plan.output_mode)
        writer = writer.options(**plan.options)
        if plan.trigger_options:
            writer = writer.trigger(**plan.trigger_options)
        if plan.query_name is not None:
            writer = writer.queryName(plan.query_name)
        return writer.start()

    def stop(self) -> None:
        """Stop the query. Call `cancel` before, or it waits for the end of the micro-batch."""
        with suppress(Exception):  # a lost session has stopped it
            if self._query is not None:
                self._query.stop()

    # -- on the thread that Spark calls -----------------------------------------------------------
    def _process(self, df: "DataFrame", batch_id: int) -> None:
        self._require_active()
        plan = self._plan
        # On this thread, because it blocks, and because the query's local properties are set here.
        rows = micro_batch_rows(
            df, plan.rows, plan.mode, window=plan.window, batch=plan.batch,
            is_query_stopped=partial(self._is_query_stopped, df),
        )  # fmt: skip
        self._on_batch(MicroBatch(batch_id, rows, df))
        self._wait_for_release(df)
        self._require_active()
        self._require_state(batch_id)
        self._finished += 1

    def _wait_for_release(self, df: "DataFrame") -> None:
        while True:
            try:
                return self._releases.get(timeout=_CHECK_QUERY_EVERY)
            except Empty:
                if self._is_query_stopped(df):
                    self._reason = StreamStopped(self._plan.name)
                    raise _Abandoned("the query was stopped while a batch was running") from None

    def _require_state(self, batch_id: int) -> None:
        """Fail while the checkpoint lacks the micro-batch, which can be repeated then."""
        assert self._query is not None, "it has called this"
        if self._is_stateless:
            return
        states = [*computed_state(self._query)]
        self._is_stateless = not states
        for computed, partitions in states:
            if computed < partitions:
                self._reason = BatchNotRead(self._plan.name, batch_id, computed, partitions)
                raise _Abandoned("a batch of a stateful query was not read")

    def _require_active(self) -> None:
        if self._is_cancelled:
            raise _Abandoned("the subscription has been cancelled; the batch will be repeated")

    def _is_query_stopped(self, df: "DataFrame") -> bool:
        query = self._query
        try:
            is_inactive = query is not None and not query.isActive
            return is_inactive or is_context_stopped(df.sparkSession.sparkContext)
        except Exception:
            return True  # the session is lost


class StreamSubscription(SteppedSubscription[MicroBatch[Any]]):
    """One subscription; every method runs on the loop's thread.

    A micro-batch arrives only while there is demand: the query starts at the first request, and
    continues when a micro-batch was processed and another one is requested.
    """

    __slots__ = ("_finalizer", "_is_running", "_is_started", "_run", "_threads")

    def __init__(self, downstream: Downstream[MicroBatch[Any]], plan: QueryPlan) -> None:
        super().__init__(downstream, f"{plan.name}()")
        on_batch = partial(self._loop_handle.call_soon_threadsafe, _weakly(self._on_batch))
        self._run = QueryRun(plan, on_batch, self._loop_handle.event_loop.is_closed)
        self._threads = CallThreads(
            self._loop_handle, plan.name, interrupt=self._run.stop, pool=NEW_THREADS
        )
        self._is_started = False
        self._is_running = False  # a micro-batch was handed over, and the query waits for its end
        # When it is dropped without a signal, for example because its loop was closed, the query
        # must end as well.
        self._finalizer = finalize(self, _release, self._run, self._threads)
        self._finalizer.atexit = False

    # -- decisions --------------------------------------------------------------------------------
    def _act(self) -> bool:
        if not self._is_started:
            self._is_started = True
            # A thread that waits for the query must not keep the subscription alive.
            self._threads.call(self._run.run, _weakly(self._on_end))
        if self._is_running and self._is_processed and self._demand:
            self._is_running = False
            self._run.release()
        self._keep_alive()
        return False

    def _close(self) -> None:
        """End the wait for demand first: stopping the query would wait for it."""
        self._run.cancel()
        self._threads.interrupt()
        self._finalizer()

    async def aclose(self) -> None:
        """Cancel, and wait until the query has stopped."""
        if self._downstream is not None:
            self.cancel()
        await self._threads.wait_done()

    # -- results of the threads -------------------------------------------------------------------
    def _on_batch(self, batch: MicroBatch[Any]) -> None:
        if self._downstream is None:
            return
        self._is_running, self._is_processed = True, False
        self._demand.take(1)
        self.push([batch])
        self._keep_alive()

    def _on_end(self, _: None, error: Exception | None) -> None:
        self._end(error)

    def _keep_alive(self) -> None:
        is_waiting = bool(self._demand) and self._downstream is not None
        self._run.keepalive = self if is_waiting else None


def _weakly(method: Callable[..., object]) -> Callable[..., None]:
    """Return a function that calls *method* if its object is still alive."""
    weak = WeakMethod(method)

    def call(*args: object) -> None:
        if (alive := weak()) is not None:
            alive(*args)

    return call


def _release(run: QueryRun, threads: CallThreads) -> None:
    """Safe inside the garbage collector: it starts no thread and does not touch the loop."""
    run.cancel()
    threads.stop()


# -- the flows -------------------------------------------------------------------------------------
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
        stopped the query, whatever it did then, with `JobCancelled` when it has cancelled a job.
    Cancels: returns at once; the job is cancelled, then the query is stopped, on a thread.
        ``aclose`` waits for that.
    Holds: up to *batch* - 1 rows, the rest of a batch; nothing in mode ``"rows"``, or of batches.
    Rules: 1.1, 3.4, 3.5, 3.13
    """
    plan = QueryPlan(
        name="from_stream", df=df, checkpoint=checkpoint, rows=rows, trigger=trigger,
        output_mode=output_mode, query_name=name, mode=mode, window=window, batch=batch,
    )  # fmt: skip
    flow: Flow[Any] = from_push(
        partial(_MicroBatchRows, source=_micro_batches(plan)),
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
    stateful query (aggregation, deduplication) needs all rows of a micro-batch to be read, also of
    one that is skipped: Spark keeps the state of what it computes.

    The arguments are those of `from_stream`.

    ::

        from_micro_batches(df, checkpoint="…")
        b-----b-----b-->

    Demand: passed through: at demand 0 the query waits, and plans no micro-batch.
    Completes: with *trigger* ``"available_now"`` or ``"once"``, when all is read and one more
        micro-batch is requested; otherwise never.
    Fails: when the query fails, with PySpark's exception; with `SparkSessionLost` when the session
        is lost, with `StreamStopped` when other code has stopped the query, with `BatchNotRead`
        when a micro-batch of a stateful query was not read, and another one is requested.
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
    return from_push(partial(StreamSubscription, plan=plan), name=plan.name, checked=True)


@dataclass(eq=False, repr=False)
class _MicroBatchRows(SequentialCoordinator[Numbered]):
    """Requests a micro-batch when a row is requested and all rows before have been processed.

    Spark writes the checkpoint then, so it covers only rows that have been processed.
    """

    source: Flow[MicroBatch[Any]]

    def begin(self) -> None:
        self._micro_batches = self.subscribe_to(self.source)

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
        else:
            self.release_active()
            self._request_micro_batch()


def _numbered(batch_id: int, row: Any) -> Numbered:
    return batch_id, row
