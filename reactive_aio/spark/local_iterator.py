"""Mode ``"rows"``: PySpark's ``toLocalIterator``, drained on a thread under demand.

It is public and always available. It computes a partition when its first row is requested, and not
before, so drained on a thread under demand it is a publisher already. What PySpark does not offer
is leaving early: a blocked call ends only when the job under it is cancelled, and an iterator that
is closed inside a partition unpickles the rest of it, at 3 µs a row. That rest has been computed
and waits in the JVM, so it is read as bytes and dropped, which is fast and lets the JVM's side end
without an error in its log; when even that takes too long, the connection is cut.

Leaving early and counting partitions use the reader inside PySpark's generator. Where it is not
found, PySpark closes the iterator itself, and a `Progress` has rows but no partitions.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from inspect import isgenerator
from struct import Struct
from time import monotonic
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from ._internals import LocalIteratorReader, java_dataset, row_rdd
from .progress import NO_PROGRESS, MakeMeter, ProgressMeter
from .pulling import Interruptible, from_pulling
from .rows import RowKind, from_spark_row
from .tagged_jobs import TaggedJobs

if TYPE_CHECKING:
    from pyspark.sql import Row

    from ..flow import Flow

DRAIN_TIMEOUT: Final = 0.25  # seconds of reading before the connection is cut
_INT: Final = Struct("!i")
_STOP: Final = _INT.pack(0)  # sent instead of a request for the next partition
_CHUNK: Final = 1 << 20


def from_local_iterator(
    make_jobs: Callable[[], TaggedJobs], kind: RowKind, *, batch: int, make_meter: MakeMeter
) -> "Flow[Any]":
    """Emit the rows of a DataFrame, handing at most *batch* of them from the thread at a time."""

    def begin(meter: ProgressMeter) -> "Interruptible[Any]":
        jobs = make_jobs()
        return _rows(jobs, from_spark_row(kind), meter), jobs.cancel

    return from_pulling(begin, name="from_dataframe", chunk=batch, make_meter=make_meter)


def _rows(
    jobs: TaggedJobs, convert: "Callable[[Row], Any] | None", meter: ProgressMeter
) -> Iterator[Any]:
    with jobs.explained():
        with jobs.starting():
            # Not its own toLocalIterator: that runs its jobs after its query has ended, and Spark
            # 4.3 keeps what such jobs return, every row of it, until the session is stopped.
            df = jobs.plan()
            dataset = java_dataset(df)
            publish = jobs.observe(dataset)
            rdd = row_rdd(df)
            rows = rdd.toLocalIterator()
            with suppress(Exception):  # where it is not found, errors cost more
                LocalIteratorReader(rows).raise_plainly()
            if meter is not NO_PROGRESS and _count_partitions(rows, meter):
                meter.add_from_thread("partitions", rdd.getNumPartitions())
        try:
            # Not `yield from`: closing this generator would close *rows* first.
            for row in rows:
                yield row if convert is None else convert(row)
        finally:
            close_local_iterator(rows)
            if publish is not None:
                with suppress(Exception):  # a lost session, which the flow reports
                    publish(dataset)


# -- leaving early --------------------------------------------------------------------------------
def close_local_iterator(rows: Iterator[Any]) -> None:
    """Close *rows*, quickly even inside a partition. Never raises."""
    with suppress(Exception):
        reader = LocalIteratorReader(rows)
        if reader.is_inside_partition:  # drop the rest and end the conversation
            try:
                reader.connection.settimeout(DRAIN_TIMEOUT)
                _skip_frames(reader.file, deadline=monotonic() + DRAIN_TIMEOUT)
                reader.file.write(_STOP)
                reader.file.flush()
            except (OSError, EOFError):
                with suppress(OSError):  # cut the connection
                    reader.connection.shutdown(socket.SHUT_RDWR)
            reader.set_done()
    with suppress(Exception):
        if isgenerator(rows):
            rows.close()


def _skip_frames(file: BinaryIO, deadline: float) -> None:
    """Skip frames of ``[int32 length][bytes]``; a negative length ends the partition."""
    while len(head := file.read(_INT.size)) == _INT.size:
        (length,) = _INT.unpack(head)
        if length < 0:
            return
        while length:
            if monotonic() > deadline:
                raise TimeoutError
            chunk = file.read(min(length, _CHUNK))
            if not chunk:
                raise EOFError
            length -= len(chunk)
    raise EOFError


# -- progress -------------------------------------------------------------------------------------
def _count_partitions(rows: Iterator[Any], meter: ProgressMeter) -> bool:
    """Count the partitions of *rows* as they are read, if its reader is found; return whether."""
    with suppress(Exception):
        LocalIteratorReader(rows).wrap_load_stream(partial(_load_counted, meter))
        return True
    return False


def _load_counted(
    meter: ProgressMeter, load_stream: Callable[[Any], Iterator[Any]], file: BinaryIO
) -> Iterator[Any]:
    """Read the rows of one partition, and count it and its bytes."""

    def read(size: int) -> bytes:
        content = file.read(size)
        meter.add_from_thread("bytes", len(content))
        return content

    meter.add_from_thread("launched", 1)
    meter.add_from_thread("computed", 1)
    yield from load_stream(SimpleNamespace(read=read))
    meter.add_from_thread("done", 1)
