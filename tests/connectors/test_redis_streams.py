"""Redis Streams, with a real Redis."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import partial
from typing import Any, cast

import pytest
from redis.asyncio import Connection, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
    OutOfMemoryError,
    ResponseError,
)

import reactive_aio as rx
from reactive_aio import RetryPolicy
from reactive_aio.connectors import Message, redis_streams
from reactive_aio.connectors.common import WAS_CLOSED
from reactive_aio.connectors.redis_streams import Consumer, Entry
from reactive_aio.delivery import BatchFailed
from reactive_aio.delivery.crash_marks import CRASHES, DIED
from tests.connectors.losses import AGAIN, work_through_losses
from tests.harness.servers import RedisServer
from tests.recipes.waiting import until

pytestmark = pytest.mark.slow

STREAM = "events"


@pytest.fixture
def url(redis_server: RedisServer) -> str:
    return redis_server.database()


@pytest.fixture
async def redis(url: str) -> AsyncGenerator[Redis]:
    async with Redis.from_url(url) as client:  # pyright: ignore[reportUnknownMemberType]
        yield client


async def add(redis: Redis, count: int) -> None:
    for number in range(count):
        await redis.xadd(STREAM, {"n": str(number)})


async def pending(redis: Redis) -> int:
    summary: Any = await redis.xpending(STREAM, "g")
    return cast("int", summary["pending"])


async def nothing_pending(redis: Redis) -> bool:
    return await pending(redis) == 0


async def consumers(redis: Redis) -> list[bytes]:
    found: Any = await redis.xinfo_consumers(STREAM, "g")
    return [each["name"] for each in found]


def number(entry: Entry) -> int:
    return int(entry.fields[b"n"])


def nothing(_: object) -> None:
    """Work that is done at once."""


async def test_entries_before_and_after_the_start_are_acknowledged(redis: Redis) -> None:
    await add(redis, 250)
    done: list[int] = []
    flow = Consumer(redis, STREAM, "g").entries().map(number).ack_after(done.append)
    async with flow.running() as run:
        await until(lambda: len(done) == 250)
        await add(redis, 3)
        await until(lambda: len(done) == 253)
        report = await run.drain()
    assert done == [*range(250), *range(3)]
    assert report.is_complete
    assert await pending(redis) == 0


async def test_no_more_is_read_than_the_limit_and_a_list(redis: Redis) -> None:
    await add(redis, 100)
    flow = redis_streams.source(redis, STREAM, group="g", limit=5, count=10)
    async with flow.as_flow().running() as run:
        await until(lambda: run.delivered == 5)
        await add(redis, 1)
        assert await pending(redis) <= 5 + 5, "a list is no longer than the limit"


async def test_reads_are_bounded_in_bytes(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_streams, "READ_BYTES", 10_000)
    monkeypatch.setattr(redis_streams, "HELD_BYTES", 50_000)
    for _ in range(40):
        await redis.xadd(STREAM, {"n": b"x" * 3000})
    lists: list[int] = []

    class Watched(Consumer):
        async def _new(self, until: float) -> list[Entry]:
            assert sum(self.crash_marks.working.values()) < 70_000
            lists.append(len(found := await super()._new(until)))
            return found

    consumer = Watched(redis, STREAM, "g", idle=0.5)
    done: list[Entry] = []
    async with consumer.entries().as_flow().do_on_next(lambda each: None).running():
        await until(lambda: sum(lists) >= 16)
        await asyncio.sleep(0)
    assert max(lists) <= 3
    async with Consumer(redis, STREAM, "g", idle=0.05).entries().ack_after(done.append).running():
        await until(lambda: len(done) == 40)


async def test_two_consumers_share_the_entries(redis: Redis) -> None:
    one, other = (Consumer(redis, STREAM, "g", name, count=5) for name in ("one", "other"))
    done: list[int] = []
    async with (
        one.entries(limit=5).map(number).ack_after(done.append).running(),
        other.entries(limit=5).map(number).ack_after(done.append).running(),
    ):
        await add(redis, 100)
        await until(lambda: len(done) == 100)
    assert sorted(done) == [*range(100)]


async def test_a_consumer_leaves_unless_entries_are_pending(redis: Redis) -> None:
    await add(redis, 2)
    consumer, done = Consumer(redis, STREAM, "g", "me"), list[int]()
    async with consumer.entries().as_flow().running() as run:
        await until(lambda: run.delivered == 2)
    await consumer.leave()
    assert await consumers(redis) == [b"me"]
    consumer = Consumer(redis, STREAM, "g", "another", idle=0.01)
    async with consumer.entries().map(number).ack_after(done.append).running():
        await until(lambda: len(done) == 2)
    for name in ("me", "another"):
        await Consumer(redis, STREAM, "g", name).leave()
    assert await consumers(redis) == []


async def test_what_another_consumer_has_left_is_taken_over(redis: Redis) -> None:
    await add(redis, 30)
    await redis.xgroup_create(STREAM, "g", "0")
    await redis.xreadgroup("g", "dead", {STREAM: ">"}, 20)
    done: list[int] = []
    consumer = Consumer(redis, STREAM, "g", idle=0.05, count=7)
    async with consumer.entries().map(number).ack_after(done.append).running() as run:
        await until(lambda: len(done) == 30)
        await run.drain()
    assert sorted(done) == [*range(30)]
    assert await pending(redis) == 0


async def test_connections_that_the_server_ends_cost_no_entry(redis: Redis, url: str) -> None:
    done: list[int] = []
    async with redis_streams.connect(url) as patient:
        consumer = Consumer(patient, STREAM, "g", idle=0.05, count=3)
        async with consumer.entries().map(number).ack_after(done.append).running() as run:
            for _ in range(5):
                await add(redis, 20)
                await cast("Any", redis).client_kill_filter(_type="normal", skipme=True)
            await until(lambda: len(set(done)) == 20 and len(done) >= 100)
            await run.drain()
    assert await pending(redis) == 0


async def test_a_lost_connection_is_made_again(redis_server: RedisServer) -> None:
    async with redis_server.proxy() as proxy, redis_streams.connect(proxy.url) as client:
        consumer = Consumer(client, STREAM, "g", idle=0.5, count=5, retry=AGAIN)
        add_all = redis_streams.sink(client, STREAM, retry=AGAIN)

        async def send(batch: list[Message]) -> None:
            await add_all([{"n": (message.value or b"").decode()} for message in batch])

        report = await work_through_losses(proxy, consumer.entries().map(number), send)
        await until(lambda: nothing_pending(client))
    assert report.is_complete


@pytest.mark.parametrize("what", ["sink", "acknowledgement"])
@pytest.mark.parametrize("is_frozen", [False, True], ids=["refused", "frozen"])
async def test_no_call_is_repeated_after_the_block_of_the_client(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture, what: str, is_frozen: bool
) -> None:
    async with redis_server.proxy() as proxy:
        async with redis_streams.connect(proxy.url) as client:
            consumer = Consumer(client, STREAM, "g", retry=AGAIN)
            send = redis_streams.sink(client, STREAM, retry=AGAIN)
            if is_frozen:
                proxy.freeze()
            else:
                await proxy.stop()
            call = send([{"n": "1"}]) if what == "sink" else consumer._ack([Entry("1-1", {})])
            calling = asyncio.create_task(cast("Any", call))
            if is_frozen:
                await asyncio.sleep(0.05)
            else:
                await until(lambda: "fails since" in caplog.text)
        proxy.thaw()
        if not is_frozen:
            await proxy.start()
        async with asyncio.timeout(20):
            with pytest.raises(RedisConnectionError) as failed:
                await calling
        assert WAS_CLOSED in failed.value.__notes__[0]
        await until(lambda: proxy.open == 0)
        with pytest.raises(RuntimeError, match="the client is closed: make and run the flow"):
            redis_streams.source(client, STREAM, group="g")


async def test_a_connection_that_is_made_while_the_client_is_closed_is_closed_too(
    redis_server: RedisServer,
) -> None:
    may_connect = asyncio.Event()
    may_connect.set()

    class Slow(Connection):
        async def connect(self) -> None:
            await may_connect.wait()
            await cast("Any", super()).connect()

    async with redis_server.proxy() as proxy:
        async with redis_streams.connect(proxy.url, connection_class=Slow) as client:
            await client.connection_pool.disconnect()
            may_connect.clear()
            pinging = asyncio.create_task(cast("Any", client).ping())
            await asyncio.sleep(0)
        may_connect.set()
        with pytest.raises(RedisConnectionError, match="the client is closed"):
            await pinging
        assert proxy.connections == 2
        await until(lambda: proxy.open == 0)


async def test_an_entry_that_fails_is_delivered_again(redis: Redis) -> None:
    await add(redis, 3)
    attempts: list[int] = []

    def write(value: int) -> None:
        attempts.append(value)
        if attempts.count(value) < 3 and value == 1:
            raise OSError("not now")

    consumer = Consumer(redis, STREAM, "g", idle=0.05)
    flow = consumer.entries().map(number).ack_after(write, on_error="skip")
    async with flow.running() as run:
        await until(lambda: len(attempts) == 5)
        await run.drain()
    assert sorted(attempts) == [0, 1, 1, 1, 2]
    assert await pending(redis) == 0


async def test_an_entry_in_work_is_not_taken_over_from_the_consumer_itself(redis: Redis) -> None:
    await add(redis, 2)
    started: list[int] = []
    consumer = Consumer(redis, STREAM, "g", idle=0.02)
    flow = consumer.entries().map(number)
    async with flow.as_flow().do_on_next(lambda each: started.append(each.value)).running():
        await until(lambda: len(started) == 2)
        await add(redis, 1)  # after which the consumer has looked for others several times
        await until(lambda: len(started) == 3)
    assert started == [0, 1, 0]


async def test_an_entry_knows_how_often_it_was_delivered_and_is_alone_from_the_third_time_on(
    redis: Redis,
) -> None:
    await add(redis, 6)
    await redis.xgroup_create(STREAM, "g", "0")
    found: Any = await redis.xreadgroup("g", "dead", {STREAM: ">"}, 6)
    await redis.xclaim(STREAM, "g", "dead as well", 0, [id for id, _ in found[0][1][1:4]])
    await add(redis, 1)
    consumer = Consumer(redis, STREAM, "g", idle=0.5)
    times: dict[str, int] = {}
    beside: dict[str, int] = {}

    async def work(entry: Entry) -> Entry:
        times[entry.id], beside[entry.id] = entry.deliveries, len(consumer.crash_marks.working)
        return entry

    flow = consumer.entries().map_async(work, concurrency=9).ack_after(nothing)
    async with flow.running() as run:
        await until(lambda: len(times) == 7)
        await run.drain()
    assert [times[id] for id in sorted(times)] == [2, 3, 3, 3, 2, 2, 1]
    assert [beside[id] for id in sorted(times)][1:4] == [1, 1, 1]
    assert await pending(redis) == 0


async def test_a_mark_says_how_many_processes_have_died_of_an_entry_alone(redis: Redis) -> None:
    await add(redis, 2)
    await redis.xgroup_create(STREAM, "g", "0")
    found: Any = await redis.xreadgroup("g", "dead", {STREAM: ">"}, 2)
    one, other = (id for id, _ in found[0][1])
    await redis.xclaim(STREAM, "g", "dead as well", 0, [one, other])
    consumer = Consumer(redis, STREAM, "g", idle=0.1)
    hget: Any = redis.hget
    hset: Any = redis.hset
    await hset(consumer.marks, one, 2)
    seen: list[tuple[bytes, int, Any]] = []

    async def work(entry: Entry) -> Entry:
        mark = await hget(consumer.marks, entry.id)
        seen.append((entry.id.encode(), entry.crashes, mark))
        return entry

    flow = consumer.entries().map_async(work, concurrency=9).ack_after(nothing)
    async with flow.running() as run:
        await until(lambda: len(seen) == 2)
        await run.drain()
    assert seen == [(other, 0, b"1"), (one, 2, b"3")], "others pass before it is tried again"
    assert await cast("Any", redis).exists(consumer.marks) == 0, "this process has not died"


@pytest.mark.parametrize("way", ["cancelled", "failed"])
async def test_an_orderly_end_leaves_no_mark(redis: Redis, way: str) -> None:
    await add(redis, 1)
    await redis.xgroup_create(STREAM, "g", "0")
    await redis.xreadgroup("g", "dead", {STREAM: ">"}, 1)
    consumer = Consumer(redis, STREAM, "g", idle=0.02)
    is_in_work = asyncio.Event()

    async def work(entry: Entry) -> None:
        assert entry.crashes == 0
        if way == "failed":
            raise ConnectionError("the database has ended")
        is_in_work.set()
        await asyncio.Event().wait()

    for _ in range(4):  # more often than anybody would bury it for crashes
        is_in_work.clear()
        with suppress(ConnectionError):
            async with consumer.entries().ack_after(work).running() as run:
                await (is_in_work.wait() if way == "cancelled" else run.wait())
        assert await cast("Any", redis).exists(consumer.marks) == 0


async def test_what_is_shown_to_be_in_work_is_not_taken_over(redis: Redis) -> None:
    await add(redis, 3)
    busy = Consumer(redis, STREAM, "g", "busy", idle=0.3)
    other = Consumer(redis, STREAM, "g", "other", idle=0.3)
    taken: list[Entry] = []
    async with busy.entries().as_flow().running() as run:
        await until(lambda: run.delivered == 3)
        await cast("Any", redis).config_resetstat()
        async with other.entries().ack_after(taken.append).running():
            await until(lambda: looks(redis, 6))
        assert not taken, "an interval of three looks is longer than idle"
    async with other.entries().ack_after(taken.append).running():
        await until(lambda: len(taken) == 3)
    assert [each.deliveries for each in taken] == [2, 2, 2], "keeping is not a delivery"


async def looks(redis: Redis, count: int) -> bool:
    """Whether consumers have looked for what others left, *count* times in all."""
    stats: Any = await cast("Any", redis).info("commandstats")
    return bool(stats.get("cmdstat_xpending", {"calls": 0})["calls"] >= count)


async def test_a_deleted_entry_is_left_out(redis: Redis) -> None:
    await add(redis, 2)
    await redis.xgroup_create(STREAM, "g", "0")
    found: Any = await redis.xreadgroup("g", "dead", {STREAM: ">"}, 2)
    first = found[0][1][0][0]
    await redis.xdel(STREAM, first)
    done: list[int] = []
    consumer = Consumer(redis, STREAM, "g", idle=0.02)
    async with consumer.entries().map(number).ack_after(done.append).running() as run:
        await until(lambda: done == [1])
        await run.drain()
    assert await pending(redis) == 0


async def is_blocked(redis: Redis) -> bool:
    """Whether a client waits for entries."""
    untyped: Any = redis
    return bool((await untyped.info("clients"))["blocked_clients"])


@pytest.mark.parametrize("what", ["group", "stream"])
async def test_a_group_that_is_destroyed_fails_the_flow(redis: Redis, what: str) -> None:
    consumer = Consumer(redis, STREAM, "g")
    await add(redis, 1)

    async def destroy(_: Entry) -> None:
        await until(partial(is_blocked, redis))  # the reader asks for more meanwhile
        if what == "group":
            await redis.xgroup_destroy(STREAM, "g")
        else:
            await redis.delete(STREAM)

    with pytest.raises(ResponseError, match=r"^(NOGROUP|UNBLOCKED)") as failed:
        await consumer.entries().ack_after(destroy).run()
    assert redis_streams.GONE in failed.value.__notes__


CLIENTS: list[dict[str, Any]] = [
    {"protocol": 2},
    {"protocol": 3},
    {"legacy_responses": False},
    {"decode_responses": True},
]


@pytest.mark.parametrize("options", CLIENTS, ids=str)
async def test_each_kind_of_client_will_do(redis: Redis, url: str, options: dict[str, Any]) -> None:
    await add(redis, 5)
    await redis.xgroup_create(STREAM, "g", "0")
    await redis.xreadgroup("g", "dead", {STREAM: ">"}, 2)
    done: list[str] = []
    async with redis_streams.connect(url, **options) as client:
        flow = redis_streams.source(client, STREAM, group="g", idle=0.05)
        async with flow.ack_after(lambda entry: done.append(entry.id)).running() as run:
            await until(lambda: len(done) == 5)
            await run.drain()
    assert await pending(redis) == 0


async def test_entries_that_were_trimmed_do_not_hold_back_those_that_were_left(
    redis: Redis,
) -> None:
    await add(redis, 40)
    await redis.xgroup_create(STREAM, "g", "0")
    found: Any = await redis.xreadgroup("g", "dead", {STREAM: ">"}, 40)
    await redis.xclaim(STREAM, "g", "dead as well", 0, [id for id, _ in found[0][1]])
    await redis.xtrim(STREAM, maxlen=0, approximate=False)
    await add(redis, 1)
    await redis.xreadgroup("g", "dead", {STREAM: ">"}, 1)
    await cast("Any", redis).config_resetstat()
    done: list[int] = []
    consumer = Consumer(redis, STREAM, "g", idle=0.2, count=7)
    async with consumer.entries().map(number).ack_after(done.append).running() as run:
        await until(lambda: done == [0])
        assert not await looks(redis, 20)
        await until(lambda: nothing_pending(redis))
        await run.drain()


async def test_what_processes_died_of_while_it_was_alone_is_a_dead_letter(redis: Redis) -> None:
    await add(redis, 3)
    await redis.xgroup_create(STREAM, "g", "0")
    found: Any = await redis.xreadgroup("g", "dead", {STREAM: ">"}, 3)
    ids = [id.decode() for id, _ in found[0][1]]
    for _ in range(5):  # an outage after another: that is no proof
        await redis.xclaim(STREAM, "g", "dead", 0, cast("Any", ids))
    for _ in range(CRASHES):
        await redis.hincrby(f"{STREAM}:g:alone", ids[1], 1)
    done: list[int] = []
    buried: list[str] = []
    flow = redis_streams.source(
        redis,
        STREAM,
        group="g",
        idle=0.05,
        on_dead_letter=lambda entry, error: buried.append(f"{entry.id} {error}"),
    )
    async with flow.map(number).ack_after(done.append).running() as run:
        await until(lambda: buried and len(done) == 2)
        await run.drain()
    assert sorted(done) == [0, 2]
    assert buried == [f"{ids[1]} {DIED.format(CRASHES)}"]
    assert await pending(redis) == 0
    assert await redis.exists(f"{STREAM}:g:alone") == 0, "no mark is left"


async def test_what_always_fails_is_a_dead_letter(redis: Redis) -> None:
    await add(redis, 3)
    done: list[int] = []
    buried: list[str] = []

    def write(value: int) -> None:
        if value == 1:
            raise ValueError("never")
        done.append(value)

    async def bury(entry: Entry, error: Exception) -> None:
        buried.append(f"{number(entry)} {error!r}")

    flow = redis_streams.source(redis, STREAM, group="g", attempts=2, on_dead_letter=bury)
    async with flow.map(number).ack_after(write).running() as run:
        await until(lambda: buried and len(done) == 2)
        await run.drain()
    assert (done, buried) == ([0, 2], ["1 ValueError('never')"])
    assert await pending(redis) == 0


async def test_a_sink_appends_a_list_with_one_call(redis: Redis) -> None:
    send = redis_streams.sink(redis, STREAM)
    await rx.range(250).map(lambda n: {"n": n}).buffer(100).for_each(send)
    found: Any = await redis.xrange(STREAM)
    assert [int(fields[b"n"]) for _, fields in found] == [*range(250)]


async def test_a_sink_says_which_entries_redis_refuses(redis: Redis) -> None:
    await redis.set("text", "no stream")
    with pytest.raises(BatchFailed) as failed:
        await redis_streams.sink(redis, "text")([{"a": "b"}])
    assert "WRONGTYPE" in str(failed.value.errors[0])
    await cast("Any", redis).config_set("maxmemory", "1")
    try:
        with pytest.raises(BatchFailed) as failed:
            await redis_streams.sink(redis, STREAM)([{"a": "b"}])
        assert isinstance(failed.value.errors[0], OutOfMemoryError)
        with pytest.raises(OutOfMemoryError):
            await redis_streams.source(redis, "new", group="g").ack_after(nothing).run()
    finally:
        await cast("Any", redis).config_set("maxmemory", "0")


async def test_a_redis_that_is_full_for_a_time_is_an_outage(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    await add(redis, 1)
    await redis.xgroup_create(STREAM, "g", "0")
    found: Any = await redis.xreadgroup("g", "dead", {STREAM: ">"}, 1)
    await redis.xclaim(STREAM, "g", "dead as well", 0, [found[0][1][0][0]])
    done: list[int] = []
    again = RetryPolicy(attempts=None, delay=0.02, maximum=0.02)
    server: Any = redis

    class Unlucky(Consumer):
        async def _begin(self) -> None:
            await super()._begin()
            await server.config_set("maxmemory", "1")

    consumer = Unlucky(redis, STREAM, "g", idle=0.05, retry=again)
    try:
        async with consumer.entries().map(number).ack_after(done.append).running():
            await until(lambda: consumer.outage.is_out)  # its mark cannot be written
            assert done == []
            await server.config_set("maxmemory", "0")
            await until(lambda: done == [0])
    finally:
        await server.config_set("maxmemory", "0")
    began, over = (record.message for record in caplog.records)
    assert "OutOfMemoryError" in began
    assert "is back" in over


async def test_a_redis_that_is_not_there_fails_at_once() -> None:
    with pytest.raises(RedisConnectionError):
        async with redis_streams.connect("redis://127.0.0.1:9"):
            pass


async def test_a_redis_that_is_gone_fails_the_flow_when_the_policy_gives_up(
    redis: Redis, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Redis(host="127.0.0.1", port=9, retry=Retry(NoBackoff(), 0)) as nowhere:
        again = RetryPolicy(attempts=3, delay=0.01)
        flow = redis_streams.source(nowhere, STREAM, group="g", retry=again).ack_after(nothing)
        with pytest.raises(RedisConnectionError) as failed:
            await flow.run()
        await Consumer(nowhere, STREAM, "g").leave()  # its name stays in the group
    assert "attempt 3 failed with this error" in failed.value.__notes__[0]
    assert [record.message.partition(" since")[0] + " since" for record in caplog.records] == [
        f"Redis (stream {STREAM!r}) fails since"
    ]
