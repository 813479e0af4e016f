"""The Python Data Source "reactive": the code that runs in Spark's Python workers.

`register` imports it, since it needs PySpark. Spark makes these objects again in each process that
needs them, so all of their state is in the options.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, cast
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

from .wire_protocol import Client, Refused, ask, encode_table, read_batches

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

_MAX_ROWS: Final = 10_000
Offset = dict[str, Any]


class Reactive(DataSource):
    """``format("reactive")``."""

    @classmethod
    def name(cls) -> str:
        return "reactive"

    def schema(self) -> StructType:
        return StructType.fromJson(json.loads(ask(self.options, "schema")["schema"]))

    def reader(self, schema: StructType) -> "Reader":
        return Reader(self.options)

    def streamReader(self, schema: StructType) -> "StreamReader":
        return StreamReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> "Writer":
        job = self.options.get("job") or uuid4().hex
        return Writer(self.options, schema, job=job, stream=False, durable=False)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "Writer":
        checkpoint = self.options.get("checkpointLocation")
        job, durable = checkpoint or "a query", checkpoint is not None
        return Writer(self.options, schema, job=job, stream=True, durable=durable)


def _limit(options: Mapping[str, str]) -> int:
    return _positive(options, "maxRows", _MAX_ROWS)


def _positive(options: Mapping[str, str], name: str, default: int) -> int:
    value = options.get(name, str(default)).strip()
    if not value.isdecimal() or int(value) < 1:
        raise Refused(f"the option {name} must be a whole number, at least 1, not {value!r}")
    return int(value)


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
            client.send_message(more=True)
            while isinstance(content := client.receive(), bytes):
                yield from read_batches(content)
                client.send_message(more=True)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming query: its read limit is the demand."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)
        self._limit = _limit(options)
        self._tasks = _positive(options, "tasks", 2)
        self._is_draining = False

    def initialOffset(self) -> Offset:
        return ask(self._options, "first")

    def getDefaultReadLimit(self) -> "ReadLimit":
        return ReadMaxRows(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._is_draining = True

    def latestOffset(self, start: Offset, limit: "ReadLimit") -> Offset:
        rows = min(self._limit, getattr(limit, "max_rows", self._limit))
        return ask(self._options, "latest", start=start, limit=rows, drain=self._is_draining)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        first, stop = start["row"], end["row"]
        step = max(1, -(-(stop - first) // self._tasks))
        return [InputPartition((row, min(stop, row + step))) for row in range(first, stop, step)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        start, stop = partition.value
        with Client(self._options, "read", start=start, stop=stop) as client:
            yield from read_batches(cast("bytes", client.receive()))

    def commit(self, end: Offset) -> None:
        ask(self._options, "commit", stop=end)

    def stop(self) -> None:
        """The subscription outlives the query: a restarted one continues it."""


# -- writing -----------------------------------------------------------------------------------
class Writer(DataSourceArrowWriter, DataSourceStreamArrowWriter):
    """A ``df.write`` or ``df.writeStream``: an object for its tasks, and others to commit."""

    def __init__(self, options: Mapping[str, str], schema: StructType, **job: Any) -> None:
        self._options = dict(options)
        if options.get("columns") == "0":  # `write` has added one
            schema = StructType()
        elif not schema.fields:
            raise Refused(
                "a DataFrame without columns has no number of rows here: select a constant, or "
                "use served.write(df)"
            )
        self._schema = schema.json()
        self._job = job

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Send the rows of a task, chunk by chunk, under demand."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        batch = self._job["stream"] and context.getLocalProperty("streaming.sql.batchId")
        with Client(
            self._options, "push", partition=context.partitionId(), batch=int(batch or 0),
            schema=self._schema, **self._job,
        ) as client:  # fmt: skip
            answer = client.receive_message()
            for record_batch in iterator:  # Spark requires that a writer consumes its rows
                if not answer["committed"]:
                    self._send(client, record_batch, answer["rows"])
            if not answer["committed"]:
                client.ask(end=True)
        return WriterCommitMessage()

    def _send(self, client: Client, batch: Any, rows: int) -> None:
        for start in range(0, batch.num_rows, rows):
            content = encode_table(batch.slice(start, rows))
            digest = blake2b(content, digest_size=16).hexdigest()
            if client.ask(digest=digest)["send"]:
                client.send(content)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int = 0) -> None:
        ask(self._options, "commit", batch=batchId, **self._job)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int = 0) -> None:
        ask(self._options, "abort", batch=batchId, **self._job)
