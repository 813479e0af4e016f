"""The Python Data Source "reactive": what runs in Spark's Python workers.

Not imported before `register`, since it needs PySpark. Spark makes these objects anew wherever it
needs them; so all they know is in the options.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from .wire import Line, Refused

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

__all__ = ("Reactive",)

_MAX_ROWS: Final = 10_000
Offset = dict[str, Any]


class Reactive(DataSource):
    """``format("reactive")``."""

    @classmethod
    def name(cls) -> str:
        return "reactive"

    def schema(self) -> StructType:
        with Line(self.options, "schema") as line:
            return StructType.fromJson(json.loads(line.answer()["schema"]))

    def reader(self, schema: StructType) -> "Reader":
        return Reader(self.options)

    def streamReader(self, schema: StructType) -> "StreamReader":
        return StreamReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> "Writer":
        return Writer(self.options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "StreamWriter":
        return StreamWriter(self.options, schema)


def _limit(options: Mapping[str, str]) -> int:
    rows = int(options.get("maxRows", str(_MAX_ROWS)))
    if rows < 1:
        raise Refused(f"the option maxRows must be at least 1, not {rows}")
    return rows


# -- reading -----------------------------------------------------------------------------------
def _batches(content: bytes) -> Iterator[Any]:
    import pyarrow

    untyped: Any = pyarrow
    with untyped.ipc.open_stream(untyped.py_buffer(content)) as stream:
        yield from stream


class Reader(DataSourceReader):
    """A batch read: the flow from its beginning to its end, in one task."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)
        self._limit = _limit(options)

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        with Line(self._options, "all", limit=self._limit) as line:
            while True:
                line.tell(more=True)
                content = line.receive()
                if content.startswith(b"{"):
                    answer = json.loads(content)
                    if "error" in answer:
                        raise Refused(answer["error"])
                    return
                yield from _batches(content)


class Span(InputPartition):
    """Rows by their numbers."""

    def __init__(self, start: int, stop: int) -> None:
        self.start: int = start
        self.stop: int = stop


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming query: its read limit is the demand."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)
        self._limit = _limit(options)
        self._tasks = max(1, int(options.get("tasks", "2")))
        self._to_the_end = False

    def _ask(self, operation: str, **question: Any) -> Offset:
        with Line(self._options, operation, **question) as line:
            return line.answer()

    def initialOffset(self) -> Offset:
        return self._ask("first")

    def getDefaultReadLimit(self) -> "ReadLimit":
        return ReadMaxRows(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._to_the_end = True

    def latestOffset(self, start: Offset, limit: "ReadLimit") -> Offset:
        rows = min(self._limit, getattr(limit, "max_rows", self._limit))
        return self._ask("latest", start=start, limit=rows, patient=self._to_the_end)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        first, stop = start["row"], end["row"]
        step = max(1, -(-(stop - first) // self._tasks))
        return [Span(row, min(stop, row + step)) for row in range(first, stop, step)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Span)
        with Line(self._options, "read", start=partition.start, stop=partition.stop) as line:
            content = line.receive()
            if content.startswith(b"{"):
                raise Refused(json.loads(content)["error"])
            yield from _batches(content)

    def commit(self, end: Offset) -> None:
        self._ask("commit", stop=end)

    def stop(self) -> None:
        """The flow is not over with the query: another one may go on."""


# -- writing -----------------------------------------------------------------------------------
def _push(question: dict[str, Any], options: Mapping[str, str], batches: Iterator[Any]) -> None:
    """Send what a task has, piece by piece, as it is wanted."""
    from pyspark import TaskContext

    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    with Line(options, "push", partition=partition, **question) as line:
        answer = line.answer()
        if answer["over"]:
            for _ in batches:
                """Spark wants its rows to be taken."""
            return
        for piece in _pieces(batches, answer["rows"]):
            content = _stream(piece)
            digest = blake2b(content, digest_size=16).hexdigest()
            if line.ask(digest=digest)["send"]:
                line.send(content)
        line.ask(end=True)


def _pieces(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def _stream(batch: Any) -> bytes:
    import pyarrow

    untyped: Any = pyarrow
    sink = untyped.BufferOutputStream()
    with untyped.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


class Writer(DataSourceArrowWriter):
    """``df.write``."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._given = dict(options)
        self._question: dict[str, Any] = {
            "job": options.get("job") or uuid4().hex, "batch": 0, "stream": False, "known": False,
        }  # fmt: skip
        self._schema = schema.json()

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        _push({**self._question, "schema": self._schema}, self._given, iterator)
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._tell("commit")

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._tell("abort")

    def _tell(self, operation: str) -> None:
        with Line(self._given, operation, **self._question) as line:
            line.answer()


class StreamWriter(DataSourceStreamArrowWriter):
    """``df.writeStream``. Spark makes one for the tasks, and others to commit."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._given = dict(options)
        checkpoint = options.get("checkpointLocation")
        self._question: dict[str, Any] = {
            "job": checkpoint or "a query", "stream": True, "known": checkpoint is not None,
        }  # fmt: skip
        self._schema = schema.json()

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        from pyspark import TaskContext

        context = TaskContext.get()
        batch = int((context and context.getLocalProperty("streaming.sql.batchId")) or 0)
        question = {**self._question, "batch": batch, "schema": self._schema}
        _push(question, self._given, iterator)
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._tell("commit", batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._tell("abort", batchId)

    def _tell(self, operation: str, batch: int) -> None:
        with Line(self._given, operation, batch=batch, **self._question) as line:
            line.answer()
