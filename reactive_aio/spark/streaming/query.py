"""One run of a streaming query: the calls that block, made on threads.

Spark calls a function with each micro-batch (``foreachBatch``), on a thread of Py4J, and writes the
checkpoint when the function has returned. So the function waits there until the micro-batch is
over; to the query, time without demand is time in which the function runs.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from .._internals import is_context_stopped
from ..dataframe import from_dataframe
from ..errors import explained
from ..read_mode import ReadMode
from ..rows import RowKind
from ..tagged_jobs import InheritProperties
from .micro_batch import MicroBatch, StreamStopped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ("QueryPlan", "QueryRun")

_CHECK_LOOP_EVERY: Final = 1.0
"""Seconds between two checks whether the loop of the subscription was closed."""
_CHECK_QUERY_EVERY: Final = 0.25
"""Seconds between two checks whether the query was stopped while it waits for demand. Any code can
stop it, and the call that does so returns when this wait has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """The query that each subscription runs."""

    df: "DataFrame"
    inherit: InheritProperties
    name: str
    kind: RowKind
    mode: ReadMode
    window: int
    batch: int | None
    options: dict[str, str]
    output_mode: str
    trigger: dict[str, Any]
    query_name: str | None


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
        if plan.trigger:
            writer = writer.trigger(**plan.trigger)
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
        self._on_batch(self._micro_batch(df, batch_id))
        while True:
            try:
                self._releases.get(timeout=_CHECK_QUERY_EVERY)
                break
            except Empty:
                if self._is_query_stopped(df):
                    self._was_stopped = True
                    raise _Abandoned("the query was stopped while a batch was running") from None
        self._require_active()

    def _micro_batch(self, df: "DataFrame", batch_id: int) -> MicroBatch[Any]:
        # On this thread, because it blocks, and because the query's local properties are set here.
        plan = self._plan
        rows = from_dataframe(
            df, rows=plan.kind, mode=plan.mode, window=plan.window, batch=plan.batch
        )
        return MicroBatch(batch_id, rows, df)

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
