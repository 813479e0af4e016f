"""What all connectors have in common."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import anyio
import asyncpg
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from nats.aio.client import Client as Nats
from redis import Redis as SynchronousRedis

import reactive_aio as rx
from reactive_aio import RetryPolicy
from reactive_aio.connectors import kafka, mqtt, nats, postgres, rabbitmq, redis_streams
from reactive_aio.connectors.common import (
    ATTEMPTS,
    WAS_CLOSED,
    Arrivals,
    Message,
    ack_timeout,
    closing,
    content,
    outage_of,
    raise_failed,
    with_dead_letters,
)
from reactive_aio.delivery import BatchFailed, deliveries

pytestmark = pytest.mark.virtual_time

MINUTE = RetryPolicy(attempts=None, delay=1, factor=1, jitter=0, within=60)


class Server:
    """Answers from a time on."""

    def __init__(self, until: float, error: Exception) -> None:
        self.calls = 0
        self._until = until
        self._error = error

    async def ask(self, *_: object) -> str:
        self.calls += 1
        if asyncio.get_running_loop().time() < self._until:
            raise self._error
        return "an answer"


async def test_a_loss_is_repeated_as_the_policy_allows() -> None:
    server = Server(3600, ConnectionError("refused"))
    with pytest.raises(ConnectionError):
        await outage_of("the server", MINUTE, (OSError,)).call(server.ask)
    assert asyncio.get_running_loop().time() == 60
    with pytest.raises(ConnectionError):
        await outage_of("the server", 2, OSError).call(server.ask)
    assert server.calls == 61 + 2


async def test_what_arrived_before_the_end_is_read_and_nothing_after_it() -> None:
    arrivals = Arrivals[int]()
    arrivals.add(1)
    arrivals.add(2)
    arrivals.end(ConnectionError("lost"))
    arrivals.add(4)
    assert await arrivals.next() == [1, 2]
    arrivals.add(5)
    with pytest.raises(ConnectionError, match="lost"):
        await arrivals.next()


async def test_a_client_whose_server_does_not_answer_is_cut_off() -> None:
    closed: list[str] = []

    async def hang() -> None:
        await asyncio.sleep(3600)

    async def close() -> None:
        closed.append("closed")

    async with closing(hang, lambda: closed.append("cut off")):
        pass
    assert asyncio.get_running_loop().time() == 2
    async with closing(hang), closing(close, lambda: closed.append("cut off")):
        pass
    assert closed == ["cut off", "closed"]


async def cancelled_by_itself() -> None:
    """As aiokafka does: it cancels a task that it awaits."""
    task = asyncio.create_task(asyncio.sleep(3600))
    await asyncio.sleep(0)
    task.cancel()
    await task


async def reset() -> None:
    raise ConnectionResetError("lost")


@pytest.mark.parametrize("close", [cancelled_by_itself, reset])
async def test_a_client_that_cannot_be_closed_is_cut_off_and_the_block_is_left(
    close: Callable[[], Awaitable[None]],
) -> None:
    closed: list[str] = []

    def cut() -> None:
        closed.append("cut off")

    async with closing(close, cut):
        pass
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(1)  # and nothing is cancelled later
    with pytest.raises(ValueError, match="of the block"):
        async with closing(close, cut):
            raise ValueError("of the block")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1), closing(close, cut):
            await asyncio.sleep(3600)
    with anyio.move_on_after(1) as limit:
        async with closing(close, cut):
            await asyncio.sleep(3600)
    assert limit.cancelled_caught
    assert closed == ["cut off"] * 4


async def test_a_program_that_is_cancelled_while_it_closes_a_client_cuts_it_off() -> None:
    closed: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            closed.append("given up")

    async def program() -> None:
        async with closing(hang, lambda: closed.append("cut off")):
            pass

    task = asyncio.create_task(program())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.get_running_loop().time() == 1
    assert closed == ["given up", "cut off"]


@pytest.mark.parametrize(
    ("policy", "error"),
    [(MINUTE, ValueError("not allowed")), (RetryPolicy(only=TimeoutError), OSError("no route"))],
)
async def test_another_error_is_that_of_the_caller_at_once(
    policy: RetryPolicy, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(type(error)):
        await outage_of("the server", policy, (OSError,)).call(Server(60, error).ask)
    assert not caplog.records


def test_an_acknowledgement_has_the_time_of_the_policy() -> None:
    assert ack_timeout(MINUTE) == 90
    assert ack_timeout(RetryPolicy(attempts=None)) > 86_400
    assert ack_timeout(3) > 86_400


async def test_an_outage_of_what_all_need_makes_no_dead_letter() -> None:
    server = Server(300, ConnectionError("the database is down"))
    done: list[int] = []
    buried: list[str] = []

    async def write(number: int) -> None:
        if number == 3:
            raise ValueError("no number")
        await server.ask()
        if number == 5:
            raise RuntimeError("this one always")
        done.append(number)

    def bury(number: int, error: Exception) -> None:
        buried.append(f"{number} {error!r}")

    numbers = deliveries(rx.interval(10), ack=lambda _: None)
    async with with_dead_letters(numbers, ATTEMPTS, bury).ack_after(write).running() as run:
        await asyncio.sleep(290)
        assert (done, buried) == ([], ["3 ValueError('no number')"])
        await asyncio.sleep(300)
        await run.drain()
    assert buried[1:] == ["5 RuntimeError('this one always')"]
    assert sorted(done) == [n for n in range(len(done) + 2) if n not in (3, 5)]


def test_what_a_batch_says_of_its_elements() -> None:
    raise_failed([None, "a result"])
    with pytest.raises(BatchFailed) as failed:
        raise_failed([None, ValueError("no")])
    assert [*failed.value.errors] == [1]


CONNECTING: dict[str, Callable[[str], Any]] = {
    "kafka.connect": lambda url: kafka.connect(url, group="g"),
    "kafka.producer": kafka.producer,
    "mqtt.connect": lambda url: mqtt.connect(url, name="n"),
    "nats.connect": nats.connect,
    "rabbitmq.connect": rabbitmq.connect,
}


@pytest.mark.parametrize("name", CONNECTING)
async def test_the_url_of_another_kind_of_server_is_refused_without_its_password(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: the URL begins with .*, not http://$"):
        async with CONNECTING[name]("http://ann:s3cret@127.0.0.1:1"):
            pass


class AnyClient:
    """Has each method."""

    def __getattr__(self, name: str) -> Any:
        return print


ANY: Any = AnyClient()
NO_TOPICS: Any = [["t"]]
NO_CLIENTS: list[tuple[Callable[[Any], object], str]] = [
    (lambda none: redis_streams.source(none, "s", group="g"), "a redis.asyncio.Redis"),
    (lambda none: redis_streams.sink(none, "s"), "a redis.asyncio.Redis"),
    (lambda none: kafka.source(none, "t"), "an AIOKafkaConsumer"),
    (lambda none: kafka.sink(none, "t"), "an AIOKafkaProducer"),
    (lambda none: rabbitmq.source(none, "q"), "a connection of aio_pika"),
    (lambda none: rabbitmq.sink(none, "q"), "a connection of aio_pika"),
    (lambda none: nats.source(none, "s", group="g"), "a nats.aio.client.Client"),
    (lambda none: nats.sink(none, "s"), "a nats.aio.client.Client"),
    (lambda none: mqtt.source(none, "t"), "an aiomqtt.Client"),
    (lambda none: mqtt.sink(none, "t"), "an aiomqtt.Client"),
    (lambda none: postgres.source(none), "an asyncpg.Pool"),
    (lambda none: postgres.rows(none, "select 1"), "an asyncpg.Pool"),
    (lambda none: postgres.listen(none, "c"), "an asyncpg.Pool"),
    (lambda none: postgres.sink(none, "t", ["c"]), "an asyncpg.Pool"),
]


@pytest.mark.parametrize(("make", "what"), NO_CLIENTS)
def test_what_is_no_client_is_refused_where_it_is_given(
    make: Callable[[Any], object], what: str
) -> None:
    with pytest.raises(TypeError, match=what) as refused:
        make(None)
    assert "not None (NoneType): make one, with `async with " in str(refused.value)
    with pytest.raises(TypeError, match="not a str: make one, with") as refused:
        make("redis://:secret@127.0.0.1")
    assert "secret" not in str(refused.value)
    with pytest.raises(TypeError, match=r"enter it first, with `async with .* as client`"):
        make(nats.connect("nats://127.0.0.1:4222"))


async def closed_pool() -> Any:
    pool = asyncpg.create_pool("postgresql://127.0.0.1:9", min_size=0)
    async with pool:
        pass
    return pool


async def closed_nats() -> Any:
    client = Nats()
    client._status = Nats.CLOSED  # as `close` leaves one that was connected
    return client


async def closed_consumer() -> Any:
    consumer = AIOKafkaConsumer()
    await consumer.stop()
    return consumer


ANY_NATS: Any = Nats  # whose methods have no types


async def new(client: Any) -> Any:
    return client


UNUSABLE: dict[str, tuple[Callable[[], Any], Callable[[Any], object], str]] = {
    "a pool that was not awaited": (
        lambda: new(asyncpg.create_pool("postgresql://127.0.0.1:9")),
        postgres.source,
        "was not connected",
    ),
    "a pool that is closed": (closed_pool, lambda c: postgres.sink(c, "t", ["c"]), "is closed"),
    "a NATS client": (lambda: new(Nats()), lambda c: nats.source(c, "s", group="g"), "not conn"),
    "its context": (lambda: new(ANY_NATS().jetstream()), lambda c: nats.sink(c, "s"), "not conn"),
    "a closed NATS client": (closed_nats, lambda c: nats.sink(c, "s"), "is closed"),
    "an MQTT client": (
        lambda: new(mqtt.connect("mqtt://127.0.0.1:9", name="n")),
        lambda c: mqtt.source(c, "t"),
        "was not connected",
    ),
    "a closed consumer": (closed_consumer, lambda c: kafka.source(c, "t"), "is closed"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
async def test_a_client_that_is_not_open_is_refused_where_it_is_given(kind: str) -> None:
    make, use, state = UNUSABLE[kind]
    client = await make()
    with pytest.raises(RuntimeError, match=state) as refused:
        use(client)
    assert "make and run the flow inside of `async with " in str(refused.value)


async def test_a_consumer_or_producer_of_kafka_that_was_not_started_is_refused() -> None:
    consumer, producer = AIOKafkaConsumer(), AIOKafkaProducer()
    with pytest.raises(RuntimeError, match=r"kafka\.source: the client was not .* kafka\.connect"):
        kafka.source(consumer, "t")
    with pytest.raises(RuntimeError, match=r"kafka\.sink: the client was not .* kafka\.producer"):
        kafka.sink(producer, "t")
    await consumer.stop()
    await producer.stop()


async def test_what_is_closed_while_it_is_used_is_not_waited_for() -> None:
    server = Server(3600, ConnectionError("closed"))
    with pytest.raises(ConnectionError) as failed:
        await outage_of("the server", MINUTE, OSError, lambda: server.calls == 3).call(server.ask)
    assert failed.value.__notes__ == [f"connectors: {WAS_CLOSED}"]
    assert server.calls == 3


def test_the_redis_client_that_blocks_is_refused() -> None:
    blocking: Any = SynchronousRedis()
    with pytest.raises(TypeError, match=r"give a redis\.asyncio\.Redis, not a redis\.Redis"):
        redis_streams.source(blocking, "s", group="g")


@pytest.mark.parametrize(
    ("make", "error", "what"),
    [
        (lambda: mqtt.source(ANY), ValueError, "at least one topic"),
        (lambda: mqtt.connect("mqtt://h", name=""), ValueError, "name must not be empty"),
        (lambda: kafka.source(ANY, *NO_TOPICS), TypeError, "a topic must be a str"),
        (lambda: redis_streams.source(ANY, "s", group=""), ValueError, "group must not be"),
    ],
)
def test_a_name_that_is_none_is_refused(
    make: Callable[[], object], error: type[Exception], what: str
) -> None:
    with pytest.raises(error, match=what):
        make()


WRONG_LISTS: dict[str, tuple[object, str]] = {
    "a message alone": (Message(b"x"), r"was given one, .*; put \.buffer_timeout\(.*\) before"),
    "a text": ("x", "was given one, 'x' .*; put"),
    "bytes in a list": ([Message(b"x"), b"y"], r"b'y' \(bytes\) is none"),
    "a number": (5, r"5 \(int\) is none"),
}


@pytest.mark.parametrize("given", WRONG_LISTS)
async def test_a_sink_says_what_it_sends(given: str) -> None:
    batch, problem = WRONG_LISTS[given]
    client = Nats()
    client._status = Nats.CONNECTED
    with pytest.raises(TypeError, match=rf"^nats\.sink: it sends a list of Messages, .*{problem}"):
        await nats.sink(client, "orders")(cast("Any", batch))


def test_the_content_of_a_message_is_bytes() -> None:
    text = Message(cast("Any", "x"))
    with pytest.raises(TypeError, match=r"NATS must be bytes, not 'x' \(str\); for text: .*encode"):
        content(text, "NATS")
