"""PostgreSQL: an outbox as a source of deliveries, LISTEN, the rows of a query, and COPY as a sink.

::

    async with postgres.connect("postgresql://127.0.0.1/shop") as pool:
        unsent = postgres.source(pool, "outbox")
        await unsent.ack_after(send).run()

The extra ``postgres`` is needed (asyncpg), and PostgreSQL 14 or newer.
"""

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from sys import modules
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio

from .._shared.foreign_options import explain_foreign_options
from .._sources.timers import interval
from ..delivery import DeliveryFlow, Outage, Unfinished, deliveries
from ..errors import MissingExtra, Overflow
from ..retry import RetryPolicy
from ..stage import Duration, from_async, require_int, to_seconds
from .common import (
    ATTEMPTS,
    LOG,
    RECONNECT,
    Arrivals,
    Send,
    ack_timeout,
    awaits_messages,
    closing,
    outage_of,
    require_client,
    require_name,
    require_open,
    with_dead_letters,
)

try:
    import asyncpg
except ModuleNotFoundError as _error:
    if _error.name != "asyncpg":
        raise
    raise MissingExtra("connectors.postgres", "postgres") from _error

if TYPE_CHECKING:
    from ..flow import Flow

    Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
    Row: TypeAlias = asyncpg.Record

__all__ = ("Outbox", "connect", "listen", "rows", "sink", "source")

_CLIENT: Final = "an asyncpg.Pool"
LOST: Final = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # of a connection that the server has just ended
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # it is shut down
    asyncpg.IdleSessionTimeoutError,  # this process did nothing for longer than the lease
    asyncpg.TransactionRollbackError,  # such as a deadlock
    asyncpg.LockNotAvailableError,
)
AGAIN: Final = 1.0  # seconds after which a row whose work has failed is read again
SILENCE: Final = 30.0  # seconds after which a listener has noticed that the server says nothing

TABLE: Final = """
create table if not exists {0} (
    id bigint generated always as identity primary key, topic text not null, payload text not null);
create or replace function notify_{0}() returns trigger language plpgsql as
    $$ begin perform pg_notify('{0}', ''); return null; end $$;
create or replace trigger {0}_notifies after insert on {0}
    for each statement execute function notify_{0}()
"""
LOCK: Final = "select pg_advisory_lock(hashtextextended($1, 0))"
EXISTS: Final = "select exists (select from pg_trigger where tgname = $1)"
# A row may be committed after one with a larger id. So those in work are left out, not smaller ids.
UNSENT: Final = "select * from {} where id <> all($1::bigint[]) order by id limit $2"
SENT: Final = "delete from {} where id = any($1::bigint[])"


@asynccontextmanager
async def connect(url: str, **options: Any) -> AsyncGenerator["Pool"]:
    """A pool of connections, 2 to 10 unless *options* say otherwise; the server has to be there."""
    settings: dict[str, Any] = {"min_size": 2, "max_size": 10}
    pool = await asyncpg.create_pool(url, **(settings | options))
    async with closing(pool.close, pool.terminate):
        yield pool


def source(
    pool: "Pool",
    table: str = "outbox",
    *,
    limit: int = 256,
    count: int = 100,
    poll: Duration = 10.0,
    lease: Duration = 30.0,
    retry: RetryPolicy | int = RECONNECT,
    attempts: RetryPolicy | int = ATTEMPTS,
    on_dead_letter: "Callable[[Row, Exception], object] | None" = None,
) -> "DeliveryFlow[Row]":
    """The rows of an outbox, from the oldest on; a row is deleted when the work on it is done.

    A transaction that changes orders also inserts a row: what is sent is what was committed. A
    trigger notifies this source; without a notification it looks every *poll* seconds. *table*
    (`id`, `topic`, `payload`) is created if it does not exist. One process reads it at a time, the
    others wait: one that does nothing for *lease* seconds loses its place to the next. A query that
    PostgreSQL does not answer for as long has lost its connection.

    Demand: passed through, while fewer than *limit* rows are held.
    Completes: never; a drain ends it.
    Fails: when PostgreSQL cannot be reached for longer than *retry* allows, or refuses a query.
    Cancels: the wait for a notification; the connection that listens is closed.
    Holds: *limit* rows, and a list of *count*.
    Rules: 1.1
    """
    seconds = to_seconds(poll, "postgres.source: poll"), to_seconds(lease, "postgres.source: lease")
    outbox = Outbox(pool, seconds[0], count, table, seconds[1], retry)
    return outbox.rows(limit=limit, attempts=attempts, on_dead_letter=on_dead_letter)


def listen(
    pool: "Pool", channel: str, *, limit: int = 1000, retry: RetryPolicy | int = RECONNECT
) -> "Flow[str]":
    """The payloads of the notifications of *channel*; an empty one first, and after each gap.

    Nobody keeps a notification for a listener that is not connected. So the first element, and the
    one after a lost connection, is an empty text: look for what was missed.

    Demand: notifications are collected while nothing is requested, up to *limit*.
    Completes: never.
    Fails: with `Overflow`, when *limit* notifications wait; when PostgreSQL cannot be reached for
        longer than *retry* allows.
    Cancels: the connection is closed; the pool makes another one when it needs it.
    Holds: *limit* notifications.
    Rules: 1.1
    """
    _require_pool("postgres.listen", pool, "acquire")
    require_name("postgres.listen", "channel", channel)
    require_int("postgres.listen", "limit", limit, least=1)
    outage = outage_of(f"PostgreSQL (channel {channel!r})", retry, LOST, partial(_is_closed, pool))

    async def lists() -> AsyncGenerator[list[str]]:
        while True:
            try:
                async with _listening(pool, channel, _Heard(limit), SILENCE) as heard:
                    outage.over()
                    yield [""]
                    while True:
                        yield await heard.next()
            except LOST as error:
                await outage.wait(error)

    source = from_async(lists, name=f"postgres.listen({channel!r})", holds=limit)
    return source.concat_map(lambda each: each)


def rows(pool: "Pool", query: str, *arguments: object, count: int = 256) -> "Flow[Row]":
    """The rows of *query*, read by a cursor of the server; up to *count* with one call.

    The transaction only reads, and sees one snapshot.

    Demand: pulled, *count* rows at a time.
    Completes: after the last row.
    Fails: when PostgreSQL refuses the query, or the connection is lost: a snapshot cannot be
        resumed.
    Cancels: the cursor is closed, and the connection is given back to the pool.
    Holds: *count* rows.
    Rules: 1.1
    """
    _require_pool("postgres.rows", pool, "acquire")
    require_name("postgres.rows", "query", query)
    require_int("postgres.rows", "count", count, least=1)

    async def lists() -> "AsyncGenerator[list[Row]]":
        async with pool.acquire() as connection:
            transaction = connection.transaction(readonly=True)
            await transaction.start()
            async with closing(transaction.rollback, partial(_terminate, connection)):
                cursor = await connection.cursor(query, *arguments)
                while found := await cursor.fetch(count):
                    yield found

    return from_async(lists, name="postgres.rows").concat_map(lambda each: each)


def sink(
    pool: "Pool", table: str, columns: Sequence[str], *, retry: RetryPolicy | int = RECONNECT
) -> Send[Sequence[object]]:
    """A function that appends a list of rows to *table* by one COPY: all of them, or none.

    A list whose answer was lost is sent again, and is there twice unless the table has a key that
    refuses it.
    """
    _require_pool("postgres.sink", pool, "acquire")
    require_name("postgres.sink", "table", table)
    outage = outage_of(f"PostgreSQL (table {table!r})", retry, LOST, partial(_is_closed, pool))

    async def send(batch: Sequence[Sequence[object]]) -> None:
        await outage.call(copy, batch)

    async def copy(batch: Sequence[Sequence[object]]) -> None:
        async with _connection(pool) as connection:
            await connection.copy_records_to_table(table, records=batch, columns=columns)

    return send


def _require_pool(call: str, pool: object, *methods: str) -> None:
    require_client(call, _CLIENT, pool, *methods)
    given: Any = pool  # or what is used in its place
    is_new = isinstance(pool, asyncpg.Pool) and not given._initialized
    require_open(call, is_new=is_new, is_closed=_is_closed(pool))


def _is_closed(pool: Any) -> bool:
    return isinstance(pool, asyncpg.Pool) and pool.is_closing()


@dataclass(slots=True)
class Outbox:
    """The rows of an outbox: what `source` reads with."""

    pool: "Pool"
    poll: float = 10.0
    count: int = 100
    table: str = "outbox"
    lease: float = 30.0
    retry: RetryPolicy | int = RECONNECT
    _working: set[int] = field(default_factory=set[int], init=False)
    _resting: dict[int, float] = field(default_factory=dict[int, float], init=False)
    """When a row whose work has failed is read again."""
    _outage: Outage = field(init=False)

    def __post_init__(self) -> None:
        _require_pool("postgres.source", self.pool, "acquire")
        require_name("postgres.source", "table", self.table)
        require_int("postgres.source", "count", self.count, least=1)
        if not re.fullmatch(r"[a-z_][a-z0-9_]*", self.table):
            raise ValueError(
                f"postgres.source: table must be a plain name in lower case, not {self.table!r}"
            )
        is_closed = partial(_is_closed, self.pool)
        self._outage = outage_of(f"PostgreSQL (table {self.table!r})", self.retry, LOST, is_closed)

    def rows(
        self,
        *,
        limit: int = 256,
        attempts: RetryPolicy | int = ATTEMPTS,
        on_dead_letter: Any = None,
    ) -> "DeliveryFlow[Row]":
        """What `source` returns. Only one subscription may use an outbox at a time."""
        lists = from_async(self._lists, name=f"postgres({self.table!r})")
        flow = deliveries(
            lists.concat_map(lambda each: each),
            ack_many=self._sent,
            nack=self._not_sent,
            limit=limit,
            ack_timeout=ack_timeout(self.retry),
        )
        return with_dead_letters(flow, attempts, on_dead_letter)

    # -- reading ----------------------------------------------------------------------------------
    async def _lists(self) -> "AsyncGenerator[list[Row]]":
        self._working.clear()
        self._resting.clear()
        while True:
            try:
                heard = _Heard(None)
                async with _listening(self.pool, self.table, heard, self.lease, self._alone):
                    self._outage.over()
                    while True:
                        while found := await self._unsent():
                            yield found
                        with anyio.move_on_after(self._pause()):
                            await heard.next()
            except LOST as error:
                await self._outage.wait(error)

    async def _unsent(self) -> "list[Row]":
        now = anyio.current_time()
        self._resting = {id: due for id, due in self._resting.items() if due > now}
        others = [*self._working, *self._resting]
        query = UNSENT.format(self.table)
        async with _connection(self.pool) as connection:
            found: list[Row] = await connection.fetch(query, others, self.count, timeout=self.lease)
        self._working.update(row["id"] for row in found)
        return found

    def _pause(self) -> float:
        due = min(self._resting.values(), default=anyio.current_time() + self.poll)
        return min(self.poll, due - anyio.current_time())

    @awaits_messages
    async def _alone(self, connection: Any) -> None:
        """Wait until no other process reads, and make the table then, if there is none.

        The lock belongs to the session, which the server ends when it is idle for too long. It is
        waited for as long at a time, which shows that the server is there: a server that has not
        answered after twice that time is lost.
        """
        for limit in ("idle_session_timeout", "lock_timeout"):
            setting = f"set {limit} = {round(1000 * self.lease)}"
            await connection.execute(setting, timeout=self.lease)
        if not await self._is_locked(connection):
            LOG.warning("PostgreSQL: another process reads %r, and this one waits", self.table)
            while not await self._is_locked(connection):
                pass
        trigger = f"{self.table}_notifies"
        if not await connection.fetchval(EXISTS, trigger, timeout=self.lease):
            await connection.execute(TABLE.format(self.table), timeout=2 * self.lease)

    async def _is_locked(self, connection: Any) -> bool:
        key, within = f"reactive_aio:{self.table}", 2 * self.lease
        try:
            await connection.execute(LOCK, key, timeout=within)
        except asyncpg.LockNotAvailableError:
            return False
        return True

    # -- acknowledging ----------------------------------------------------------------------------
    async def _sent(self, rows: "list[Row]") -> None:
        ids = [row["id"] for row in rows]
        await self._outage.call(self._delete, ids)
        self._working.difference_update(ids)

    async def _delete(self, ids: list[int]) -> None:
        async with _connection(self.pool) as connection:
            await connection.execute(SENT.format(self.table), ids, timeout=self.lease)

    def _not_sent(self, row: "Row", error: Exception) -> None:
        self._working.discard(row["id"])
        if not isinstance(error, Unfinished):
            self._resting[row["id"]] = anyio.current_time() + AGAIN


class _Heard(Arrivals[str]):
    """The notifications of a channel: up to *limit* of them wait.

    Without a limit they say nothing, as those of an outbox, and only the last one waits.
    """

    def __init__(self, limit: int | None) -> None:
        super().__init__()
        self._limit = limit

    def notify(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        """The server has notified."""
        if self._limit is None:
            self.waiting.clear()
        elif len(self.waiting) == self._limit:
            remedy = "read the notifications faster, or raise limit"
            self.end(Overflow("postgres.listen", self._limit, remedy))
        self.add(str(payload))

    def lose(self, _connection: object) -> None:
        """The connection has ended."""
        self.end(ConnectionError("the connection that listens is lost"))


@asynccontextmanager
async def _connection(pool: "Pool") -> AsyncGenerator[Any]:
    """A connection of the pool, which is closed after an error or a cancellation.

    To give it back, the pool would first ask the server to end what is under way. A server that is
    frozen, or was cut off, never answers; and an error of that question would take the place of the
    cancellation.
    """
    async with pool.acquire() as connection:
        try:
            yield connection
        except BaseException:
            _terminate(connection)
            raise


def _terminate(connection: Any) -> None:
    with suppress(asyncpg.InterfaceError):  # it was lost, and the pool has it back
        connection.terminate()


@asynccontextmanager
async def _listening(
    pool: "Pool", channel: str, heard: _Heard, seconds: float, prepare: Any = None
) -> AsyncGenerator[_Heard]:
    """A connection of its own that listens, and is asked now and then whether it is there.

    Its block is only left with an error or a cancellation, after which the connection is closed.
    """
    async with _connection(pool) as connection:
        if prepare is not None:
            await prepare(connection)
        with anyio.fail_after(seconds):
            await connection.add_listener(channel, heard.notify)
        connection.add_termination_listener(heard.lose)
        async with _kept(connection, heard, seconds):
            yield heard


def _kept(connection: Any, heard: _Heard, seconds: float) -> AbstractAsyncContextManager[object]:
    """Show the server that this process is alive, and notice when the server is not."""

    async def ask(_: int) -> None:
        try:
            await connection.execute("select 1", timeout=seconds / 3)
        except LOST as error:
            heard.end(error)

    return interval(seconds / 3).running(ask)


explain_foreign_options(modules[__name__], __all__)
