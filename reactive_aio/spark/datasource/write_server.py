"""serve_writes: a flow of what Spark writes."""

import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, count
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import anyio

from ...errors import AlreadySubscribed, ReactiveError
from ...stage import Downstream, from_push, require_int
from ..errors import explained, require_dataframe_type, require_option, require_pyspark
from ..rows import ROW_KINDS, Decoded, RowKind, elements_of, with_a_column
from ..stepping import RowSubscription
from ..tagged_jobs import SparkCalls
from .listener import Connection, ListenOptions, ServedAddress, listen
from .task_attempts import JobKey, TaskAttempts
from .wire_protocol import Message, read_batches

if TYPE_CHECKING:
    from os import PathLike

    from pyspark.sql import DataFrame

    from ...flow import Flow


_MOST_FAILURES: Final = 1000
"""Failures of writes that wait for a subscriber, at most."""


class WriteFailed(ReactiveError):
    """Spark has aborted a write, or cannot repeat what it had sent; the message says which."""


@dataclass(eq=False, repr=False)
class ServedWrites(ServedAddress):
    """The address of `serve_writes`, and the flow of the rows."""

    rows: "Flow[Any]"
    """What is written, under demand. One subscription at a time."""
    _server: "_WriteServer"

    async def write(self, df: "DataFrame") -> None:
        """Write *df* to `rows`, which another task reads meanwhile; on a thread.

        It is ``df.write.format("reactive")`` with the session made active on the thread.
        Cancelling it cancels the job. A write that fails before `rows` has a subscriber fails the
        next one.
        """
        job = uuid4().hex

        def save() -> None:
            with explained(df):
                options = {**self.options, "job": job, "columns": str(len(df.columns))}
                writer = with_a_column(df).write.format("reactive").options(**options)
                writer.mode("append").save()

        with self._server.writing(job):
            require_dataframe_type("ServedWrites.write", df)
            async with SparkCalls("serve_writes", df.sparkSession) as calls:
                with self._server.writing(job):  # before the calls end: tasks may wait for demand
                    await calls.call(save)


@asynccontextmanager
async def serve_writes(
    *,
    rows: RowKind = "row",
    numbered: bool = False,
    batch: int = 4096,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    ssl: SSLContext | None = None,
    ca: "str | PathLike[str] | None" = None,
    allow_unencrypted: bool = False,
) -> AsyncGenerator[ServedWrites]:
    """Receive what Spark writes: ``df.write.format("reactive")``, or ``df.writeStream``, as a flow.

    ::

        async with serve_writes() as served:
            writing = asyncio.create_task(served.write(df))
            async for row in served.rows: ...
            await writing

    *rows* is the kind of row, as in `from_dataframe`; with *numbered*, elements are ``(batch_id,
    row)``. Inside the ``async with`` it listens at *host* and *port*, for clients with *token*, by
    default a random one; *ssl*, *ca* and *allow_unencrypted* are those of `serve_flow`.

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
    options = ListenOptions(
        function="serve_writes", host=host, port=port, token=token, ssl=ssl, ca=ca,
        allow_unencrypted=allow_unencrypted,
    )  # fmt: skip
    require_option("serve_writes", "rows", rows, ROW_KINDS)
    require_int("serve_writes", "batch", batch, least=1)
    server = _WriteServer(rows, batch, numbered=numbered)
    flow: Flow[Any] = from_push(
        server.subscribe, name="serve_writes", holds=1 if rows == "batch" else batch, checked=True
    )
    async with listen(server.respond, options) as where:
        try:
            yield ServedWrites(*where, flow, server)
        finally:
            server.fail("serve_writes() was left while its flow was in use")


class _WriteServer:
    """Answers the requests of the data source's writers in `_plugin`."""

    def __init__(self, kind: RowKind, batch: int, *, numbered: bool) -> None:
        self._kind: RowKind = kind
        self._batch = batch
        self._numbered = numbered
        self._attempts = TaskAttempts()
        self._subscription: RowSubscription | None = None
        self._unread: set[str] = set()
        """The jobs of `writing` that no subscriber has read, nor their failure."""
        self._failures: deque[WriteFailed] = deque(maxlen=_MOST_FAILURES)
        """Of writes that no subscriber has read, for the next ones."""
        self._change = anyio.Event()
        self._lock = anyio.Lock()

    # -- the flow ---------------------------------------------------------------------------------
    def subscribe(self, downstream: Downstream[Any]) -> RowSubscription:
        if self._subscription is not None:
            raise AlreadySubscribed(
                "rule 1.11: what Spark writes serves one subscriber at a time; share it with a "
                "MulticastProcessor"
            )
        self._subscription = RowSubscription(
            downstream, "serve_writes()", self._on_first_request, self._on_end
        )
        self.notify()
        return self._subscription

    def _on_first_request(self) -> None:
        """Fail, if a write has failed before it had a subscriber."""
        assert self._subscription is not None, "it has called this"
        self._subscription.on_wanted = self.notify
        if self._failures:
            self._subscription.end(self._failures.popleft())
        else:
            self.notify()

    def _on_end(self) -> None:
        self._subscription = None
        self._attempts.refuse_current()
        self.notify()

    @contextmanager
    def writing(self, job: str) -> Generator[None]:
        """What is raised inside fails the subscriber of *job*, or the next one."""
        self._unread.add(job)
        try:
            yield
        except BaseException as error:
            self._on_write_failed(job, error)
            raise
        finally:
            self._unread.discard(job)

    def _on_write_failed(self, job: str, cause: BaseException) -> None:
        current = self._attempts.current
        message = f"the write has failed: {str(cause) or 'it was cancelled'}"
        if current == (job, 0):
            self.fail(message, cause)
        elif job not in self._unread:
            return  # its subscriber has cancelled
        elif current is None and self._subscription is not None:
            self.fail(message, cause)
        else:
            self._failures.append(_write_failed(message, cause))
        self._unread.discard(job)

    def fail(self, message: str, cause: BaseException | None = None) -> WriteFailed:
        """Fail the flow, if it has a subscriber; return the error."""
        error = _write_failed(message, cause)
        if self._subscription is not None:
            self._subscription.end(error)
        return error

    def notify(self) -> None:
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
        is_committed = request["durable"] and self._attempts.is_committed(key)
        await connection.send_message(committed=is_committed, rows=self._batch)
        if is_committed:
            return
        for number in count():
            message = await connection.receive_message()
            if "end" in message:
                await self._wait_for_demand(key)
                await connection.send_message(done=True)
                return
            await self._receive_chunk(connection, request, number, message["digest"])

    async def _receive_chunk(
        self, connection: Connection, request: Message, number: int, digest: str
    ) -> None:
        key, partition = _job_key(request), request["partition"]
        while True:
            await self._wait_for_demand(key)
            async with self._lock:  # the first of two connections that were woken takes the demand
                subscription = self._ready_subscription(key)
                if subscription is None:
                    continue
                received = self._attempts.digests(key, partition)
                if number < len(received):
                    if received[number] != digest:
                        raise self.fail(
                            f"partition {partition} was computed again, with other rows than "
                            "before, of which some have been delivered. Sort the rows of a "
                            "partition, or store the DataFrame before it is written."
                        )
                    await connection.send_message(send=False)
                    return
                await connection.send_message(send=True)
                content = await connection.receive()
                rows = await anyio.to_thread.run_sync(self._decode, request, content)
                if subscription is not self._subscription:
                    raise _cancelled()
                received.append(digest)
                subscription.feed(rows)
                return

    async def _wait_for_demand(self, key: JobKey) -> RowSubscription:
        """Wait until this job is the current one, all rows are processed, and one is requested."""
        while True:
            if self._attempts.is_refused(key):
                raise _cancelled()
            if (subscription := self._ready_subscription(key)) is not None:
                return subscription
            await self._change.wait()

    def _ready_subscription(self, key: JobKey) -> RowSubscription | None:
        subscription = self._subscription
        if subscription is None or not self._attempts.select(key):
            return None
        self._unread.discard(key[0])
        return subscription if subscription.is_wanting else None

    async def _commit(self, request: Message) -> None:
        key = _job_key(request)
        subscription = None if request["stream"] else await self._wait_for_demand(key)
        self._attempts.commit(key, is_durable=request["durable"])
        self.notify()
        if subscription is not None:
            subscription.end()

    def _abort(self, request: Message) -> None:
        key, is_stream = _job_key(request), bool(request["stream"])
        is_next = self._attempts.current is None and not self._attempts.is_refused(key)
        is_read = self._attempts.current == key or (is_next and key[0] not in self._unread)
        if not is_stream and is_read:
            self.fail("Spark has aborted the write, see what df.write raises")
        self._attempts.abort(key, is_repeated=is_stream)
        self.notify()

    def _decode(self, request: Message, content: bytes) -> Decoded:
        """Make the elements of a chunk. Blocks: for threads."""
        read, batches = _reader(request["schema"], self._kind), read_batches(content)
        parts = (part for batch in batches for part, _ in read(batch, batch.num_rows).parts)
        elements = [*chain.from_iterable(parts)]
        if self._numbered:
            elements = [(request["batch"], element) for element in elements]
        rows = sum(batch.num_rows for batch in batches)
        return Decoded(iter(((iter(elements), len(elements)),)), len(elements), rows)


def _job_key(request: Message) -> JobKey:
    return request["job"], request["batch"]


def _write_failed(message: str, cause: BaseException | None) -> WriteFailed:
    error = WriteFailed(message)
    error.__cause__ = cause
    return error


def _cancelled() -> WriteFailed:
    return WriteFailed("the subscriber of the flow has cancelled")


@lru_cache(maxsize=16)
def _reader(schema: str, kind: RowKind) -> Callable[[Any, int], Decoded]:
    from pyspark.sql.types import StructType

    return elements_of(StructType.fromJson(json.loads(schema)), kind)
