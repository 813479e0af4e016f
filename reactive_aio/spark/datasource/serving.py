"""serve_flow: a flow that Spark reads."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import anyio

from ..._core.arguments import require_int
from ..failures import require_pyspark
from .encoding import encode, parse
from .puller import Puller
from .replay import Replay, ReplayLost
from .server import Caller, Served, listening
from .wire import words

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ...flow import Flow

__all__ = ("ServedFlow", "serve_flow")

_PATIENCE: Final = 0.1
"""Seconds in which a batch may fill up, once Spark has asked for it."""


class ServedFlow(Served):
    """What `serve_flow` gives."""

    def __init__(self, address: str, token: str, replay: Replay) -> None:
        super().__init__(address, token)
        self._replay = replay

    @property
    def held(self) -> int:
        """How many rows wait for a streaming query to commit them."""
        return self._replay.stop - self._replay.first

    @property
    def committed(self) -> int:
        """How many rows a streaming query has committed."""
        return self._replay.first


@asynccontextmanager
async def serve_flow(
    flow: "Flow[Any]",
    schema: "StructType | str",
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    replay: int = 100_000,
    name: str | None = None,
    first: int = 0,
) -> AsyncGenerator[ServedFlow]:
    """Let Spark read *flow*: ``spark.readStream.format("reactive")``, or ``spark.read``.

    ::

        async with serve_flow(flow, "id long, name string") as served:
            stream = spark.readStream.format("reactive").options(**served.options).load()

    Elements are rows (tuples, Rows or dicts) that fit *schema*. Call ``register(spark)`` once
    before. Inside the ``async with`` it listens at *host* and *port*, for those who know *token*,
    by default one that is made up.

    A **streaming query** shares one subscription. It asks for as many rows as a micro-batch may
    have (the option ``maxRows``, 10,000), and exactly so many are requested of the flow. They are
    kept until the query commits them, so that a task, or a query started anew from its checkpoint,
    reads the same ones again; *replay* is the most that are kept, and half of it the most a
    micro-batch gets. A checkpoint outlives this process only if *name* is given, and a flow that
    goes on at row number *first*, the one that was not committed. With
    ``trigger(availableNow=True)`` the query ends when the flow completes. A flow that fails fails
    the query, behind its rows.

    A **batch read** subscribes anew, for each time that Spark runs it, and requests ``maxRows`` at
    a time; leaving early (``df.limit``) cancels the flow.
    """
    require_pyspark()
    require_int("serve_flow", "replay", replay, least=2)
    require_int("serve_flow", "first", first)
    kept = Replay(first, replay)
    columns = await anyio.to_thread.run_sync(parse, schema)
    serving = _Serving(flow, columns, kept, name or uuid4().hex)
    try:
        async with listening(serving.respond, host=host, port=port, token=token) as (place, secret):
            yield ServedFlow(place, secret, kept)
    finally:
        await serving.puller.aclose()


class _Serving:
    """Answers what the data source asks, see `_plugin`."""

    def __init__(self, flow: "Flow[Any]", schema: "StructType", replay: Replay, name: str) -> None:
        self._flow = flow
        self._schema = schema
        self._replay = replay
        self._name = name
        self.puller = Puller(flow, replay.add)

    async def respond(self, caller: Caller) -> None:
        try:
            match caller.question:
                case {"operation": "schema"}:
                    await caller.tell(schema=self._schema.json())
                case {"operation": "first"}:
                    await caller.tell(flow=self._name, row=self._replay.first)
                case {"operation": "latest", "start": start, "limit": limit, "patient": patient}:
                    self._check(start)
                    row = await self._latest(start["row"], limit, patient=patient)
                    await caller.tell(flow=self._name, row=row)
                case {"operation": "read", "start": start, "stop": stop}:
                    await caller.send(await self._encoded(self._replay.read(start, stop)))
                case {"operation": "commit", "stop": stop}:
                    self._check(stop)
                    self._replay.commit(stop["row"])
                    await caller.tell(row=self._replay.first)
                case {"operation": "all", "limit": limit}:
                    await self._all(caller, limit)
                case _:
                    await caller.tell(error="this is a flow to read; serve_writes() takes writes")
        except ReplayLost as error:
            await caller.tell(error=str(error))
        except _Failed as error:
            await caller.tell(error=f"the served flow failed: {error.__cause__!r}")

    def _check(self, offset: dict[str, Any]) -> None:
        if offset["flow"] != self._name:
            raise ReplayLost(
                "the checkpoint of this query is of another flow, or of one in a process that has "
                "ended. Begin with a new checkpoint; or give serve_flow a name=…, and first=… "
                "where the flow goes on."
            )

    async def _latest(self, start: int, limit: int, *, patient: bool) -> int:
        """Request up to *limit* rows behind *start*; return where those end that have come."""
        replay, puller = self._replay, self.puller
        puller.pull(replay.want(start, limit))
        with anyio.move_on_after(None if patient else _PATIENCE) as scope:
            while not puller.ended and not replay.enough(start, limit):
                if patient and replay.stop > start and scope.deadline == float("inf"):
                    scope.deadline = anyio.current_time() + _PATIENCE
                await puller.news()
        replay.ended = puller.ended
        stop = replay.until(start, limit)
        if stop == start and puller.error is not None:
            raise _Failed from puller.error
        return stop

    async def _encoded(self, rows: list[Any]) -> bytes:
        try:
            return await anyio.to_thread.run_sync(partial(encode, rows, self._schema))
        except Exception as error:
            raise _Failed from error

    async def _all(self, caller: Caller, limit: int) -> None:
        """The rows of a subscription of its own, *limit* at a time, as they are asked for."""
        rows = list[Any]()
        puller = Puller(self._flow, rows.append)
        failed: _Failed | None = None
        try:
            ask, asked = anyio.create_memory_object_stream[int](1)
            async with ask, asked, anyio.create_task_group() as tasks:
                # On the side, so that the end of the connection is seen while rows are awaited.
                tasks.start_soon(_listen, caller, ask, tasks.cancel_scope)
                async for _ in asked:
                    try:
                        content = await self._part(puller, rows, limit)
                    except _Failed as error:
                        failed = error
                        break
                    await caller.send(content)
                tasks.cancel_scope.cancel()
        finally:
            await puller.aclose()
        if failed is not None:
            raise failed

    async def _part(self, puller: Puller, rows: list[Any], limit: int) -> bytes:
        puller.pull(limit)
        while not puller.ended and len(rows) < limit:
            await puller.news()
        part = rows[:]
        rows.clear()
        if part:
            return await self._encoded(part)
        if puller.error is not None:
            raise _Failed from puller.error
        return words({"end": True})


async def _listen(caller: Caller, ask: Any, scope: anyio.CancelScope) -> None:
    try:
        while True:
            await caller.hear()
            await ask.send(1)
    except Exception:
        scope.cancel()


class _Failed(Exception):
    """The flow failed, or a row of it does not fit the schema."""
