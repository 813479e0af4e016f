"""Queries, COPY and an outbox, with a real PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import asyncpg
import pytest
from recipes import postgres_outbox
from recipes.postgres_copy import copy_into, from_query
from recipes.postgres_outbox import Outbox

from tests.harness.servers import PostgresServer
from tests.recipes.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.database()


@pytest.fixture
async def pool(url: str) -> AsyncGenerator["asyncpg.Pool[asyncpg.Record]"]:
    async with asyncpg.create_pool(url, min_size=1, max_size=6) as opened:
        await opened.execute("drop schema public cascade; create schema public")
        yield opened


Pool = Any


async def add(pool: Pool, *payloads: str) -> None:
    rows = [("t", payload) for payload in payloads]
    async with pool.acquire() as connection:
        await connection.executemany("insert into outbox (topic, payload) values ($1, $2)", rows)


class TestCopy:
    NUMBERS = "select n, n::text from generate_series(1, $1::int) as n"

    async def test_rows_are_copied_in_batches(self, pool: Pool) -> None:
        await pool.execute("create table copies (n int primary key, name text)")
        rows = from_query(pool, self.NUMBERS, 2500, prefetch=100).map(tuple)
        copy = copy_into(pool, "copies", ["n", "name"])
        assert await rows.buffer(1000).map_async(copy).to_list(limit=9) == [1000, 1000, 500]
        found = await pool.fetchrow("select count(*), sum(n), max(name) from copies")
        assert tuple(found) == (2500, 2500 * 2501 // 2, "999")

    async def test_a_query_is_read_by_demand_and_its_connection_is_given_back(
        self, pool: Pool
    ) -> None:
        endless = "select generate_series(1, 1000000000)"
        rows = from_query(pool, endless, prefetch=10).map(lambda row: row[0])
        assert await rows.take(25).to_list(limit=99) == [*range(1, 26)]
        assert pool.get_idle_size() == pool.get_size()

    async def test_a_batch_is_copied_as_a_whole_or_not_at_all(self, pool: Pool) -> None:
        await pool.execute("create table copies (n int primary key)")
        copy = copy_into(pool, "copies", ["n"])
        with pytest.raises(asyncpg.UniqueViolationError):
            await copy([(1,), (2,), (1,)])
        assert await pool.fetchval("select count(*) from copies") == 0


class TestOutbox:
    async def test_rows_before_and_after_the_start_are_sent_and_deleted(self, pool: Pool) -> None:
        sent: list[str] = []
        flow = Outbox(pool, poll=60).rows().ack_after(lambda row: sent.append(row["payload"]))
        async with flow.running() as run:
            await until(lambda: has_table(pool))
            await add(pool, *map(str, range(300)))
            await until(lambda: len(sent) == 300)
            await add(pool, "one more")
            await until(lambda: len(sent) == 301)
            report = await run.drain()
        assert report.is_complete
        assert sent == [*map(str, range(300)), "one more"]
        assert await pool.fetchval("select count(*) from outbox") == 0
        assert pool.get_idle_size() == pool.get_size()

    async def test_what_was_not_committed_is_not_sent(self, pool: Pool) -> None:
        sent: list[str] = []
        flow = Outbox(pool, poll=60).rows().ack_after(lambda row: sent.append(row["payload"]))
        async with flow.running():
            await until(lambda: has_table(pool))
            async with pool.acquire() as connection:
                transaction = connection.transaction()
                await transaction.start()
                insert = "insert into outbox (topic, payload) values ('t', $1)"
                await connection.execute(insert, "never")
                await transaction.rollback()
                async with connection.transaction():
                    await connection.execute(insert, "smaller id, committed later")
                    await add(pool, "larger id")
                    await until(lambda: "larger id" in sent)
            await until(lambda: len(sent) == 2)
        assert sent == ["larger id", "smaller id, committed later"]

    async def test_a_row_that_fails_is_sent_again(self, pool: Pool) -> None:
        attempts: list[str] = []

        def send(row: Any) -> None:
            attempts.append(row["payload"])
            if attempts.count(row["payload"]) < 3:
                raise OSError("not now")

        flow = Outbox(pool, poll=0.05).rows().ack_after(send, on_error="skip")
        async with flow.running() as run:
            await until(lambda: has_table(pool))
            await add(pool, "a")
            await until(lambda: len(attempts) == 3)
            await run.drain()
        assert await pool.fetchval("select count(*) from outbox") == 0

    async def test_a_second_relay_waits_until_the_first_one_has_ended(self, pool: Pool) -> None:
        sent: list[tuple[str, str]] = []

        def relay(name: str) -> Any:
            return Outbox(pool).rows().ack_after(lambda row: sent.append((name, row["payload"])))

        async with relay("first").running() as first:
            await until(lambda: has_table(pool))
            await add(pool, "a")
            await until(lambda: len(sent) == 1)
            async with relay("second").running():
                await until(lambda: is_waiting(pool))
                await add(pool, "b")
                await until(lambda: len(sent) == 2)
                await first.drain()
                await add(pool, "c")
                await until(lambda: ("second", "c") in sent)
        assert sent[:2] == [("first", "a"), ("first", "b")]
        # The second one may find "b" before the first one has deleted it.
        assert sent[-1] == ("second", "c")

    async def test_a_relay_that_does_not_answer_loses_its_lease(
        self, pool: Pool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        async def freeze(*_: object) -> None:
            """It is stopped: nothing renews the lease."""

        monkeypatch.setattr(postgres_outbox, "_renew", freeze)
        sent: list[str] = []
        frozen = asyncio.ensure_future(
            Outbox(pool, lease=0.5).rows().ack_after(lambda row: None).run()
        )
        await until(lambda: has_table(pool))
        other = Outbox(pool, lease=0.2).rows().map(lambda row: str(row["payload"]))
        async with other.ack_after(sent.append).running():
            with pytest.raises(ConnectionError, match="the connection that listens is lost"):
                await frozen
            await add(pool, "a")
            await until(lambda: "a" in sent)
        assert "outbox: another relay reads, and this one waits" in capsys.readouterr().err

    async def test_a_lost_connection_fails_the_flow(self, pool: Pool) -> None:
        sent: list[Any] = []
        end = "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'"
        async with asyncio.TaskGroup() as group:
            work = group.create_task(failing(Outbox(pool, poll=60), sent))
            await until(lambda: has_table(pool))
            await add(pool, "a")
            await until(lambda: sent)
            await pool.execute(end)
        assert "the connection that listens is lost" in work.result()


async def failing(outbox: Outbox, sent: list[Any]) -> str:
    with pytest.raises(ConnectionError) as failed:
        await outbox.rows().ack_after(sent.append).run()
    return str(failed.value)


async def has_table(pool: Pool) -> bool:
    """Whether a relay has created its table, and listens or is about to."""
    trigger = "select exists (select from pg_trigger where tgname = 'outbox_notifies')"
    return bool(await pool.fetchval(trigger))


async def is_waiting(pool: Pool) -> bool:
    waiting = "select exists (select from pg_locks where locktype = 'advisory' and not granted)"
    return bool(await pool.fetchval(waiting))
