"""The rows of a DataFrame as a flow: one Spark job per partition, started when a row of it is due.

PySpark's ``toLocalIterator`` computes a partition when its first row is asked for, and none before
or after it; drained on a thread under demand it is a publisher already. What is left to do is the
way out, which PySpark does not offer: a blocked call is ended by cancelling the job under it, and
an iterator that is left half-way must not unpickle the rest of its partition in whichever thread
happens to drop it.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from .._sources.thread import Begun, threaded
from .failures import check, telling
from .leaving import leave

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame, Row

    from ..flow import Flow

__all__ = ("from_dataframe",)

_INTERRUPT: Final = "spark.job.interruptOnCancel"
_Inherit = Callable[[Callable[[], "Iterator[Row]"]], Callable[[], "Iterator[Row]"]]


def from_dataframe(df: "DataFrame", *, chunk: int = 1024) -> "Flow[Row]":
    """Emit the rows of *df*, in its order, computed as they are asked for.

    Each subscription runs jobs of its own, on a thread of its own, with the local properties (the
    scheduler pool, the job group, the job tags) that were set in the thread that called this.
    Elements are ``pyspark.sql.Row`` as ``collect()`` returns them; *chunk* is how many of them
    travel from the thread to the loop together, at most.

    ::

        from_dataframe(df)
        r--r--r--|

    Demand: passed through, at most *chunk* rows at a time. At demand 0 no job runs, and a
        partition's job is started when its first row is due. Spark itself computes whole
        partitions: up to one partition is in the driver's JVM ahead of demand, so make partitions
        small where rows are large (``df.repartition(n)``).
    Completes: behind the last row; this is found out by asking for one more.
    Fails: when a job fails, with PySpark's exception for what went wrong and Spark's message
        (the py4j error is its ``__cause__``); with `SparkSessionLost` when the session was stopped
        or its JVM died.
    Cancels: returns at once. The running job is cancelled, its tasks are interrupted, and the
        iterator is closed on its own thread, which then ends.
    Holds: nothing.
    Rules: 1.1, 3.4, 3.5, 3.13

    Raises `UnsupportedDataFrame` for what this cannot read: a streaming DataFrame, or one of
    Spark Connect. Like most methods of a DataFrame, this call asks the JVM something, and blocks
    for about a millisecond.
    """
    check(df)
    inherit = _inheriting(df)

    def begin() -> "Begun[Row]":
        job = _Job(df, inherit)
        return job.rows(), job.cancel

    return threaded(begin, name="from_dataframe", chunk=chunk)


def _inheriting(df: "DataFrame") -> _Inherit:
    """Make what runs a function with the local properties, as they are now, of this thread."""
    from pyspark import util

    untyped = cast("Any", util)
    with telling(df):
        return cast("_Inherit", untyped.inheritable_thread_target(df.sparkSession))


class _Job:
    """What one subscription runs in Spark. All of it happens on threads."""

    def __init__(self, df: "DataFrame", inherit: _Inherit) -> None:
        self._df = df
        self._inherit = inherit
        self._tag = f"reactive_aio-{uuid4().hex}"

    def rows(self) -> "Iterator[Row]":
        """Iterate over the rows, and leave the iteration quickly wherever it is left."""
        with telling(self._df):
            rows = self._inherit(self._start_alone)()
            try:
                # Not `yield from`: closing this generator would first close that one.
                for row in rows:  # noqa: UP028
                    yield row
            finally:
                leave(rows)

    def _start_alone(self) -> "Iterator[Row]":
        # All that inherit from one thread get the very same object, and would share their tags:
        # inheriting once more, from this thread, makes a copy.
        return _inheriting(self._df)(self._start)()

    def _start(self) -> "Iterator[Row]":
        with _tagged(self._df.sparkSession.sparkContext, self._tag):
            # A DataFrame keeps its plan and what has been computed of it: shuffles, and also that
            # their job was cancelled, which would fail every later subscription. So a new one.
            fresh = self._df.select("*")
            # Not its own toLocalIterator: that runs its jobs after its query has ended, and Spark
            # 4.3 keeps what such jobs return, every row of it, until the session is stopped.
            return _rdd(fresh).toLocalIterator()

    def cancel(self) -> None:
        """Cancel the job that runs now, if one does; there may be a next one."""
        # A session that is gone has no jobs, and the call that blocks has noticed by itself.
        with suppress(Exception):
            self._df.sparkSession.sparkContext.cancelJobsWithTag(self._tag)


def _rdd(df: "DataFrame") -> "RDD[Row]":
    """``df.rdd``, and on Python 3.11 without the lock of its cached_property.

    There is one lock for all DataFrames, and it is held while shuffles run: one subscription would
    wait for the other, and so would anybody's ``df.rdd``, on the loop as well.
    """
    found = getattr_static(type(df), "rdd")
    if isinstance(found, cached_property):
        return cast("RDD[Row]", found.func(df))
    return df.rdd


@contextmanager
def _tagged(context: "SparkContext", tag: str) -> Generator[None, None, None]:
    """Tag the jobs of what is begun here: they keep what was set in the thread that began them.

    The thread may be shared (``PYSPARK_PIN_THREAD=false``), so it gets everything back.
    """
    before = cast("str", context.getLocalProperty(_INTERRUPT))  # or None, which removes it
    context.addJobTag(tag)
    context.setLocalProperty(_INTERRUPT, "true")  # else a cancelled task keeps its slot to its end
    try:
        yield
    finally:
        with suppress(Exception):  # a session that was lost meanwhile has nothing left to restore
            context.removeJobTag(tag)
            context.setLocalProperty(_INTERRUPT, before)
