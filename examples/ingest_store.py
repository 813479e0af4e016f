"""The tables of `ingest_service`: events and dead letters. An id is in one of them, once."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import asyncpg

import reactive_aio as rx

if TYPE_CHECKING:
    Pool = asyncpg.Pool[asyncpg.Record]

TABLES: Final = """
create table if not exists events (
    id text primary key, payload text not null, enriched text not null);
create table if not exists dead_letters (
    id text primary key, payload text not null, error text not null)
"""
EVENTS: Final = """
insert into events (id, payload, enriched)
select id, payload, enriched
from unnest($1::text[], $2::text[], $3::text[]) as given (id, payload, enriched)
where not exists (select from dead_letters where dead_letters.id = given.id)
on conflict do nothing
"""
DEAD_LETTER: Final = """
insert into dead_letters (id, payload, error)
select $1, $2, $3 where not exists (select from events where id = $1)
on conflict do nothing
"""
# No index covers both tables. So a transaction that decides waits for the one before it, which also
# keeps two services that write the same ids in another order from a deadlock.
LOCK: Final = "select pg_advisory_xact_lock(hashtext('ingest_service'))"

OUTAGE: Final = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # of a connection that the server has just ended
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # it is shut down
    asyncpg.TransactionRollbackError,  # such as a deadlock
)
"""What a database raises that works again later."""
AGAIN: Final = rx.RetryPolicy(attempts=None, within=30, delay=0.2, maximum=2, only=OUTAGE)


class Event(NamedTuple):
    """A row of `events`."""

    id: str
    payload: str
    enriched: str


@dataclass(slots=True)
class Store:
    """Decides ids, and counts the decisions."""

    _pool: "Pool"
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
        async with asyncpg.create_pool(dsn, min_size=1, max_size=4) as pool:
            async with pool.acquire() as connection, connection.transaction():
                await connection.execute(LOCK)  # creating one table twice at the same time fails
                await connection.execute(TABLES)
            yield cls(pool)

    async def write(self, events: Sequence[Event]) -> None:
        """Decide that these ids are events, in one transaction."""
        columns = map(list, zip(*events, strict=True))
        count = await self._decide(EVENTS, *columns)
        self.events += count
        self.repeated += len(events) - count

    async def bury(self, id: str, payload: str, error: str) -> None:
        """Decide that this id is a dead letter."""
        count = await self._decide(DEAD_LETTER, id, payload, error)
        self.dead_letters += count
        self.repeated += 1 - count

    async def _decide(self, statement: str, *arguments: object) -> int:
        """Insert rows, again after an outage; return how many were inserted."""

        async def attempt() -> str:
            async with self._pool.acquire() as connection, connection.transaction():
                await connection.execute(LOCK)
                return await connection.execute(statement, *arguments)

        tag = await rx.from_awaitable(attempt).retry(AGAIN).first()
        return int(tag.rpartition(" ")[2])
