"""The Python Data Source "reactive": the code that runs in Spark's Python workers.

`register` imports it, since it needs PySpark. Spark makes these objects again in each process that
needs them, so all of their state is in the options.
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

from .arrow_streams import encode, read_batches
from .wire_protocol import Client, Refused

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
        with Client(self.options, "schema") as client:
            return StructType.fromJson(json.loads(client.receive_message()["schema"]))

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
class Reader(DataSourceReader):
    """A batch read: a subscription of its own, in one task."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)
        self._limit = _limit(options)

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        with Client(self._options, "all", limit=self._limit) as client:
            while True:
                client.send_message(more=True)
                if (content := client.receive_stream()) is None:
                    return
                yield from read_batches(content)


class RowRange(InputPartition):
    """A range of row numbers."""

    def __init__(self, start: int, stop: int) -> None:
        self.start: int = start
        self.stop: int = stop


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming query: its read limit is the demand."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)
        self._limit = _limit(options)
        self._tasks = max(1, int(options.get("tasks", "2")))
        self._is_draining = False

    def _ask(self, operation: str, **request: Any) -> Offset:
        with Client(self._options, operation, **request) as client:
            return client.receive_message()

    def initialOffset(self) -> Offset:
        return self._ask("first")

    def getDefaultReadLimit(self) -> "ReadLimit":
        return ReadMaxRows(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._is_draining = True

    def latestOffset(self, start: Offset, limit: "ReadLimit") -> Offset:
        rows = min(self._limit, getattr(limit, "max_rows", self._limit))
        return self._ask("latest", start=start, limit=rows, drain=self._is_draining)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        first, stop = start["row"], end["row"]
        step = max(1, -(-(stop - first) // self._tasks))
        return [RowRange(row, min(stop, row + step)) for row in range(first, stop, step)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, RowRange)
        with Client(self._options, "read", start=partition.start, stop=partition.stop) as client:
            if (content := client.receive_stream()) is not None:
                yield from read_batches(content)

    def commit(self, end: Offset) -> None:
        self._ask("commit", stop=end)

    def stop(self) -> None:
        """The subscription outlives the query: a restarted one continues it."""


# -- writing -----------------------------------------------------------------------------------
def _push(request: dict[str, Any], options: Mapping[str, str], batches: Iterator[Any]) -> None:
    """Send the rows of a task, chunk by chunk, under demand."""
    from pyspark import TaskContext

    context = TaskContext.get()
    partition = 0 if context is None else context.partitionId()
    with Client(options, "push", partition=partition, **request) as client:
        answer = client.receive_message()
        if answer["committed"]:
            for _ in batches:
                """Spark requires that a writer consumes its rows."""
            return
        for chunk in _chunks(batches, answer["rows"]):
            content = encode(chunk)
            digest = blake2b(content, digest_size=16).hexdigest()
            if client.ask(digest=digest)["send"]:
                client.send(content)
        client.ask(end=True)


def _chunks(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


class Writer(DataSourceArrowWriter):
    """A ``df.write``."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = dict(options)
        self._request: dict[str, Any] = {
            "job": options.get("job") or uuid4().hex, "batch": 0, "stream": False, "durable": False,
        }  # fmt: skip
        self._schema = schema.json()

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        _push({**self._request, "schema": self._schema}, self._options, iterator)
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._send("commit")

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._send("abort")

    def _send(self, operation: str) -> None:
        with Client(self._options, operation, **self._request) as client:
            client.receive_message()


class StreamWriter(DataSourceStreamArrowWriter):
    """``df.writeStream``. Spark makes one object for the tasks, and others to commit."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = dict(options)
        checkpoint = options.get("checkpointLocation")
        self._request: dict[str, Any] = {
            "job": checkpoint or "a query", "stream": True, "durable": checkpoint is not None,
        }  # fmt: skip
        self._schema = schema.json()

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        from pyspark import TaskContext

        context = TaskContext.get()
        batch = int((context and context.getLocalProperty("streaming.sql.batchId")) or 0)
        request = {**self._request, "batch": batch, "schema": self._schema}
        _push(request, self._options, iterator)
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._send("commit", batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._send("abort", batchId)

    def _send(self, operation: str, batch: int) -> None:
        with Client(self._options, operation, batch=batch, **self._request) as client:
            client.receive_message()
