"""Rows by PySpark's ``toLocalIterator``: public from end to end, and always there.

It computes a partition when its first row is asked for, and none before or after it; drained on a
thread under demand it is a publisher already. What is left to do is the way out, which PySpark does
not offer: a blocked call is ended by cancelling the job under it, and an iterator that is left
half-way must not unpickle the rest of its partition in whichever thread happens to drop it.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, cast

from .._sources.thread import Begun, threaded
from .counting import counted
from .jobs import Jobs
from .leaving import leave
from .observed import Observed
from .progress import NOBODY, Meter
from .rows import Kind, conversion

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, Row

    from ..flow import Flow

__all__ = ("by_local_iterator",)


def by_local_iterator(
    make: Callable[[], Jobs], kind: Kind, *, name: str, batch: int, meter: Meter
) -> "Flow[Any]":
    """The rows of a DataFrame, at most *batch* of them on their way from the thread to the loop."""

    def begin() -> "Begun[Any]":
        jobs = make()
        return _rows(jobs, conversion(kind), meter), jobs.cancel

    return threaded(begin, name=name, chunk=batch)


def _rows(jobs: Jobs, convert: "Callable[[Row], Any] | None", meter: Meter) -> Iterator[Any]:
    """Iterate over the rows, and leave the iteration quickly wherever it is left."""

    observed: Observed | None = None
    dataset: Any = None

    def start() -> "Iterator[Row]":
        nonlocal observed, dataset
        # Not its own toLocalIterator: that runs its jobs after its query has ended, and Spark
        # 4.3 keeps what such jobs return, every row of it, until the session is stopped.
        df = jobs.fresh()
        untyped: Any = df
        dataset = untyped._jdf
        observed = Observed.by_any(dataset, jobs.context)
        rdd = _rdd(df)
        rows = rdd.toLocalIterator()
        if meter is not NOBODY and counted(rows, meter):
            meter.add_by_thread("partitions", rdd.getNumPartitions())
        return rows

    with jobs.telling():
        rows = jobs.begin(start)
        try:
            # Not `yield from`: closing this generator would first close that one.
            for row in rows:
                yield row if convert is None else convert(row)
        finally:
            leave(rows)
            if observed is not None:
                observed.tell(dataset)


def _rdd(df: "DataFrame") -> "RDD[Row]":
    """``df.rdd``, and on Python 3.11 without the lock of its cached_property.

    There is one lock for all DataFrames, and it is held while shuffles run: one subscription would
    wait for the other, and so would anybody's ``df.rdd``, on the loop as well.
    """
    found = getattr_static(type(df), "rdd")
    if isinstance(found, cached_property):
        return cast("RDD[Row]", found.func(df))
    return df.rdd
