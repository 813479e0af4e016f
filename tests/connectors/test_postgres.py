"""Queries, COPY and an outbox, with a real PostgreSQL."""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import asyncpg
import pytest

import reactive_aio as rx
from reactive_aio.connectors import Message, postgres
from reactive_aio.connectors.postgres import Outbox
from reactive_aio.delivery import deliveries
from reactive_aio.errors import Overflow
from tests.connectors.losses import AGAIN, work_through_losses
from tests.harness.outages import Lacking, Proxy
from tests.harness.servers import PostgresServer, postgres_running
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


@pytest.fixture
def full() -> Iterator[str]:
    """A database of a server whose tables have no room for more than that of its journal."""
    with postgres_running(Lacking(file_size=17 << 20)) as server:
        yield server.database()


Pool = Any


async def add(pool: Pool, *payloads: str) -> None:
    rows = [("t", payload) for payload in payloads]
    async with pool.acquire() as connection:
        await connection.executemany("insert into outbox (topic, payload) values ($1, $2)", rows)


class TestCopy:
    NUMBERS = "select n, n::text from generate_series(1, $1::int) as n"

    async def test_rows_are_copied_in_batches(self, pool: Pool) -> None:
        await pool.execute("create table copies (n int primary key, name text)")
        rows = postgres.rows(pool, self.NUMBERS, 2500, count=100).map(tuple)
        await rows.buffer(1000).for_each(postgres.sink(pool, "copies", ["n", "name"]))
        found = await pool.fetchrow("select count(*), sum(n), max(name) from copies")
        assert tuple(found) == (2500, 2500 * 2501 // 2, "999")

    async def test_a_query_is_read_by_demand_and_its_connection_is_given_back(
        self, pool: Pool
    ) -> None:
        endless = "select generate_series(1, 1000000000)"
        rows = postgres.rows(pool, endless, count=10).map(lambda row: row[0])
        assert await rows.take(25).to_list(limit=99) == [*range(1, 26)]
        assert pool.get_idle_size() == pool.get_size()

    async def test_a_batch_is_copied_as_a_whole_or_not_at_all(self, pool: Pool) -> None:
        await pool.execute("create table copies (n int primary key)")
        copy = postgres.sink(pool, "copies", ["n"])
        with pytest.raises(asyncpg.UniqueViolationError):
            await copy([(1,), (2,), (1,)])
        assert await pool.fetchval("select count(*) from copies") == 0

    @pytest.mark.thorough  # it starts a server of its own
    async def test_a_full_disk_of_the_server_fails_a_batch_and_loses_none_before_it(
        self, full: str
    ) -> None:
        stored: list[int] = []

        def row(number: int) -> tuple[int, str]:
            return (number, os.urandom(500).hex())

        async with asyncpg.create_pool(full, min_size=1, max_size=2) as pool:
            await pool.execute("create table copies (n int, name text)")
            copy = postgres.sink(pool, "copies", ["n", "name"])
            numbers = deliveries(rx.range(100_000), ack=stored.append, limit=5000)
            with pytest.raises(asyncpg.PostgresError, match=r"could not extend file"):
                await numbers.map(row).buffer(4000).ack_after(copy).run()
            found = await pool.fetch("select n from copies order by n")
            assert [row["n"] for row in found] == sorted(stored) == [*range(len(found))]
            assert found
            await pool.execute("truncate copies")
            await copy([row(1)])
            assert await pool.fetchval("select count(*) from copies") == 1


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

    async def test_a_lost_connection_is_made_again(self, pool: Pool) -> None:
        sent: list[str] = []
        again = rx.RetryPolicy(attempts=None, delay=0.01, within=30)
        outbox = Outbox(pool, poll=60, retry=again)
        async with outbox.rows().ack_after(lambda row: sent.append(row["payload"])).running():
            await until(lambda: has_table(pool))
            await add(pool, "a")
            await until(lambda: sent)
            await pool.execute(END)
            await add(pool, "b")
            await until(lambda: "b" in sent)

    async def test_a_server_that_is_lost_is_found_again(
        self, postgres_server: PostgresServer, url: str, pool: Pool
    ) -> None:
        async with (
            postgres_server.proxy_of(url) as proxy,
            postgres.connect(proxy.url) as through_proxy,
        ):
            outbox = Outbox(through_proxy, poll=0.2, retry=AGAIN)
            async with outbox.rows().as_flow().running():
                await until(lambda: has_table(pool))

            async def send(batch: list[Message]) -> None:
                await add(pool, *((message.value or b"").decode() for message in batch))

            numbers = outbox.rows().map(lambda row: int(row["payload"]))
            report = await work_through_losses(proxy, numbers, send)
        assert report.is_complete
        assert await pool.fetchval("select count(*) from outbox") == 0

    async def test_a_connection_that_stays_lost_fails_the_flow(self, pool: Pool) -> None:
        async def lose_it() -> None:
            async with Outbox(pool, retry=1).rows().ack_after(print).running() as run:
                await until(lambda: has_table(pool))
                await until(lambda: is_listening(pool))
                await pool.execute(END)
                await run.wait()

        with pytest.raises((OSError, asyncpg.InterfaceError)):
            await lose_it()

    async def test_one_that_does_nothing_loses_its_place(
        self, pool: Pool, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A process that is frozen: its session holds the lock, and is not used."""
        sent: list[str] = []
        async with pool.acquire() as frozen:
            await Outbox(pool, lease=0.5)._alone(frozen)
            flow = Outbox(pool, lease=0.2).rows().ack_after(lambda row: sent.append(row["payload"]))
            async with flow.running():
                await add(pool, "a")
                await until(lambda: sent)
        waits = "PostgreSQL: another process reads 'outbox', and this one waits"
        assert [record.message for record in caplog.records] == [waits]

    async def test_relays_that_start_together_make_the_table_once(self, pool: Pool) -> None:
        async with asyncpg.create_pool(dsn_of(pool), min_size=1, max_size=20) as larger:
            sent: list[str] = []
            relays = [
                Outbox(larger).rows().ack_after(lambda row: sent.append(row["payload"])).running()
                for _ in range(5)
            ]
            async with relays[0], relays[1], relays[2], relays[3], relays[4]:
                await until(lambda: has_table(pool))
                await add(pool, "a")
                await until(lambda: sent == ["a"])

    async def test_what_always_fails_is_a_dead_letter(self, pool: Pool) -> None:
        sent: list[str] = []
        buried: list[str] = []

        def send(row: Any) -> None:
            if row["payload"] == "bad":
                raise ValueError("never")
            sent.append(row["payload"])

        def bury(row: Any, error: Exception) -> None:
            buried.append(f"{row['payload']} {error!r}")

        flow = postgres.source(pool, "outbox", attempts=2, on_dead_letter=bury)
        async with flow.ack_after(send).running() as run:
            await until(lambda: has_table(pool))
            await add(pool, "a", "bad", "b")
            await until(lambda: buried and len(sent) == 2)
            await run.drain()
        assert (sent, buried) == (["a", "b"], ["bad ValueError('never')"])
        assert await pool.fetchval("select count(*) from outbox") == 0

    async def test_a_name_that_has_to_be_quoted_is_refused(self, pool: Pool) -> None:
        with pytest.raises(ValueError, match="plain name"):
            postgres.source(pool, 'outbox"; drop table orders')


class TestListen:
    async def test_notifications_and_gaps(self, pool: Pool) -> None:
        heard: list[str] = []
        again = rx.RetryPolicy(attempts=None, delay=0.01, within=30)
        async with postgres.listen(pool, "news", retry=again).running(heard.append):
            await until(lambda: heard == [""])
            await pool.execute("select pg_notify('news', 'a'), pg_notify('news', 'b')")
            await until(lambda: heard == ["", "a", "b"])
            ended = (
                "select pg_terminate_backend(pid) from pg_stat_activity where query like 'LISTEN%'"
            )
            await pool.execute(ended)
            await until(lambda: heard == ["", "a", "b", ""])

    async def test_a_question_that_is_under_way_at_the_end_is_no_outage(
        self, pool: Pool, caplog: pytest.LogCaptureFixture
    ) -> None:
        watched, heard = Watched(pool), list[str]()
        async with postgres.listen(cast("Any", watched), "news").running(heard.append):
            await until(lambda: heard == [""])
            question = asyncio.ensure_future(watched.connection.execute("select pg_sleep(60)"))
            await asyncio.sleep(0)
        with pytest.raises(asyncpg.ConnectionDoesNotExistError):
            await question
        assert not caplog.messages
        assert await pool.fetchval("select 1") == 1

    @pytest.mark.parametrize("limit", [1, 3])
    async def test_one_that_does_not_read_fails(self, pool: Pool, limit: int) -> None:
        heard: list[str] = []

        async def read() -> None:
            async with postgres.listen(pool, "news", limit=limit).stream(prefetch=1) as news:
                heard.append(await anext(news))
                for n in range(9):
                    await pool.execute("select pg_notify('news', $1)", str(n))
                async for each in news:
                    heard.append(each)
                    # What arrives after the gap takes no place that was read meanwhile.
                    await pool.execute("select pg_notify('news', 'late'), pg_sleep(0.01)")

        with pytest.raises(Overflow, match=f"holds {limit} element"):
            async with asyncio.timeout(20):
                await read()
        assert heard == ["", *map(str, range(len(heard) - 1))]
        assert len(heard) > limit


class TestSilence:
    """Connections stay open, and the server says nothing: it is frozen, or was cut off."""

    @pytest.fixture
    async def proxy(
        self, postgres_server: PostgresServer, url: str, pool: Pool
    ) -> AsyncGenerator[Proxy]:
        await pool.execute(postgres.TABLE.format("outbox"))
        async with postgres_server.proxy_of(url) as opened:
            yield opened

    @pytest.fixture(autouse=True)
    def brief(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(postgres, "SILENCE", 1.5)

    @staticmethod
    def flow_of(kind: str, through: Pool, heard: list[str]) -> rx.Flow[Any]:
        if kind == "listen":
            return postgres.listen(through, "outbox", retry=AGAIN).do_on_next(heard.append)
        if kind == "rows":
            many = postgres.rows(through, "select generate_series(1, 100000000)", count=10)
            return many.do_on_next(lambda row: heard.append(str(row[0])))
        source = postgres.source(through, "outbox", poll=60, lease=1.5, retry=AGAIN)
        return source.ack_after(lambda row: heard.append(row["payload"]))

    @pytest.mark.parametrize("kind", ["source", "listen", "rows"])
    @pytest.mark.parametrize("is_cut", [False, True], ids=["silent", "lost"])
    async def test_a_flow_that_is_left_ends(
        self, proxy: Proxy, pool: Pool, kind: str, is_cut: bool
    ) -> None:
        is_frozen, heard = asyncio.Event(), list[str]()

        async def serve() -> None:
            await add(pool, "a")
            async with self.flow_of(kind, through, heard).running():
                await until(lambda: heard)
                await asyncio.sleep(0.1)  # so it waits for a notification, and for nothing else
                proxy.freeze()
                is_frozen.set()

        async with postgres.connect(proxy.url) as through:
            serving = asyncio.create_task(serve())
            await until(lambda: is_frozen.is_set() or serving.done())
            if is_cut:
                await asyncio.sleep(0.1)  # so it has ended, or waits for the server
                proxy.cut()
            await asyncio.wait([serving], timeout=5)
            assert serving.done()
            assert serving.exception() is None
            proxy.cut()

    @pytest.mark.parametrize("kind", ["source", "listen"])
    @pytest.mark.parametrize("is_early", [False, True], ids=["later", "from the start on"])
    async def test_a_connection_that_says_nothing_is_lost(
        self,
        proxy: Proxy,
        pool: Pool,
        caplog: pytest.LogCaptureFixture,
        kind: str,
        is_early: bool,
    ) -> None:
        heard: list[str] = []
        async with postgres.connect(proxy.url) as through:
            if is_early:
                proxy.freeze()
            async with self.flow_of(kind, through, heard).running():
                if not is_early:
                    await until(lambda: is_listening(pool))
                    proxy.freeze()
                async with asyncio.timeout(20):
                    await until(lambda: "fails since" in caplog.text)
                proxy.cut()  # which lets the next connection pass
                await add(pool, "a")
                await until(lambda: "is back" in caplog.text and (kind == "listen" or heard))

    @pytest.mark.parametrize("method", ["_unsent", "_sent"])
    async def test_a_query_without_an_answer_is_lost(self, proxy: Proxy, method: str) -> None:
        async with postgres.connect(proxy.url, min_size=0, max_size=1) as through:
            outbox = Outbox(through, lease=0.2, retry=1)
            call: Any = getattr(outbox, method)
            arguments = [[{"id": 1}]] if method == "_sent" else []
            await call(*arguments)
            proxy.freeze()
            calling = asyncio.create_task(call(*arguments))
            await asyncio.wait([calling], timeout=5)
            assert calling.done()
            assert isinstance(calling.exception(), TimeoutError)
            proxy.cut()
            await call(*arguments)


END_LISTENING = """
select pg_terminate_backend(pid) from pg_stat_activity
where pid <> pg_backend_pid() and (query like 'LISTEN%' or query = 'select 1')
"""
END = """
select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted
"""


def dsn_of(pool: Any) -> str:
    dsn: str = pool._connect_args[0]
    return dsn


class Watched:
    """A pool that shows the connection it has given."""

    connection: Any

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @asynccontextmanager
    async def acquire(self) -> AsyncGenerator[Any]:
        async with self._pool.acquire() as self.connection:
            yield self.connection


async def is_listening(pool: Pool) -> bool:
    query = "select exists (select from pg_stat_activity where query like 'LISTEN%')"
    return bool(await pool.fetchval(query))


async def has_table(pool: Pool) -> bool:
    """Whether a relay has created its table, and listens or is about to."""
    trigger = "select exists (select from pg_trigger where tgname = 'outbox_notifies')"
    return bool(await pool.fetchval(trigger))


async def is_waiting(pool: Pool) -> bool:
    waiting = "select exists (select from pg_locks where locktype = 'advisory' and not granted)"
    return bool(await pool.fetchval(waiting))
