"""Mode ``"connect"``: Arrow batches from a Spark Connect server, fetched by PySpark's own client.

The protocol has no demand. The server computes the whole result, as one job, as soon as any of it
is requested, and keeps what the client has not fetched. So demand decides when the operation begins
and how much is fetched, and a subscription that ends interrupts it.

PySpark's client knows the channel with its credentials and interceptors, continues after a
connection broke, and acknowledges what the server may release. It blocks, so a thread drains it
under demand.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import ceil
from threading import Event
from typing import TYPE_CHECKING, Any, Final, cast

from ._internals import arrow_schema, connect_client, connect_responses, dead_local_server
from .errors import explained
from .progress import MakeMeter, ProgressMeter
from .pulling import Interruptible, from_pulling
from .rows import RowKind, cut, from_spark_row, row_converter, rows_per_batch
from .tagged_jobs import new_tag

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from ..flow import Flow

Convert = Callable[[Any], Iterable[Any]]
"""Makes the elements of a part of the result."""

LARGEST_PART: Final = 8 << 20
"""Bytes of a batch of which rows are made at a time, about."""
_LARGEST_LIMIT: Final = 10_000
"""Rows that a plan is limited to, at most: Spark collects them before it sends the first one."""


@dataclass(frozen=True, slots=True)
class ConnectSession:
    """The properties of a Spark Connect session that a flow needs. `of` asks the server."""

    tags: frozenset[str]
    """The tags of operations started in the thread that made the flow."""
    rows_per_batch: int | None
    """How many rows the server sends together at most; None when that is not limited."""
    has_ordered_limit: bool
    """Whether a limit takes the first rows: before 4.2 it took any, of all partitions."""

    @classmethod
    def of(cls, df: "DataFrame") -> "ConnectSession":
        session = df.sparkSession
        with explained(df):
            version = tuple(map(int, session.version.split(".")[:2]))
            return cls(
                tags=frozenset(session.getTags()),
                rows_per_batch=rows_per_batch(session),
                has_ordered_limit=version >= (4, 2),
            )

    def limited(self, df: "DataFrame", count: int) -> "DataFrame":
        """Return *df* limited to its first *count* rows, or *df* itself where that is not possible.

        At the end of a plan a limit takes the rows in order, from one partition after the other.
        """
        return df.limit(count) if count <= _LARGEST_LIMIT and self.has_ordered_limit else df


# -- flows ----------------------------------------------------------------------------------------
def from_connect(
    plan: "Callable[[], DataFrame]", schema: "StructType", session: ConnectSession,
    kind: RowKind, *, by_batches: bool, name: str, batch: int, make_meter: MakeMeter,
) -> "Flow[Any]":  # fmt: skip
    """Emit rows of *schema*, handing at most *batch* of them from the thread at a time.

    Without *by_batches*, they are the rows of the public ``toLocalIterator``.
    """
    make: type[Operation] = BatchOperation if by_batches else Operation
    convert: Convert
    if not by_batches:
        from_row = from_spark_row(kind)
        convert = iter if from_row is None else partial(map, from_row)
    elif kind == "batch":
        convert = partial(_batches, arrow_schema(schema), batch)
    else:
        convert = partial(_rows, row_converter(schema, kind), batch)
    rows_per_part = session.rows_per_batch if by_batches else 1
    rows_per_element = batch if kind == "batch" else 1
    holds = None if rows_per_part is None else ceil(rows_per_part / rows_per_element) - 1

    def begin(meter: ProgressMeter) -> "Interruptible[Any]":
        operation = make(plan(), session.tags, meter)
        return operation.elements(convert), operation.cancel

    chunk = batch // rows_per_element
    return from_pulling(begin, name=name, chunk=chunk, make_meter=make_meter, holds=holds)


def _rows(convert: Convert, most: int, batch: Any) -> Iterator[Any]:
    """Make rows, *most* at a time: no other thread runs while columns become lists.

    Fewer at a time where they are large, since both they and their batch are in memory.
    """
    return chain.from_iterable(map(convert, cut(batch, most, LARGEST_PART)))


def _batches(target: Any, most: int, batch: Any) -> Iterable[Any]:
    """Make batches of *most* rows with the types that ``toArrow()`` gives them."""
    if not target.names:  # a table without columns has no number of rows once it is cast
        return [each for each in cut(batch, most) if each.num_rows]
    import pyarrow

    table = cast("Any", pyarrow).Table.from_batches([batch]).cast(target)
    return cast("Iterable[Any]", table.to_batches(max_chunksize=most))


# -- operations -----------------------------------------------------------------------------------
class Operation:
    """One subscription's operation at the server, with a tag of its own, by the public API."""

    def __init__(self, df: "DataFrame", tags: frozenset[str], meter: ProgressMeter) -> None:
        self._df: Any = df
        self._tag = new_tag()
        self._tags = (*tags, self._tag)
        self._meter = meter
        self._is_cancelled = Event()

    def elements(self, convert: Convert) -> Iterator[Any]:
        """Run the operation; yield what *convert* makes of each part. On a thread."""
        with explained(self._df), closing(self._parts()) as parts:
            try:
                for part in parts:
                    yield from convert(part)
            except GeneratorExit:  # the subscription has ended before the operation
                self.cancel()
                raise
            except Exception as error:
                _drop_tracebacks(error)
                if not self._is_cancelled.is_set():
                    raise

    def _parts(self) -> Generator[Any, None, None]:
        """Yield tuples of rows."""
        session = self._df.sparkSession
        for tag in self._tags:
            session.addTag(tag)
        with closing(self._df.toLocalIterator()) as rows:
            for row in rows:
                yield (row,)

    def cancel(self) -> None:
        """Interrupt the operation. It may not have begun yet, so this is called repeatedly."""
        self._is_cancelled.set()
        with suppress(Exception):  # a server that cannot be reached runs nothing for us
            self._interrupt()

    def _interrupt(self) -> None:
        self._df.sparkSession.interruptTag(self._tag)


def _drop_tracebacks(error: BaseException | None) -> None:
    """Drop the frames of PySpark from *error*.

    They keep the call that failed, and with it a pool of threads, until the garbage collector
    runs: an error of gRPC is the call that raised it.
    """
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


class BatchOperation(Operation):
    """The same by Arrow batches; cancelling it does not wait for a server that does not answer."""

    def __init__(self, df: "DataFrame", tags: frozenset[str], meter: ProgressMeter) -> None:
        super().__init__(df, tags, meter)
        self._client = connect_client(df, self._sleep)

    def _sleep(self, seconds: float) -> None:
        if self._is_cancelled.wait(seconds):
            raise RuntimeError("the subscription has been cancelled")
        if dead_local_server() is not None:
            raise ConnectionError("the server has died")

    def _parts(self) -> Generator[Any, None, None]:
        """Yield record batches."""
        for tag in self._tags:
            self._client.add_tag(tag)
        with closing(connect_responses(self._df, self._client)) as responses:
            for response in responses:
                if not hasattr(response, "to_batches"):
                    continue  # the schema, which is known
                for batch in response.to_batches():
                    self._meter.add_from_thread("bytes", batch.nbytes)
                    yield batch

    def _interrupt(self) -> None:
        self._client.interrupt_tag(self._tag)
