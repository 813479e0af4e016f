# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio", "asyncpg>=0.30"]
# ///
"""PostgreSQL: an outbox, whose rows are sent after they were committed, and deleted after that.

    python examples/recipes/postgres_outbox.py --postgres postgresql://localhost/shop

A transaction that changes orders also inserts a row into `outbox`: what is sent is what was
committed. A trigger notifies the relay (LISTEN), which sends the row, and deletes it when that is
done. A second relay waits until the first one has ended, or has not answered for LEASE seconds.
Serve until Ctrl-C.

To try it: psql shop -c "insert into outbox (topic, payload) values ('orders', 'a first row')"
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import asyncpg

import reactive_aio as rx
from reactive_aio.delivery import DeliveryFlow, deliveries

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Pool = asyncpg.Pool[asyncpg.Record]
    Connection = PoolConnectionProxy[asyncpg.Record]

TABLE: Final = """
create table if not exists outbox (
    id bigint generated always as identity primary key, topic text not null, payload text not null);
create or replace function notify_outbox() returns trigger language plpgsql as
    $$ begin perform pg_notify('outbox', ''); return null; end $$;
create or replace trigger outbox_notifies after insert on outbox
    for each statement execute function notify_outbox()
"""
IS_MADE: Final = "select from pg_trigger where tgname = 'outbox_notifies'"
LOCK: Final = "select pg_advisory_lock(hashtext('outbox'))"
LEASE: Final = 15.0  # seconds: PostgreSQL ends the session, and the lock, of a relay that is frozen
# A row may be committed after one with a larger id. So those in work are left out, not smaller ids.
UNSENT: Final = "select * from outbox where id <> all($1::bigint[]) order by id limit $2"


@dataclass(slots=True)
class Outbox:
    """The rows of the table `outbox`, read by one relay at a time."""

    pool: "Pool"
    poll: float = 10.0  # seconds after which it looks for rows without a notification
    count: int = 100  # how many rows are read with one query
    lease: float = LEASE
    _working: set[int] = field(default_factory=set[int])

    def rows(self, *, limit: int = 256) -> DeliveryFlow[asyncpg.Record]:
        """The rows that are not sent, from the oldest on; at most *limit* are held."""
        rows = rx.from_aiter(self._lists).flat_map(lambda rows: rows)
        return deliveries(rows, ack_many=self._sent, nack=self._not_sent, limit=limit)

    async def _lists(self) -> AsyncGenerator[list[asyncpg.Record]]:
        self._working.clear()
        async with self._listening() as (notified, lost):
            while not lost.is_set():
                notified.clear()
                while rows := await self.pool.fetch(UNSENT, list(self._working), self.count):
                    self._working.update(row["id"] for row in rows)
                    yield rows
                with suppress(TimeoutError):  # then look for rows all the same
                    async with asyncio.timeout(self.poll):
                        await notified.wait()
        raise ConnectionError("the connection that listens is lost")

    @asynccontextmanager
    async def _listening(self) -> AsyncGenerator[tuple[asyncio.Event, asyncio.Event]]:
        """Events: rows were committed, the connection is lost. No other relay reads meanwhile."""
        notified, lost = asyncio.Event(), asyncio.Event()

        def notify(*_: object) -> None:
            notified.set()

        def lose(_: object) -> None:
            lost.set()
            notified.set()

        async with self.pool.acquire() as connection:
            await self._lock(connection)
            if not await connection.fetch(IS_MADE):  # made again, it would lock out all writers
                await connection.execute(TABLE)
            await connection.add_listener("outbox", notify)
            connection.add_termination_listener(lose)
            try:
                async with rx.interval(self.lease / 3).running(partial(_renew, connection)):
                    yield notified, lost
            finally:
                if not lost.is_set():
                    connection.remove_termination_listener(lose)
                    await connection.remove_listener("outbox", notify)

    async def _lock(self, connection: "Connection") -> None:
        """Wait until no other relay reads; this one keeps the lock while it answers."""
        seconds = f"{self.lease}s"
        await connection.execute(f"set idle_session_timeout = '{seconds}'")
        await connection.execute(f"set lock_timeout = '{seconds}'")
        while True:
            try:
                await connection.execute(LOCK)
            except asyncpg.LockNotAvailableError:
                print("outbox: another relay reads, and this one waits", file=sys.stderr)
            else:
                return

    async def _sent(self, rows: list[asyncpg.Record]) -> None:
        ids = [row["id"] for row in rows]
        await self.pool.execute("delete from outbox where id = any($1::bigint[])", ids)
        self._working.difference_update(ids)

    def _not_sent(self, row: asyncpg.Record, error: Exception) -> None:
        self._working.discard(row["id"])  # the next query finds it


async def _renew(connection: "Connection", _: int) -> None:
    with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):  # it is lost, then
        await connection.execute("")


async def main(options: argparse.Namespace) -> int:
    """Print the rows of the outbox until SIGTERM or Ctrl-C."""
    async with asyncpg.create_pool(options.postgres, min_size=2, max_size=4) as pool:
        rows = Outbox(pool).rows()
        sent = rows.ack_after(lambda row: print(row["topic"], row["payload"], flush=True))
        return await rx.run_until_signal(sent, on_drained=print)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    dsn = "such as postgresql://localhost/shop"
    parser.add_argument("--postgres", required=True, metavar="DSN", help=dsn)
    options = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(options)))
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        sys.exit(f"--postgres: {type(error).__name__}: {error}")
