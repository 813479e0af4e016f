"""NATS JetStream, with a real server."""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError
from recipes import nats_jetstream
from recipes.nats_jetstream import bury, messages, require_stream

import reactive_aio as r
from tests.harness.servers import NatsServer
from tests.recipes.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
async def context(nats_server: NatsServer) -> AsyncGenerator[JetStreamContext]:
    client: Any = Client()  # whose options have no types
    await client.connect(nats_server.url)
    try:
        yield client.jetstream()
    finally:
        await client.close()


@pytest.fixture
async def subject(nats_server: NatsServer, context: JetStreamContext) -> str:
    name = nats_server.subject()
    await require_stream(context, name, name)
    await require_stream(context, "another", name)  # there is one
    return name


async def publish(context: JetStreamContext, subject: str, count: int) -> None:
    for number in range(count):
        await context.publish(subject, str(number).encode())


async def is_done(context: JetStreamContext, subject: str) -> bool:
    """Whether the server knows of an acknowledgement of each message."""
    try:
        info = await context.consumer_info(subject, "d")
    except NotFoundError:  # it is created later
        return False
    return (info.num_ack_pending, info.num_pending) == (0, 0)


def number(message: Msg) -> int:
    return int(message.data)


async def test_messages_before_and_after_the_start_are_acknowledged(
    context: JetStreamContext, subject: str
) -> None:
    await publish(context, subject, 150)
    done: list[int] = []
    flow = messages(context, subject, "d").map(number).ack_after(done.append)
    async with flow.running() as run:
        await until(lambda: len(done) == 150)
        await publish(context, subject, 3)
        await until(lambda: len(done) == 153)
        report = await run.drain()
    assert report.is_complete
    assert done == [*range(150), *range(3)]
    assert await is_done(context, subject), "acknowledgements are confirmed"


async def test_the_next_run_continues_with_what_was_not_done(
    context: JetStreamContext, subject: str
) -> None:
    await publish(context, subject, 20)
    done: list[int] = []
    # Those that the server was sending at the end of the first run follow after `ack_wait`.
    first = messages(context, subject, "d", count=5, limit=5, ack_wait=0.5)
    async with first.as_flow().stream() as deliveries:
        async for delivery in deliveries:
            done.append(number(delivery.value))
            delivery.ack()
            if len(done) == 3:
                break
    flow = messages(context, subject, "d").map(number).ack_after(done.append)
    async with flow.running():
        await until(lambda: is_done(context, subject))
    assert sorted(done) == [*range(20)]


async def test_a_message_that_always_fails_is_moved_with_its_error(
    context: JetStreamContext, subject: str
) -> None:
    await publish(context, subject, 4)
    attempts: list[int] = []

    def write(value: int) -> None:
        attempts.append(value)
        if value == 2:
            raise ValueError("never\nthat one")

    flow = messages(context, subject, "d")
    flow = flow.nack_on_error(r.RetryPolicy(attempts=3), dead_letter=partial(bury, context))
    async with flow.map(number).ack_after(write).running():
        await until(lambda: is_done(context, subject))
    assert attempts.count(2) == 3
    found: Any = await context.get_last_msg(subject, f"{subject}.dead")
    assert found.data == b"2"
    assert found.headers == {"error": "ValueError('never\\nthat one')"}


async def test_how_often_a_message_was_delivered_proves_nothing(
    context: JetStreamContext, subject: str
) -> None:
    await publish(context, subject, 1)
    for _ in range(5):  # as many orderly ends of a process that had not begun with it
        subscription = await context.pull_subscribe(subject, "d")
        [message] = await subscription.fetch(1, timeout=20)
        await message.nak()
        await subscription.unsubscribe()
    worked: list[int] = []
    flow = messages(context, subject, "d")
    flow = flow.nack_on_error(r.RetryPolicy(attempts=3), dead_letter=partial(bury, context))
    async with flow.map(number).ack_after(worked.append).running():
        await until(lambda: is_done(context, subject))
    assert worked == [0]


@pytest.mark.parametrize("what", ["consumer", "stream"])
async def test_what_is_deleted_is_an_error_and_no_silence(
    context: JetStreamContext, subject: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_jetstream, "WAIT", 0.1)
    await publish(context, subject, 1)

    async def delete(_: Msg) -> None:
        if what == "stream":
            await context.delete_stream(subject)
        else:
            await context.delete_consumer(subject, "d")

    flow = messages(context, subject, "d").map_async(delete, on_error="skip")
    with pytest.raises(NotFoundError):
        await flow.ack_after(print).run()
