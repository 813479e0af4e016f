"""Rows of a DataFrame of Spark Connect: Arrow batches from a server, by PySpark's own client.

There is no demand in that protocol. The server computes the whole result, as one job, as soon as it
is asked for any of it, and keeps what the client has not fetched. So demand decides when it begins
and how much is fetched, and a subscription that ends interrupts it.

PySpark's client does the fetching: it knows the channel with its credentials and its interceptors,
fetches on when a connection broke, and tells the server what it may forget. It blocks, so a thread
drains it under demand. `connect_missing` probes what is used of it beyond what PySpark documents,
and tests/spark/test_connect_contract.py pins it:

* ``DataFrame._plan``: what the server is sent, and the observations in it;
* ``SparkConnectClient.to_table_as_iterator``, ``add_tag``, ``interrupt_tag``;
* ``thread_local`` and ``_retrying`` of a client, which a copy of it may have for itself.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from math import ceil
from threading import Event, local
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from .._sources.thread import Begun, threaded
from .batches import arrow_schema
from .failures import telling
from .progress import Meter
from .rows import Kind, conversion, maker
from .values import columns_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from ..flow import Flow

__all__ = (
    "Operation", "PublicOperation", "Remote", "by_connect", "by_remote_iterator", "connect_missing",
)  # fmt: skip

Convert = Callable[[Any], Iterable[Any]]

_MOST_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_TAKEN: Final = 10_000
"""Rows that Spark may be told to take: it collects them before it sends the first one."""
_NEEDED: Final = (
    "_retrying", "add_tag", "interrupt_tag", "thread_local", "to_table_as_iterator",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Remote:
    """What is to be known of a session of Spark Connect; the server is asked."""

    tags: frozenset[str]
    """Those that operations have which are begun in the thread that made the flow."""
    most: int | None
    """How many rows the server sends together at most; None when that is not limited."""
    takes_first: bool
    """Whether its limits take the first rows: before 4.2 they took any, of all partitions."""

    @classmethod
    def of(cls, df: "DataFrame") -> "Remote":
        session = df.sparkSession
        with telling(df):
            most = int(session.conf.get(_MOST_ROWS) or 0)
            version = tuple(map(int, session.version.split(".")[:2]))
            return cls(
                tags=frozenset(session.getTags()),
                most=most if most > 0 else None,
                takes_first=version >= (4, 2),
            )

    def first(self, df: "DataFrame", count: int) -> "DataFrame":
        """The first *count* rows of *df*, if they are few; else more of them.

        At the very end of a plan a limit takes them in order, of one partition after the other.
        """
        return df.limit(count) if count <= _TAKEN and self.takes_first else df


def connect_missing(df: "DataFrame") -> str | None:
    """Say what of PySpark's client is not what it must be, or None."""
    untyped: Any = df
    client = untyped.sparkSession.client
    for owner, name in (*((client, name) for name in _NEEDED), (untyped, "_plan")):
        if not hasattr(owner, name):
            return f"this version of PySpark has no {type(owner).__name__}.{name}"
    return None


# -- flows ----------------------------------------------------------------------------------------
Make = Callable[[], "DataFrame"]
"""Makes the DataFrame that is computed; called on a thread."""


def by_connect(
    make: Make, schema: "StructType", remote: Remote, kind: Kind, *, name: str, batch: int,
    meter: Meter,
) -> "Flow[Any]":  # fmt: skip
    """Rows of *schema*, at most *batch* of them on their way from the thread to the loop."""
    convert = _slices(schema, batch) if kind == "batch" else _rows(schema, kind, batch)
    together = batch if kind == "batch" else 1
    holds = None if remote.most is None else ceil(remote.most / together) - 1

    def begin() -> "Begun[Any]":
        operation = Operation(make(), remote.tags, meter)
        return operation.elements(convert), operation.cancel

    return threaded(begin, name=name, chunk=max(1, batch // together), holds=holds)


def by_remote_iterator(
    make: Make, _: "StructType", remote: Remote, kind: Kind, *, name: str, batch: int,
    meter: Meter,
) -> "Flow[Any]":  # fmt: skip
    """The same by the ``toLocalIterator`` of such a DataFrame: public from end to end."""
    convert = conversion(kind)

    def begin() -> "Begun[Any]":
        operation = PublicOperation(make(), remote.tags, meter)
        rows = iter if convert is None else partial(map, convert)
        return operation.elements(rows), operation.cancel

    return threaded(begin, name=name, chunk=batch)


def _rows(schema: "StructType", kind: Kind, most: int) -> Convert:
    """Rows, made *most* at a time: no other thread runs while columns become lists."""
    columns, make = columns_of(schema), maker(kind, schema.names)

    def convert(batch: Any) -> Iterator[Any]:
        for start in range(0, batch.num_rows, most):
            piece = batch.slice(start, most)
            yield from make(columns(piece), piece.num_rows)

    return convert


def _slices(schema: "StructType", most: int) -> Convert:
    """Batches as those of ``toArrow()``, of *most* rows."""
    import pyarrow

    untyped: Any = pyarrow
    wanted = arrow_schema(schema)

    def convert(batch: Any) -> Iterator[Any]:
        table = untyped.Table.from_batches([batch]).cast(wanted)
        return iter(table.to_batches(max_chunksize=most))

    return convert


# -- operations -----------------------------------------------------------------------------------
class PublicOperation:
    """What one subscription runs at the server, under a tag of its own, by what is public."""

    def __init__(self, df: "DataFrame", tags: frozenset[str], meter: Meter) -> None:
        self._df: Any = df
        self._tags = tags
        self._tag = f"reactive_aio-{uuid4().hex}"
        self._meter = meter
        self._left = Event()

    def elements(self, convert: Convert) -> Iterator[Any]:
        """Run it, and iterate over what *convert* makes of its pieces. On a thread."""
        with telling(self._df), closing(self._pieces()) as pieces:
            try:
                for piece in pieces:
                    yield from convert(piece)
            except GeneratorExit:  # left half-way
                self.cancel()
                raise
            except Exception as error:
                _drop_frames(error)
                if not self._left.is_set():  # else nobody wants to know what it was about
                    raise

    def _pieces(self) -> Generator[Any, None, None]:
        """Lists of rows."""
        session = self._df.sparkSession
        for tag in (*self._tags, self._tag):
            session.addTag(tag)
        rows = self._df.toLocalIterator()
        with closing(rows):
            for row in rows:
                yield (row,)

    def cancel(self) -> None:
        """Have the server stop it. It may not have begun yet, so this is called again."""
        self._left.set()
        with suppress(Exception):  # what cannot be reached any more runs nothing for us
            self._df.sparkSession.interruptTag(self._tag)


def _drop_frames(error: BaseException | None) -> None:
    """Forget where in PySpark *error* was raised.

    Those frames keep the call that failed, and with it a pool of threads, until the garbage
    collector finds them: an error of gRPC's is the call that raised it.
    """
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


class Operation(PublicOperation):
    """The same, by Arrow batches, and able to leave a server that does not answer."""

    def __init__(self, df: "DataFrame", tags: frozenset[str], meter: Meter) -> None:
        super().__init__(df, tags, meter)
        self._client = self._own(self._df.sparkSession.client)

    def _own(self, client: Any) -> Any:
        """A client over the same channel and session, with its own tags and its own patience.

        PySpark tries for ten minutes to reach a server that is gone, and sleeps in between. A
        subscription that was cancelled meanwhile must not leave its thread behind for so long.
        """
        own, patience = copy(client), client._retrying

        def retrying() -> Any:
            again = patience()
            again._sleep = self._sleep
            return again

        own.thread_local, own._retrying = local(), retrying
        return own

    def _sleep(self, seconds: float) -> None:
        if self._left.wait(seconds):
            raise RuntimeError("the subscription has been cancelled")

    def _pieces(self) -> Generator[Any, None, None]:
        """Record batches."""
        for tag in (*self._tags, self._tag):
            self._client.add_tag(tag)
        plan = self._df._plan
        found = self._client.to_table_as_iterator(plan.to_proto(self._client), plan.observations)
        with closing(found):
            for told in found:
                if not hasattr(told, "to_batches"):
                    continue  # the schema, which is known
                for batch in told.to_batches():
                    self._meter.add_by_thread("bytes", batch.nbytes)
                    yield batch

    def cancel(self) -> None:
        self._left.set()
        with suppress(Exception):
            self._client.interrupt_tag(self._tag)
