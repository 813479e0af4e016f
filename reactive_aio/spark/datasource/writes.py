"""serve_writes: a flow of what Spark writes."""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import anyio

from ..._core.arguments import require_int
from ...errors import AlreadySubscribed, ReactiveError
from ...stage import Downstream, from_push
from ..aside import Aside
from ..failures import require_pyspark, telling
from ..rows import KINDS, Kind, maker
from ..values import columns_of
from .encoding import read_batches
from .intake import Intake
from .ledger import Key, Ledger
from .server import Caller, Served, listening
from .wire import Answer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ...flow import Flow

__all__ = ("ServedWrites", "WriteFailed", "serve_writes")

Rows = tuple[Iterator[Any], int]
Piece = tuple[int, int, str]
"""Partition, number and digest."""


class WriteFailed(ReactiveError):
    """Spark has given a write up, or cannot repeat what it had sent; the message says which."""


class ServedWrites(Served):
    """What `serve_writes` gives."""

    def __init__(
        self,
        address: str,
        token: str,
        rows: "Flow[Any]",
        failed: Callable[[str, BaseException], object],
    ) -> None:
        super().__init__(address, token)
        self._failed = failed
        self.rows: Flow[Any] = rows
        """What is written, under demand. One subscription at a time."""

    async def write(self, df: "DataFrame") -> None:
        """Write *df* to `rows`, which somebody else reads meanwhile; on a thread.

        It is ``df.write.format("reactive")`` with the session made the thread's own. Cancelling
        cancels the job.
        """

        job = uuid4().hex

        def save() -> None:
            writer = df.write.format("reactive").options(**self.options, job=job)
            with telling(df):
                writer.mode("append").save()

        async with Aside("serve_writes", df.sparkSession) as aside:
            try:
                await aside.call(save)
            except BaseException as error:
                # Now: it may have failed before a task knew of us, or tasks may wait for demand.
                self._failed(job, error)
                raise


@asynccontextmanager
async def serve_writes(
    *,
    rows: Kind = "row",
    numbered: bool = False,
    batch: int = 4096,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
) -> AsyncGenerator[ServedWrites]:
    """Take what Spark writes: ``df.write.format("reactive")``, or ``df.writeStream``, as a flow.

    ::

        async with serve_writes() as served:
            writing = asyncio.create_task(served.write(df))
            async for row in served.rows: ...
            await writing

    *rows* says what a row is, as in `from_dataframe`; with *numbered*, elements are ``(batch_id,
    row)``. Inside the ``async with`` it listens at *host* and *port*, for those who know *token*,
    by default one that is made up.

    Tasks send pieces of up to *batch* rows, one at a time between all of them, and only when all
    rows before have been processed and one more is asked for: at demand 0 nothing is sent. A task
    is done when its last row was processed and one more is asked for, so Spark commits nothing that
    was not. The flow of a ``df.write`` completes when Spark has committed the job, and fails with
    `WriteFailed` when it gives the job up; that of a ``df.writeStream`` goes on.

    **A task that Spark runs twice** counts once: pieces that were taken from one attempt are
    compared with those of the next, and not sent again. If they differ (a query whose rows come in
    another order each time), the flow fails rather than lose or repeat a row. A **query that is
    restarted** repeats its last micro-batch, which counts once as well, while this process lives
    and the query has the option ``checkpointLocation``. A sink that wants the same beyond that
    takes *numbered* rows and keeps the number.

    Cancelling fails the job, or the query.
    """
    require_pyspark()
    if rows not in KINDS:
        raise ValueError(f"serve_writes: rows must be one of {', '.join(KINDS)}, not {rows!r}.")
    require_int("serve_writes", "batch", batch, least=1)
    writes = _Writes(rows, batch, numbered=numbered)
    flow: Flow[Any] = from_push(
        writes.attach, name="serve_writes", holds=1 if rows == "batch" else batch, checked=True
    )
    async with listening(writes.respond, host=host, port=port, token=token) as (place, secret):
        try:
            yield ServedWrites(place, secret, flow, writes.fail)
        finally:
            writes.close()


class _Writes:
    """Answers what the data source's writers ask, see `_plugin`."""

    def __init__(self, kind: Kind, batch: int, *, numbered: bool) -> None:
        self._kind: Kind = kind
        self._batch = batch
        self._numbered = numbered
        self._ledger = Ledger()
        self._intake: Intake | None = None
        self._changed = anyio.Event()
        self._turn = anyio.Lock()
        self._decoders: dict[str, Callable[[bytes], Rows]] = {}

    # -- the flow ---------------------------------------------------------------------------------
    def attach(self, downstream: Downstream[Any]) -> Intake:
        if self._intake is not None:
            raise AlreadySubscribed(
                "rule 1.11: what Spark writes serves one subscriber at a time; share it with a "
                "MulticastProcessor"
            )
        self._intake = Intake(downstream, told=self._tell, gone=self._gone)
        self._tell()
        return self._intake

    def _gone(self) -> None:
        self._intake = None
        self._ledger.drop()
        self._tell()

    def fail(self, job: str, cause: BaseException) -> None:
        """A write has failed which was, or would have been, the one that is served."""
        if self._intake is not None and self._ledger.serving in (None, (job, 0)):
            error = WriteFailed(f"the write has failed: {str(cause) or 'it was cancelled'}")
            error.__cause__ = cause
            self._intake.end(error)

    def close(self) -> None:
        if self._intake is not None:
            self._intake.end(WriteFailed("serve_writes() was left while its flow was in use"))

    def _tell(self) -> None:
        """Something has changed that a connection may wait for."""
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    # -- the connections --------------------------------------------------------------------------
    async def respond(self, caller: Caller) -> None:
        question = caller.question
        try:
            match question:
                case {"operation": "push", "job": str(), "batch": int(), "partition": int()}:
                    await self._push(caller, question)
                case {"operation": "commit", "job": str(), "batch": int()}:
                    await self._commit(question)
                    await caller.tell(done=True)
                case {"operation": "abort", "job": str(), "batch": int()}:
                    self._abort(question)
                    await caller.tell(done=True)
                case _:
                    await caller.tell(error="this takes writes; serve_flow() serves a flow to read")
        except WriteFailed as error:
            await caller.tell(error=str(error))

    async def _push(self, caller: Caller, question: Answer) -> None:
        key = _key(question)
        decode = self._decoder(question["schema"], key[1])
        over = question["known"] and self._ledger.is_over(key)
        await caller.tell(over=over, rows=self._batch)
        number = 0
        while not over:
            piece = await caller.hear()
            if "end" in piece:
                await self._until_hungry(key)
                await caller.tell(done=True)
                return
            where = (question["partition"], number, piece["digest"])
            await self._piece(caller, key, where, decode)
            number += 1

    async def _piece(
        self, caller: Caller, key: Key, where: Piece, decode: Callable[[bytes], Rows]
    ) -> None:
        while True:
            await self._until_hungry(key)
            async with self._turn:  # of two that were woken, the first one makes it full
                intake = self._ready(key)
                if intake is not None:
                    if self._is_new(key, where, intake):
                        await caller.tell(send=True)
                        content = await caller.receive()
                        rows, count = await anyio.to_thread.run_sync(decode, content)
                        if not intake.open:
                            raise _cancelled()
                        self._ledger.job(key).take(where[0], where[2])
                        intake.put(rows, count)
                    else:
                        await caller.tell(send=False)
                    return

    def _is_new(self, key: Key, where: Piece, intake: Intake) -> bool:
        partition, number, digest = where
        job = self._ledger.job(key)
        if job.differs(partition, number, digest):
            error = WriteFailed(
                f"partition {partition} was computed again, with other rows than before, of which "
                "some have been delivered. Sort the rows of a partition, or store the DataFrame "
                "before it is written."
            )
            intake.end(error)
            raise error
        return not job.has(partition, number)

    async def _until_hungry(self, key: Key) -> Intake:
        """Wait until it is this job's turn, and all before was processed, and more is wanted."""
        while True:
            if self._ledger.is_refused(key):
                raise _cancelled()
            if (intake := self._ready(key)) is not None:
                return intake
            await self._changed.wait()

    def _ready(self, key: Key) -> Intake | None:
        intake = self._intake
        ready = intake is not None and self._ledger.serve(key) and intake.hungry
        return intake if ready else None

    async def _commit(self, question: Answer) -> None:
        key = _key(question)
        intake = None if question["stream"] else await self._until_hungry(key)
        self._ledger.commit(key, known=question["known"])
        self._tell()
        if intake is not None:
            intake.end()

    def _abort(self, question: Answer) -> None:
        key, stream = _key(question), bool(question["stream"])
        if not stream and self._intake is not None and self._ledger.serving == key:
            self._intake.end(WriteFailed("Spark has given the write up, see what df.write raises"))
        self._ledger.abort(key, again=stream)
        self._tell()

    def _decoder(self, schema: str, batch: int) -> Callable[[bytes], Rows]:
        make = self._decoders.get(schema)
        if make is None:
            make = self._decoders[schema] = _decoder(schema, self._kind)
        return partial(_number, make, batch) if self._numbered else make


def _key(question: Answer) -> Key:
    return question["job"], question["batch"]


def _cancelled() -> WriteFailed:
    return WriteFailed("the subscriber of the flow has cancelled")


def _decoder(text: str, kind: Kind) -> Callable[[bytes], Rows]:
    import json

    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(text))
    columns, make = columns_of(schema), maker(kind, schema.names)

    def decode(content: bytes) -> Rows:
        batches = read_batches(content)
        if kind == "batch":
            return iter(batches), len(batches)
        made = [row for each in batches for row in make(columns(each), each.num_rows)]
        return iter(made), len(made)

    return decode


def _number(make: Callable[[bytes], Rows], batch: int, content: bytes) -> Rows:
    rows, count = make(content)
    return ((batch, row) for row in rows), count
