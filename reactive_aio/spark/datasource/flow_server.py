"""serve_flow: a flow that Spark reads."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import inf
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

import anyio

from ...stage import describe, require_int
from ..conversion import RowConversion, RowRejected
from ..errors import require_pyspark, require_text
from ..gathering import Elements
from ..rows import cut
from ..schemas import parsed_schema, require_schema
from .listener import Connection, ListenOptions, ServedAddress, listen
from .replay_log import ReplayLog, RowsUnavailable
from .wire_protocol import encode, encode_table

if TYPE_CHECKING:
    from os import PathLike

    from pyspark.sql.types import StructType

    from ...flow import Flow

_LARGEST_PART: Final = 1 << 30
"""Bytes of what is sent at a time."""
_BATCH_BYTES: Final = 64 << 20
"""Bytes of a record batch in it, about."""
_BATCH_DELAY: Final = 0.1
"""Seconds in which a micro-batch may fill up, once Spark has requested it."""


@dataclass(eq=False, repr=False)
class ServedFlow(ServedAddress):
    """The address of `serve_flow`, and the rows that it holds."""

    _log: ReplayLog

    @property
    def pending_rows(self) -> int:
        """How many rows are held until a streaming query commits them."""
        return self._log.stop - self._log.first

    @property
    def committed_rows(self) -> int:
        """How many rows a streaming query has committed."""
        return self._log.first


@asynccontextmanager
async def serve_flow(
    flow: "Flow[Any]",
    schema: "StructType | str",
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    ssl: SSLContext | None = None,
    ca: "str | PathLike[str] | None" = None,
    allow_unencrypted: bool = False,
    capacity: int = 100_000,
    name: str | None = None,
    first: int = 0,
) -> AsyncGenerator[ServedFlow]:
    """Let Spark read *flow*: ``spark.readStream.format("reactive")``, or ``spark.read``.

    ::

        async with serve_flow(flow, "id long, name string") as served:
            stream = spark.readStream.format("reactive").options(**served.options).load()

    Elements are rows (tuples, Rows or dicts) that fit *schema*. Call ``register(spark)`` once
    before. Inside the ``async with`` it listens at *host* and *port*, for clients with *token*, by
    default a random one. Another host than loopback needs *ssl*, an ``SSLContext`` with a
    certificate for *host*, which clients check against the authorities in the file *ca*, or in
    their system; or *allow_unencrypted*, else it raises `UnencryptedAddress`.

    A **streaming query** has one subscription. It requests as many rows as a micro-batch may have
    (the option ``maxRows``, 10,000), and exactly so many are requested of the flow. They are held
    until the query commits them, so that a task that runs again, or a query restarted from its
    checkpoint, reads the same rows; at most *capacity* rows are held, and a micro-batch gets at
    most half of that. A checkpoint outlives this process only if *name* is given, and a flow that
    continues at row number *first*, the first one that was not committed. With
    ``trigger(availableNow=True)`` the query ends when the flow completes. A flow that fails fails
    the query, after its rows.

    A **batch read** subscribes each time that Spark runs it, and requests ``maxRows`` at a time;
    ending early (``df.limit``) cancels the flow.
    """
    require_pyspark()
    options = ListenOptions(
        function="serve_flow", host=host, port=port, token=token, ssl=ssl, ca=ca,
        allow_unencrypted=allow_unencrypted,
    )  # fmt: skip
    require_int("serve_flow", "capacity", capacity, least=2)
    require_int("serve_flow", "first", first)
    if name is not None:
        require_text("serve_flow", "name", name)
    log = ReplayLog(first, capacity)
    if not callable(getattr(flow, "subscribe", None)):
        raise TypeError(
            f"serve_flow: a flow is needed, not {describe(flow)} ({type(flow).__name__}); "
            "rx.from_iterable(...) is a flow of an iterable"
        )
    require_schema("serve_flow", schema)
    columns = await anyio.to_thread.run_sync(parsed_schema, "serve_flow", schema, _parse)
    server = _FlowServer(flow, columns, log, name or uuid4().hex)
    async with server.elements, listen(server.respond, options) as where:
        yield ServedFlow(*where, log)


class _FlowServer:
    """Answers the requests of the data source's readers in `_plugin`."""

    def __init__(self, flow: "Flow[Any]", schema: "StructType", log: ReplayLog, name: str) -> None:
        self._flow = flow
        self._schema = schema
        self._log = log
        self._name = name
        self.elements = Elements("serve_flow()", flow)
        self._lock = anyio.Lock()

    async def respond(self, connection: Connection) -> None:
        try:
            match connection.request:
                case {"operation": "schema"}:
                    await connection.send_message(schema=self._schema.json())
                case {"operation": "first"}:
                    await connection.send_message(flow=self._name, row=self._log.first)
                case {"operation": "latest", "start": start, "limit": limit, "drain": drain}:
                    self._require_flow(start)
                    row = await self._latest(start["row"], limit, drain=drain)
                    await connection.send_message(flow=self._name, row=row)
                case {"operation": "read", "start": start, "stop": stop}:
                    rows = self._log.read(start, stop)
                    await connection.send(await self._encode(rows, start))
                case {"operation": "commit", "stop": stop}:
                    self._require_flow(stop)
                    self._log.commit(stop["row"])
                    await connection.send_message(row=self._log.first)
                case {"operation": "all", "limit": limit}:
                    await self._send_all(connection, limit)
                case _:
                    await connection.send_message(
                        error="this is a flow to read; serve_writes() takes writes"
                    )
        except (RowsUnavailable, _FlowFailed) as error:
            await connection.send_message(error=str(error))

    def _require_flow(self, offset: dict[str, Any]) -> None:
        if offset["flow"] != self._name:
            raise RowsUnavailable(
                "the checkpoint of this query is of another flow, or of one in a process that has "
                "ended. Begin with a new checkpoint; or give serve_flow a name=…, and first=… "
                "where the flow continues."
            )

    async def _latest(self, start: int, limit: int, *, drain: bool) -> int:
        """Request up to *limit* rows from *start* on; return the end of those that have arrived.

        With *drain*, wait for at least one row or the end of the flow.
        """
        log = self._log
        async with self._lock:  # of two queries, which the log refuses, but not at once
            if drain and log.stop == start:
                await self._gather(min(1, log.missing(start, limit)), inf)
            await self._gather(log.missing(start, limit), anyio.current_time() + _BATCH_DELAY)
        stop = log.end_of(start, limit)
        if stop == start and self.elements.error is not None:
            raise _FlowFailed from self.elements.error
        return stop

    async def _gather(self, count: int, deadline: float) -> None:
        if count:
            self.elements.ask(count)
            await self.elements.wait(deadline)
            self._log.add(self.elements.taken())
            self._log.is_done = self.elements.is_over

    async def _encode(self, rows: list[Any], first: int) -> bytes:
        try:
            return await anyio.to_thread.run_sync(encode_rows, rows, self._schema, first)
        except Exception as error:
            raise _FlowFailed from error

    async def _send_all(self, connection: Connection, limit: int) -> None:
        """Send the rows of a new subscription, *limit* for each message of the client."""
        requests = anyio.Semaphore(0)

        async def receive_requests() -> None:
            # In a task of its own, which sees a disconnection while rows are awaited.
            with suppress(Exception):
                while True:
                    await connection.receive_message()
                    requests.release()
            tasks.cancel_scope.cancel()

        async with (
            Elements("serve_flow()", self._flow) as elements,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(receive_requests)
            first = 0
            while True:
                await requests.acquire()
                elements.ask(limit)
                await elements.wait()
                rows = elements.taken()
                try:
                    content = await self._part(elements, rows, first)
                except _FlowFailed as error:
                    content = encode({"error": str(error)})
                await connection.send(content)
                first += len(rows)

    async def _part(self, elements: Elements, rows: list[Any], first: int) -> bytes:
        if rows:
            return await self._encode(rows, first)
        if elements.error is not None:
            raise _FlowFailed from elements.error
        return encode({"end": True})


class _FlowFailed(Exception):
    """The flow failed, or a row of it does not fit the schema; the cause is the error."""

    def __str__(self) -> str:
        if isinstance(self.__cause__, RowRejected):
            return str(self.__cause__)
        return f"the served flow failed: {self.__cause__!r}"


def encode_rows(rows: Sequence[Any], schema: "StructType", first: int = 0) -> bytes:
    """Return an Arrow stream of *rows*: tuples, Rows or dicts; *first* is the number of the first.

    Raises `RowRejected` for one that does not fit the schema, and ValueError for too many bytes.
    """
    import pyarrow

    conversion = RowConversion("serve_flow", schema, rows=first)
    batches = conversion.batches(rows)
    size = sum(each.nbytes for each in batches)
    if size > _LARGEST_PART:
        raise ValueError(
            f"serve_flow: {len(rows):,} rows from number {first:,} on have {size:,} bytes, and at "
            f"most {_LARGEST_PART:,} are sent at a time: give the reader a smaller option maxRows"
        )
    parts = [part for each in batches for part in cut(each, len(rows), _BATCH_BYTES)]
    return encode_table(cast("Any", pyarrow).Table.from_batches(parts, conversion.arrow))


def _parse(schema: str) -> "StructType":
    """Spark parses it, so a session must exist."""
    from pyspark.sql.types import StructType

    return cast("StructType", cast("Any", StructType).fromDDL(schema))
