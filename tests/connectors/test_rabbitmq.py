"""RabbitMQ, with a real server."""

import asyncio
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

import aio_pika
import pytest
from aio_pika.abc import AbstractRobustConnection
from aio_pika.exceptions import ChannelNotFoundEntity

import reactive_aio as rx
from reactive_aio.connectors import Message, rabbitmq
from reactive_aio.connectors.rabbitmq import Incoming
from reactive_aio.delivery import BatchFailed, deliveries
from tests.connectors.losses import AGAIN, work_through_losses
from tests.harness.outages import proxy_of
from tests.harness.servers import RabbitServer
from tests.recipes.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]  # the server takes its time to start


@pytest.fixture
async def connection(rabbit_server: RabbitServer) -> AsyncGenerator[AbstractRobustConnection]:
    async with rabbitmq.connect(rabbit_server.url) as opened:
        yield opened


@pytest.fixture
def queue(rabbit_server: RabbitServer) -> str:
    return rabbit_server.queue()


def number(message: Incoming) -> int:
    return int(message.body)


async def declare(connection: AbstractRobustConnection, queue: str) -> None:
    """Declare a queue that is quicker than that of a source: not on several disks."""
    async with connection.channel() as channel:
        await channel.declare_queue(queue, durable=True)


async def waiting(connection: AbstractRobustConnection, queue: str) -> int:
    """How many messages wait, and are with no consumer."""
    async with connection.channel() as channel:
        found = await channel.declare_queue(queue, passive=True)
        return found.declaration_result.message_count or 0


async def send(connection: AbstractRobustConnection, queue: str, *numbers: int) -> None:
    await rabbitmq.sink(connection, queue)([Message(str(n).encode()) for n in numbers])


async def test_messages_are_acknowledged_and_the_prefetch_count_is_the_limit(
    connection: AbstractRobustConnection, queue: str
) -> None:
    await declare(connection, queue)
    await send(connection, queue, *range(50))
    release, started, done = asyncio.Event(), list[int](), list[int]()

    async def work(message: Incoming) -> None:
        started.append(number(message))
        await release.wait()
        done.append(number(message))

    flow = rabbitmq.source(connection, queue, limit=10).ack_after(work, concurrency=20)
    async with flow.running() as run:
        await until(lambda: len(started) == 10)
        assert await waiting(connection, queue) == 40
        release.set()
        await until(lambda: len(done) == 50)
        report = await run.drain()
    assert report.is_complete
    assert sorted(done) == [*range(50)]
    assert await waiting(connection, queue) == 0


async def test_what_is_not_done_goes_back(connection: AbstractRobustConnection, queue: str) -> None:
    await declare(connection, queue)
    await send(connection, queue, *range(5))
    async with rabbitmq.source(connection, queue).as_flow().running() as run:
        await until(lambda: run.delivered == 5)
    await until(lambda: has(connection, queue, 5))
    done: list[int] = []
    async with rabbitmq.source(connection, queue).map(number).ack_after(done.append).running():
        await until(lambda: sorted(done) == [*range(5)])


async def has(connection: AbstractRobustConnection, queue: str, count: int) -> bool:
    return await waiting(connection, queue) == count


async def test_what_always_fails_is_a_dead_letter_whatever_queue_was_there(
    connection: AbstractRobustConnection, queue: str
) -> None:
    """The queue has no dead-letter exchange: RabbitMQ would drop what is rejected."""
    await declare(connection, queue)
    await send(connection, queue, 0, 1, 2)
    dead, done = f"{queue}.dead", list[int]()

    def write(message: Incoming) -> None:
        if number(message) == 1:
            raise ValueError("never")
        done.append(number(message))

    flow = rabbitmq.source(connection, queue, dead_letters=dead, attempts=2)
    async with flow.ack_after(write).running() as run:
        await until(lambda: exists(connection, dead))
        await until(lambda: has(connection, dead, 1))
        await until(lambda: len(done) == 2)
        await run.drain()
    assert done == [0, 2]
    assert await waiting(connection, queue) == 0
    buried: list[Incoming] = []
    async with rabbitmq.source(connection, dead).ack_after(buried.append).running():
        await until(lambda: buried)
    assert (number(buried[0]), buried[0].headers["x-queue"]) == (1, queue)
    assert "never" in str(buried[0].headers["x-error"])


@pytest.mark.thorough
async def test_an_outage_of_what_all_need_moves_nothing(
    connection: AbstractRobustConnection, queue: str
) -> None:
    dead, done, failed = f"{queue}.dead", list[int](), list[int]()

    def write(message: Incoming) -> None:
        if len(failed) < 20:
            failed.append(number(message))
            raise OSError("the database is down")
        done.append(number(message))

    again = rx.RetryPolicy(attempts=2, delay=0.01, maximum=0.02)
    flow = rabbitmq.source(connection, queue, dead_letters=dead, attempts=again)
    async with flow.ack_after(write).running() as run:
        await until(lambda: exists(connection, queue))
        await until(lambda: accepts(connection, queue, 0))
        await send(connection, queue, 1, 2)
        await until(lambda: len(done) == 3)
        await run.drain()
    assert len(failed) == 20
    assert await waiting(connection, dead) == 0


async def accepts(connection: AbstractRobustConnection, queue: str, number: int) -> bool:
    """A quorum queue that was just declared may refuse what is sent."""
    try:
        await send(connection, queue, number)
    except BatchFailed:
        return False
    return True


async def exists(connection: AbstractRobustConnection, queue: str) -> bool:
    try:
        await waiting(connection, queue)
    except ChannelNotFoundEntity:
        return False
    return True


@pytest.mark.parametrize(
    ("version", "limits"), [("3.10.8", {}), ("4.1.2", {"x-delivery-limit": -1})]
)
def test_no_count_of_deliveries_sets_a_message_aside(version: str, limits: dict[str, int]) -> None:
    """RabbitMQ 4 would drop it; version 3 has no limit, and knows none below zero."""
    of_server = SimpleNamespace(server_properties={"version": version})
    connection: Any = SimpleNamespace(transport=SimpleNamespace(connection=of_server))
    assert rabbitmq.delivery_limit(connection) == limits


async def test_dead_letters_of_a_function(connection: AbstractRobustConnection, queue: str) -> None:
    await declare(connection, queue)
    await send(connection, queue, 0, 1, 2)
    done: list[int] = []
    buried: list[str] = []

    def write(message: Incoming) -> None:
        if number(message) == 1:
            raise ValueError("never")
        done.append(number(message))

    def bury(message: Incoming, error: Exception) -> None:
        buried.append(f"{number(message)} {error!r}")

    flow = rabbitmq.source(connection, queue, attempts=2, on_dead_letter=bury)
    async with flow.ack_after(write).running() as run:
        await until(lambda: buried and len(done) == 2)
        await run.drain()
    assert (done, buried) == ([0, 2], ["1 ValueError('never')"])
    assert await waiting(connection, queue) == 0


@pytest.mark.usefixtures("expects_error_logs")  # aiormq reports each attempt
async def test_a_lost_connection_is_made_again(rabbit_server: RabbitServer, queue: str) -> None:
    async with proxy_of(rabbit_server.url) as proxy, rabbitmq.connect(proxy.url) as connection:
        await declare(connection, queue)
        numbers = rabbitmq.source(connection, queue, limit=5, retry=AGAIN).map(number)
        send_all = rabbitmq.sink(connection, queue, retry=AGAIN)
        report = await work_through_losses(proxy, numbers, send_all)
        await until(lambda: has(connection, queue, 0))
    assert report.is_complete


@pytest.mark.parametrize(
    ("of", "method", "error"),
    [
        (aio_pika.Channel, "initialize", RuntimeError("the connection is closed")),
        (aio_pika.Exchange, "publish", Exception()),
        (aio_pika.IncomingMessage, "ack", Exception()),
    ],
)
async def test_whatever_the_client_raises_when_the_connection_is_lost_is_an_outage(
    connection: AbstractRobustConnection,
    queue: str,
    of: type,
    method: str,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """These errors are its own, and of no class of AMQP; which of them it raises is a race."""
    await declare(connection, queue)
    call, done, lost = getattr(of, method), list[int](), [error]

    async def call_and_lose(*args: Any, **kwargs: Any) -> object:
        result = await call(*args, **kwargs)
        if lost:
            raise lost.pop()
        return result

    monkeypatch.setattr(of, method, call_and_lose)
    send_again = rabbitmq.sink(connection, queue, retry=AGAIN)
    flow = rabbitmq.source(connection, queue, retry=AGAIN).map(number).ack_after(done.append)
    async with flow.running() as run:
        await send_again([Message(b"1"), Message(b"2")])
        await until(lambda: {*done} == {1, 2})
        await run.drain()
    assert not lost


async def test_a_source_is_left_although_rabbitmq_is_frozen(
    connection: AbstractRobustConnection, rabbit_server: RabbitServer, queue: str
) -> None:
    await declare(connection, queue)
    await send(connection, queue, 1)
    async with proxy_of(rabbit_server.url) as proxy, rabbitmq.connect(proxy.url) as frozen:
        async with asyncio.timeout(30), rabbitmq.source(frozen, queue).as_flow().running() as run:
            await until(lambda: run.delivered == 1)
            proxy.freeze()
        proxy.thaw()
        await until(lambda: has(connection, queue, 1))


async def test_a_dead_letter_waits_for_rabbitmq_as_long_as_the_policy_allows(
    connection: AbstractRobustConnection, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not for the 30 seconds only that an acknowledgement may take elsewhere."""
    given: dict[str, Any] = {}

    def record(*args: Any, **options: Any) -> Any:
        given.update(options)
        return deliveries(*args, **options)

    monkeypatch.setattr(rabbitmq, "deliveries", record)
    again = rx.RetryPolicy(attempts=None, within=3600)
    rabbitmq.source(connection, queue, dead_letters=f"{queue}.dead", retry=again)
    assert given["ack_timeout"] > 3600


async def test_a_queue_that_is_deleted_fails_the_flow(
    connection: AbstractRobustConnection, queue: str
) -> None:
    await declare(connection, queue)
    await send(connection, queue, 1)

    async def delete(_: Incoming) -> None:
        async with connection.channel() as channel:
            await channel.queue_delete(queue)

    with pytest.raises(ChannelNotFoundEntity) as failed:
        await rabbitmq.source(connection, queue).ack_after(delete).run()
    assert rabbitmq.GONE in failed.value.__notes__


async def test_a_sink_says_which_messages_no_queue_receives(
    connection: AbstractRobustConnection, queue: str
) -> None:
    await declare(connection, queue)
    to_nowhere = Message(b"1", to="nowhere")
    with pytest.raises(BatchFailed) as failed:
        await rabbitmq.sink(connection, queue)([Message(b"0"), to_nowhere, Message(None)])
    assert "NO_ROUTE" in repr(failed.value.errors[1])
    assert isinstance(failed.value.errors[2], TypeError)
    assert await waiting(connection, queue) == 1
    with pytest.raises(ChannelNotFoundEntity):
        await rabbitmq.sink(connection, queue, exchange="nowhere")([Message(b"0")])
    await send(connection, queue, 1)
    assert await waiting(connection, queue) == 2
