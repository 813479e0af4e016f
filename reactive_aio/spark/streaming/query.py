"""One run of a streaming query: the calls that block, made on threads.

Spark calls a function with each micro-batch (``foreachBatch``), on a thread of py4j, and writes the
checkpoint when the function has returned. So the function waits there until the batch is over; to
the query, the time in which nobody asks for anything is a function that takes long.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from ..dataframe import from_dataframe
from ..failures import telling
from ..jobs import Inherit
from ..mode import Mode
from ..rows import Kind
from .microbatch import MicroBatch, StreamStopped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ("Plan", "Query")

_OFTEN: Final = 1.0
"""Seconds between two looks whether the subscription was forgotten without a signal."""
_LOOK: Final = 0.25
"""Seconds between two looks whether somebody has stopped the query that waits here: it can be
stopped from anywhere, and whoever does so waits until this wait is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be run, for each subscription anew."""

    df: "DataFrame"
    inherit: Inherit
    name: str
    kind: Kind
    mode: Mode
    window: int
    batch: int | None
    options: dict[str, str]
    output_mode: str
    trigger: dict[str, Any]
    query_name: str | None


class _Left(Exception):
    """Fails the function that Spark has called, so that the batch is not in the checkpoint."""


def _worth_a_line(record: logging.LogRecord) -> bool:
    """py4j logs whatever a function of ours raises as an error; leaving is none."""
    return not (record.exc_info and record.exc_info[0] is _Left)


class Query:
    """Starts the query, waits for its end, and waits between its batches."""

    def __init__(
        self,
        plan: Plan,
        arrived: Callable[[MicroBatch[Any]], object],
        is_alone: Callable[[], bool],
    ) -> None:
        """*is_alone* tells whether the loop that asks for batches is closed."""
        self._plan = plan
        self._arrived = arrived
        self._is_alone = is_alone
        self.keeps: object = None
        """Who waits for a batch: to be kept alive as long, though nobody else may refer to it."""
        self._query: StreamingQuery | None = None
        self._left = False
        self._stopped = False  # by somebody else, which was noticed while a batch was under way
        self._over: SimpleQueue[None] = SimpleQueue()

    # -- from the loop ----------------------------------------------------------------------------
    def release(self) -> None:
        """The batch that waits is over: Spark may write the checkpoint, and go on."""
        self._over.put(None)

    def leave(self) -> None:
        """End every wait, and never wait again."""
        self._left = True
        self.keeps = None
        self._over.put(None)

    # -- on a thread of the subscription ----------------------------------------------------------
    def run(self) -> None:
        """Run the query from its start to its end; raise what it failed with."""
        with telling(self._plan.df):
            try:
                query = self._plan.inherit(self._start)()
                self._query = query
                while not query.awaitTermination(_OFTEN):
                    if self._is_alone():
                        self.leave()
                    if self._left:
                        query.stop()
            except Exception as error:
                if self._stopped:
                    raise StreamStopped(self._plan.name) from error
                if not self._left:
                    raise

    def _start(self) -> "StreamingQuery":
        plan = self._plan
        logging.getLogger("py4j.clientserver").addFilter(_worth_a_line)  # the same one, once
        writer = plan.df.writeStream.foreachBatch(self._each).outputMode(plan.output_mode)
        writer = writer.options(**plan.options)
        if plan.trigger:
            writer = writer.trigger(**plan.trigger)
        if plan.query_name is not None:
            writer = writer.queryName(plan.query_name)
        return writer.start()

    def stop(self) -> None:
        """Stop the query. To be called when it has been left, or else it waits for the batch."""
        with suppress(Exception):  # a session that is gone has stopped it
            if self._query is not None:
                self._query.stop()

    # -- on the thread that Spark calls -----------------------------------------------------------
    def _each(self, df: "DataFrame", batch_id: int) -> None:
        self._refuse()
        self._arrived(self._made(df, batch_id))
        while True:
            try:
                self._over.get(timeout=_LOOK)
                break
            except Empty:
                if self._is_stopped(df):
                    self._stopped = True
                    raise _Left("the query was stopped while a batch was under way") from None
        self._refuse()

    def _made(self, df: "DataFrame", batch_id: int) -> MicroBatch[Any]:
        # Here, because it blocks; and because here are the local properties of the query's jobs.
        plan = self._plan
        rows = from_dataframe(
            df, rows=plan.kind, mode=plan.mode, window=plan.window, batch=plan.batch
        )
        return MicroBatch(batch_id, rows, df)

    def _refuse(self) -> None:
        if self._left:
            raise _Left("the subscription has been cancelled; the batch will come again")

    def _is_stopped(self, df: "DataFrame") -> bool:
        context: Any = df.sparkSession.sparkContext
        try:
            query = self._query
            return context._jsc.sc().isStopped() or (query is not None and not query.isActive)
        except Exception:
            return True  # the session is gone
