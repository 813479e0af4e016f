"""The tables of `ingest_service`: events and dead letters. An id is in one of them, once."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import asyncpg

import reactive_aio as rx
from reactive_aio.delivery import BatchFailed, Outage

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Pool = asyncpg.Pool[asyncpg.Record]
    Connection = PoolConnectionProxy[asyncpg.Record]

TABLES: Final = """
create table if not exists events (
    id text primary key, payload text not null, enriched text not null);
create table if not exists dead_letters (
    id text primary key, payload text not null, error text not null);
alter table dead_letters add column if not exists reason text not null default 'failed',
    add column if not exists names bytea[] not null default '{}',
    add column if not exists contents bytea[] not null default '{}'
"""
ARE_THERE: Final = """
select from information_schema.columns
where table_name = 'dead_letters' and column_name = 'contents' and to_regclass('events') is not null
"""
EVENTS: Final = """
insert into events (id, payload, enriched)
select id, payload, enriched
from unnest($1::text[], $2::text[], $3::text[]) as given (id, payload, enriched)
where not exists (select from dead_letters where dead_letters.id = given.id)
on conflict do nothing
"""
DEAD_LETTER: Final = """
insert into dead_letters (id, payload, error, reason, names, contents)
select $1, $2, $3, $4, $5, $6 where not exists (select from events where id = $1)
on conflict do nothing
"""
PUT_BACK: Final = """
delete from dead_letters where id in (
    select id from dead_letters where $1 in ('all', reason, id) and contents <> '{}' limit 10)
returning names, contents
"""
# No index covers both tables. So a transaction that decides waits for the one before it, which also
# keeps two services that write the same ids in another order from a deadlock.
LOCK: Final = "select pg_advisory_xact_lock(hashtext('ingest_service'))"
LEASE: Final = 10.0
"""The seconds for which one instance may hold the lock, and another one waits for it at a time.
PostgreSQL ends the transaction of one that is frozen."""
LIMITS: Final = {
    "lock_timeout": f"{LEASE}s",
    "idle_in_transaction_session_timeout": f"{LEASE}s",
    "statement_timeout": f"{2 * LEASE}s",
}
ANSWER: Final = 3 * LEASE  # seconds after which PostgreSQL does not answer any more
LONGEST_ID: Final = 1000  # bytes, as an index has to hold it

REFUSED: Final = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
)
"""What a database raises because of a row; anything else would hit every row."""
LOST: Final = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


class NotOpened(Exception):
    """PostgreSQL cannot be reached at the start."""


POSTGRES: Final = (
    NotOpened,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""What ends the service because of PostgreSQL."""


def is_outage(error: BaseException) -> bool:
    """Whether the same rows may be written later."""
    return isinstance(error, LOST) and not isinstance(error, REFUSED)


AGAIN: Final = rx.RetryPolicy(attempts=None, within=None, delay=0.2, maximum=2, only=is_outage)


class Event(NamedTuple):
    """A row of `events`."""

    id: str
    payload: str
    enriched: str


class Letter(NamedTuple):
    """A row of `dead_letters`."""

    id: str
    payload: str
    error: str
    reason: str
    """One word: invalid, failed, refused, crashed."""
    fields: Mapping[bytes, bytes]
    """The entry as it was, to be put back."""


def key_of(id: str) -> str:
    """What can be a key, in place of an *id* that may be too long for one."""
    if len(id) <= LONGEST_ID // 4 or len(id.encode()) <= LONGEST_ID:
        return id
    return f"sha256:{hashlib.sha256(id.encode()).hexdigest()}"


@dataclass(slots=True)
class Store:
    """Decides ids, and counts the decisions."""

    _pool: "Pool"
    outage: Outage
    events: int = 0
    dead_letters: int = 0
    repeated: int = 0
    """How many of the ids given were decided before."""

    def __str__(self) -> str:
        return (
            f"{self.events:,} events, {self.dead_letters:,} dead letters, "
            f"{self.repeated:,} decided before"
        )

    @classmethod
    @asynccontextmanager
    async def opened(cls, dsn: str) -> AsyncGenerator["Store"]:
        """Connect, and create the tables that do not exist."""
        pool = asyncpg.create_pool(
            dsn, min_size=0, max_size=4, timeout=LEASE, server_settings=LIMITS
        )
        store = cls(pool, Outage("PostgreSQL (--postgres)", AGAIN))
        try:
            async with asyncio.timeout(ANSWER):
                await pool
                await store._make_tables()
        except OSError as error:
            raise NotOpened(f"{type(error).__name__}: {error}") from error
        try:
            yield store
        finally:
            pool.terminate()  # nothing is written any more; closing could wait for ever

    async def write(self, events: Sequence[Event]) -> None:
        """Decide that these ids are events, in one transaction; `BatchFailed` for those refused."""
        try:
            count = await self._decide(EVENTS, *map(list, zip(*events, strict=True)))
        except Exception as error:  # of one of the rows: anything else is an outage
            if len(events) == 1:
                raise BatchFailed({0: error}) from error
            await self._write_each(events)
        else:
            self.events += count
            self.repeated += len(events) - count

    async def _write_each(self, events: Sequence[Event]) -> None:
        errors: dict[int, Exception] = {}
        for position, event in enumerate(events):
            try:
                await self.write([event])
            except BatchFailed as error:
                errors[position] = error.errors[0]
        if errors:
            raise BatchFailed(errors)

    async def bury(self, letter: Letter) -> None:
        """Decide that this id is a dead letter."""
        fields = [*letter.fields], [*letter.fields.values()]
        count = await self._decide(DEAD_LETTER, key_of(letter.id), *letter[1:4], *fields)
        self.dead_letters += count
        self.repeated += 1 - count

    async def put_back(self, which: str, add: Any) -> int:
        """Call *add* with the fields of dead letters, and delete them; return how many.

        No event is written meanwhile: one that was put back finds no dead letter of its id.
        """
        count = 0
        while True:
            async with self._transaction() as connection:
                rows = await connection.fetch(PUT_BACK, which)
                for row in rows:
                    await add(dict(zip(row["names"], row["contents"], strict=True)))
            if not rows:
                return count
            count += len(rows)

    async def _make_tables(self) -> None:
        async with self._transaction() as connection:
            if not await connection.fetch(ARE_THERE):  # altering one waits for all who read it
                await connection.execute(TABLES)

    async def _decide(self, statement: str, *arguments: object) -> int:
        """Insert rows, again after an outage; return how many were inserted."""
        return await self.outage.call(self._insert, statement, *arguments)

    async def _insert(self, statement: str, *arguments: object) -> int:
        async with asyncio.timeout(ANSWER), self._transaction() as connection:
            tag = await connection.execute(statement, *arguments)
            return int(tag.rpartition(" ")[2])

    @asynccontextmanager
    async def _transaction(self) -> AsyncGenerator["Connection"]:
        """A transaction that holds the lock.

        A server that has not answered is not asked to roll back: its connection is dropped.
        """
        connection = await self._pool.acquire(timeout=LEASE)
        try:
            await self._begin(connection)
            yield connection
            await connection.execute("commit")
        except BaseException as error:
            if isinstance(error, asyncpg.PostgresError):
                with suppress(*LOST):
                    await connection.execute("rollback")
            else:
                connection.terminate()
            raise
        finally:
            await self._pool.release(connection)

    async def _begin(self, connection: "Connection") -> None:
        try:
            await connection.execute(f"begin; {LOCK}")
        except asyncpg.LockNotAvailableError as error:
            what = f"another instance has the lock for more than {LEASE:g} s, and may be frozen"
            raise asyncpg.LockNotAvailableError(what) from error
