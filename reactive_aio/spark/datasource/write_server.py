"""serve_writes: a flow of what Spark writes."""

import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import anyio

from ..._core.arguments import require_int
from ...errors import AlreadySubscribed, ReactiveError
from ...stage import Downstream, from_push
from ..arrow.decoder import row_converter
from ..errors import explained, require_option, require_pyspark
from ..rows import ROW_KINDS, RowKind
from ..spark_calls import SparkCalls
from .arrow_streams import read_batches
from .listener import Connection, ServedAddress, listen
from .task_attempts import JobKey, TaskAttempts
from .wire_protocol import Message
from .write_subscription import WriteSubscription

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ...flow import Flow

__all__ = ("ServedWrites", "WriteFailed", "serve_writes")

Rows = tuple[Iterator[Any], int]
Decode = Callable[[bytes], Rows]


class Chunk(NamedTuple):
    """A chunk of the rows of a partition, as a task announces it."""

    partition: int
    number: int
    digest: str


class WriteFailed(ReactiveError):
    """Spark has aborted a write, or cannot repeat what it had sent; the message says which."""


class ServedWrites(ServedAddress):
    """The address of `serve_writes`, and the flow of the rows."""

    def __init__(
        self,
        address: str,
        token: str,
        rows: "Flow[Any]",
        fail: Callable[[str, BaseException], object],
    ) -> None:
        super().__init__(address, token)
        self._fail = fail
        self.rows: Flow[Any] = rows
        """What is written, under demand. One subscription at a time."""

    async def write(self, df: "DataFrame") -> None:
        """Write *df* to `rows`, which another task reads meanwhile; on a thread.

        It is ``df.write.format("reactive")`` with the session made active on the thread.
        Cancelling it cancels the job.
        """

        job = uuid4().hex

        def save() -> None:
            writer = df.write.format("reactive").options(**self.options, job=job)
            with explained(df):
                writer.mode("append").save()

        async with SparkCalls("serve_writes", df.sparkSession) as calls:
            try:
                await calls.call(save)
            except BaseException as error:
                # At once: it may have failed before a task connected, or tasks may wait for demand.
                self._fail(job, error)
                raise


@asynccontextmanager
async def serve_writes(
    *,
    rows: RowKind = "row",
    numbered: bool = False,
    batch: int = 4096,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
) -> AsyncGenerator[ServedWrites]:
    """Receive what Spark writes: ``df.write.format("reactive")``, or ``df.writeStream``, as a flow.

    ::

        async with serve_writes() as served:
            writing = asyncio.create_task(served.write(df))
            async for row in served.rows: ...
            await writing

    *rows* is the kind of row, as in `from_dataframe`; with *numbered*, elements are ``(batch_id,
    row)``. Inside the ``async with`` it listens at *host* and *port*, for clients with *token*, by
    default a random one.

    Tasks send chunks of up to *batch* rows, one at a time among all tasks, and only when all rows
    before have been processed and one more is requested: at demand 0 nothing is sent. A task ends
    when its last row was processed and one more is requested, so Spark commits only processed rows.
    The flow of a ``df.write`` completes when Spark has committed the job, and fails with
    `WriteFailed` when Spark aborts it; that of a ``df.writeStream`` continues.

    **A task that Spark runs twice** counts once: chunks that were received from one attempt are
    compared with those of the next, and not sent again. If they differ (a query whose rows come in
    another order each time), the flow fails rather than lose or repeat a row. A **query that is
    restarted** repeats its last micro-batch, which counts once as well, while this process lives
    and the query has the option ``checkpointLocation``. A sink that needs the same beyond that
    takes *numbered* rows and stores the number.

    Cancelling fails the job, or the query.
    """
    require_pyspark()
    require_option("serve_writes", "rows", rows, ROW_KINDS)
    require_int("serve_writes", "batch", batch, least=1)
    server = _WriteServer(rows, batch, numbered=numbered)
    flow: Flow[Any] = from_push(
        server.subscribe, name="serve_writes", holds=1 if rows == "batch" else batch, checked=True
    )
    async with listen(server.respond, host=host, port=port, token=token) as (address, secret):
        try:
            yield ServedWrites(address, secret, flow, server.fail)
        finally:
            server.close()


class _WriteServer:
    """Answers the requests of the data source's writers in `_plugin`."""

    def __init__(self, kind: RowKind, batch: int, *, numbered: bool) -> None:
        self._kind: RowKind = kind
        self._batch = batch
        self._numbered = numbered
        self._attempts = TaskAttempts()
        self._subscription: WriteSubscription | None = None
        self._change = anyio.Event()
        self._lock = anyio.Lock()
        self._decoders: dict[str, Decode] = {}

    # -- the flow ---------------------------------------------------------------------------------
    def subscribe(self, downstream: Downstream[Any]) -> WriteSubscription:
        if self._subscription is not None:
            raise AlreadySubscribed(
                "rule 1.11: what Spark writes serves one subscriber at a time; share it with a "
                "MulticastProcessor"
            )
        self._subscription = WriteSubscription(
            downstream, on_demand=self._notify, on_end=self._on_end
        )
        self._notify()
        return self._subscription

    def _on_end(self) -> None:
        self._subscription = None
        self._attempts.refuse_current()
        self._notify()

    def fail(self, job: str, cause: BaseException) -> None:
        """A write has failed whose job is the current one, or would have been."""
        if self._subscription is not None and self._attempts.current in (None, (job, 0)):
            error = WriteFailed(f"the write has failed: {str(cause) or 'it was cancelled'}")
            error.__cause__ = cause
            self._subscription.end(error)

    def close(self) -> None:
        if self._subscription is not None:
            self._subscription.end(WriteFailed("serve_writes() was left while its flow was in use"))

    def _notify(self) -> None:
        """Wake the connections: something has changed that they may wait for."""
        change, self._change = self._change, anyio.Event()
        change.set()

    # -- the connections --------------------------------------------------------------------------
    async def respond(self, connection: Connection) -> None:
        request = connection.request
        try:
            match request:
                case {"operation": "push", "job": str(), "batch": int(), "partition": int()}:
                    await self._receive_partition(connection, request)
                case {"operation": "commit", "job": str(), "batch": int()}:
                    await self._commit(request)
                    await connection.send_message(done=True)
                case {"operation": "abort", "job": str(), "batch": int()}:
                    self._abort(request)
                    await connection.send_message(done=True)
                case _:
                    await connection.send_message(
                        error="this takes writes; serve_flow() serves a flow to read"
                    )
        except WriteFailed as error:
            await connection.send_message(error=str(error))

    async def _receive_partition(self, connection: Connection, request: Message) -> None:
        key = _job_key(request)
        decode = self._decoder(request["schema"], key[1])
        is_committed = request["durable"] and self._attempts.is_committed(key)
        await connection.send_message(committed=is_committed, rows=self._batch)
        number = 0
        while not is_committed:
            message = await connection.receive_message()
            if "end" in message:
                await self._wait_for_demand(key)
                await connection.send_message(done=True)
                return
            chunk = Chunk(request["partition"], number, message["digest"])
            await self._receive_chunk(connection, key, chunk, decode)
            number += 1

    async def _receive_chunk(
        self, connection: Connection, key: JobKey, chunk: Chunk, decode: Decode
    ) -> None:
        while True:
            await self._wait_for_demand(key)
            async with self._lock:  # the first of two connections that were woken takes the demand
                subscription = self._ready_subscription(key)
                if subscription is None:
                    continue
                if not self._is_new(key, chunk, subscription):
                    await connection.send_message(send=False)
                    return
                await connection.send_message(send=True)
                content = await connection.receive()
                rows, count = await anyio.to_thread.run_sync(decode, content)
                if not subscription.is_active:
                    raise _cancelled()
                self._attempts.job(key).add(chunk.partition, chunk.digest)
                subscription.put(rows, count)
                return

    def _is_new(self, key: JobKey, chunk: Chunk, subscription: WriteSubscription) -> bool:
        job = self._attempts.job(key)
        if job.differs(*chunk):
            error = WriteFailed(
                f"partition {chunk.partition} was computed again, with other rows than before, of "
                "which some have been delivered. Sort the rows of a partition, or store the "
                "DataFrame before it is written."
            )
            subscription.end(error)
            raise error
        return not job.has(chunk.partition, chunk.number)

    async def _wait_for_demand(self, key: JobKey) -> WriteSubscription:
        """Wait until this job is the current one, all rows are processed, and one is requested."""
        while True:
            if self._attempts.is_refused(key):
                raise _cancelled()
            if (subscription := self._ready_subscription(key)) is not None:
                return subscription
            await self._change.wait()

    def _ready_subscription(self, key: JobKey) -> WriteSubscription | None:
        subscription = self._subscription
        if subscription is None or not self._attempts.select(key):
            return None
        return subscription if subscription.needs_rows else None

    async def _commit(self, request: Message) -> None:
        key = _job_key(request)
        subscription = None if request["stream"] else await self._wait_for_demand(key)
        self._attempts.commit(key, is_durable=request["durable"])
        self._notify()
        if subscription is not None:
            subscription.end()

    def _abort(self, request: Message) -> None:
        key, is_stream = _job_key(request), bool(request["stream"])
        is_current = self._attempts.current == key
        if not is_stream and self._subscription is not None and is_current:
            self._subscription.end(
                WriteFailed("Spark has aborted the write, see what df.write raises")
            )
        self._attempts.abort(key, is_repeated=is_stream)
        self._notify()

    def _decoder(self, schema: str, batch: int) -> Decode:
        decode = self._decoders.get(schema)
        if decode is None:
            decode = self._decoders[schema] = _make_decoder(schema, self._kind)
        return partial(_decode_numbered, decode, batch) if self._numbered else decode


def _job_key(request: Message) -> JobKey:
    return request["job"], request["batch"]


def _cancelled() -> WriteFailed:
    return WriteFailed("the subscriber of the flow has cancelled")


def _make_decoder(schema_json: str, kind: RowKind) -> Decode:
    from pyspark.sql.types import StructType

    convert = row_converter(StructType.fromJson(json.loads(schema_json)), kind)

    def decode(content: bytes) -> Rows:
        batches = read_batches(content)
        if kind == "batch":
            return iter(batches), len(batches)
        rows = [row for each in batches for row in convert(each)]
        return iter(rows), len(rows)

    return decode


def _decode_numbered(decode: Decode, batch: int, content: bytes) -> Rows:
    rows, count = decode(content)
    return ((batch, row) for row in rows), count
