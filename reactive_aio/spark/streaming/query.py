"""A streaming query: its plan; its run, on threads, whose calls block; and its subscription.

Spark calls a function with each micro-batch (``foreachBatch``), on a thread of Py4J, and writes the
checkpoint when the function has returned. So the function waits there until the micro-batch is
over; to the query, time without demand is time in which the function runs.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from os import PathLike, fspath
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast
from weakref import WeakMethod, finalize

from ...errors import ReactiveError
from ...stage import Downstream, Duration, FlowSubscription, LoopHandle, require_int, to_seconds
from .._internals import is_context_stopped
from ..call_threads import CallThreads
from ..dataframe import from_dataframe
from ..delivery import Delivery
from ..errors import (
    UnsupportedDataFrame,
    explained,
    is_connect,
    require_option,
    require_pyspark,
    require_unique_names,
)
from ..read_mode import READ_MODES, ReadMode
from ..rows import ROW_KINDS, RowKind, unreadable_column
from ..tagged_jobs import InheritProperties, inherit_properties

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from ..dataframe import SparkFlow

__all__ = (
    "MicroBatch", "OutputMode", "QueryPlan", "StreamStopped", "StreamSubscription", "Trigger",
    "trigger_options",
)  # fmt: skip

T_co = TypeVar("T_co", covariant=True)
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


class StreamStopped(ReactiveError):
    """The streaming query was stopped by other code before this subscription had ended."""

    def __init__(self, function: str) -> None:
        super().__init__(
            f"{function}: the streaming query was stopped (StreamingQuery.stop(), or another query "
            "on the same checkpoint) before a micro-batch was over. Subscribe again: from its "
            "checkpoint on, that batch is repeated."
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
        _require_streaming(self.name, self.df)
        require_option(self.name, "rows", self.rows, ROW_KINDS)
        require_option(self.name, "mode", self.mode, READ_MODES)
        require_option(self.name, "output_mode", self.output_mode, _OUTPUT_MODES)
        require_unique_names(self.df.schema, self.rows)
        require_int(self.name, "window", self.window, least=1)
        if self.batch is not None:
            require_int(self.name, "batch", self.batch, least=1)
        path = self.checkpoint
        self.options = {} if path is None else {"checkpointLocation": fspath(path)}
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
        self._was_stopped = False  # by other code, while a micro-batch was running
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
        """Run the query from its start to its end; raise its error."""
        with explained(self._plan.df):
            try:
                query = self._plan.inherit(self._start)()
                self._query = query
                while not query.awaitTermination(_CHECK_LOOP_EVERY):
                    if self._is_loop_closed():
                        self.cancel()
                    if self._is_cancelled:
                        query.stop()
            except Exception as error:
                if self._was_stopped:
                    raise StreamStopped(self._plan.name) from error
                if not self._is_cancelled:
                    raise

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
        rows = from_dataframe(
            df, rows=plan.rows, mode=plan.mode, window=plan.window, batch=plan.batch
        )
        self._on_batch(MicroBatch(batch_id, rows, df))
        while True:
            try:
                self._releases.get(timeout=_CHECK_QUERY_EVERY)
                break
            except Empty:
                if self._is_query_stopped(df):
                    self._was_stopped = True
                    raise _Abandoned("the query was stopped while a batch was running") from None
        self._require_active()

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


class StreamSubscription(FlowSubscription):
    """One subscription. Every method runs on the loop's thread."""

    def __init__(self, plan: QueryPlan, downstream: Downstream[MicroBatch[Any]]) -> None:
        self._downstream: Downstream[MicroBatch[Any]] | None = downstream
        self._name = plan.name
        self._loop_handle = LoopHandle(f"{plan.name}()")
        on_batch = partial(self._loop_handle.call_soon_threadsafe, _weakly(self._on_batch))
        self._run = QueryRun(plan, on_batch, self._loop_handle.event_loop.is_closed)
        self._threads = CallThreads(self._loop_handle, plan.name, size=1, interrupt=self._run.stop)
        self._delivery = Delivery[MicroBatch[Any]]()
        self._is_started = False
        self._is_running = False  # a micro-batch was handed over, and the query waits for its end
        # When it is dropped without a signal, for example because its loop was closed, the query
        # must end as well.
        self._finalizer = finalize(self, _release, self._run, self._threads)
        self._finalizer.atexit = False

    # -- the subscription that the island sees ----------------------------------------------------
    def request(self, n: int, /) -> None:
        self._delivery.request(n)
        if not self._is_started:
            self._is_started = True
            # A thread that waits for the query must not keep the subscription alive.
            self._threads.call(self._run.run, _weakly(self._on_end))
        self._advance()

    def processed(self) -> None:
        self._delivery.is_processed = True
        self._advance()

    def cancel(self) -> None:
        """End the wait for demand first: stopping the query would wait for it."""
        self._downstream = None
        self._delivery.clear()
        self._run.cancel()
        self._threads.interrupt()
        self._finalizer()

    async def aclose(self) -> None:
        """Wait, after a cancellation, until the query has stopped."""
        await self._threads.wait_done()

    # -- results of the threads -------------------------------------------------------------------
    def _on_batch(self, batch: MicroBatch[Any]) -> None:
        if self._downstream is not None:
            self._delivery.put(iter((batch,)), 1)
            self._advance()

    def _on_end(self, _: None, error: Exception | None) -> None:
        downstream, self._downstream = self._downstream, None
        if downstream is None:
            return
        self._finalizer()
        if error is None and (self._is_running or self._delivery.remaining):
            error = StreamStopped(self._name)
        if error is None:
            downstream.complete()
        else:
            downstream.fail(error)

    # -- handing over ----------------------------------------------------------------------------
    def _advance(self) -> None:
        downstream = self._downstream
        if downstream is None:
            return
        if self._delivery.is_ready:
            self._is_running = True
            self._delivery.push(downstream)
        elif self._delivery.needs_elements and self._is_running:
            self._is_running = False
            self._run.release()
        waits = self._delivery.demand and self._downstream is not None
        self._run.keepalive = self if waits else None


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
