"""NATS JetStream, with a real server."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import ConnectionReconnectingError, Error, NoServersError
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, StorageType, StreamConfig
from nats.js.errors import APIError, NoKeysError, NotFoundError

from reactive_aio.connectors import Message, nats
from reactive_aio.connectors.common import RECONNECT
from reactive_aio.delivery import BatchFailed, DeliveryFlow
from reactive_aio.delivery.crash_marks import CRASHES, DIED
from reactive_aio.stage import to_seconds
from tests.connectors.losses import AGAIN, NUMBERS, work_through_losses
from tests.harness.outages import proxy_of
from tests.harness.servers import NatsServer, nats_running
from tests.recipes.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
async def client(nats_server: NatsServer) -> AsyncGenerator[Client]:
    async with nats.connect(nats_server.url) as connected:
        yield connected


@pytest.fixture
def context(client: Client) -> JetStreamContext:
    return jetstream(client)


def jetstream(client: Any) -> JetStreamContext:  # it has no types
    context: JetStreamContext = client.jetstream()
    return context


@pytest.fixture
async def subject(nats_server: NatsServer, context: JetStreamContext) -> str:
    name = nats_server.subject()
    await make_stream(context, name)
    return name


async def make_stream(context: Any, name: str, storage: StorageType = StorageType.FILE) -> None:
    await context.add_stream(StreamConfig(name=name, subjects=[name], storage=storage))


def messages(
    client: Client | JetStreamContext, subject: str, group: str, **options: Any
) -> DeliveryFlow[Msg]:
    return nats.source(client, subject, group=group, **options)


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
    assert {*done} == {*range(20)}


async def test_no_more_is_taken_than_the_limit_and_a_list(
    context: JetStreamContext, subject: str
) -> None:
    await publish(context, subject, 50)
    busy, done = asyncio.Event(), asyncio.Event()

    async def work(_: Msg) -> None:
        busy.set()
        await done.wait()

    async with messages(context, subject, "d", limit=5).ack_after(work).running():
        await busy.wait()
        await publish(context, subject, 1)  # and so the server has answered what was asked before
        info = await context.consumer_info(subject, "d")
        done.set()
    assert info.num_ack_pending in range(1, 5 + 5 + 1), "others of the group have the rest"


async def test_a_message_that_always_fails_is_a_dead_letter(
    context: JetStreamContext, subject: str
) -> None:
    await publish(context, subject, 4)
    attempts: list[int] = []
    buried: list[str] = []

    def write(value: int) -> None:
        attempts.append(value)
        if value == 2:
            raise ValueError("never")

    async def bury(message: Msg, error: Exception) -> None:
        buried.append(f"{number(message)} {error!r}")

    flow = messages(context, subject, "d", attempts=3, on_dead_letter=bury)
    async with flow.map(number).ack_after(write).running():
        await until(lambda: is_done(context, subject))
    assert attempts.count(2) == 3
    assert buried == ["2 ValueError('never')"]


async def left_several_times(context: Any, subject: str, times: int) -> None:
    """Deliver what there is so often, to nobody that answers."""
    config = ConsumerConfig(ack_wait=0.05)
    pulled = await context.pull_subscribe(subject, "d", config=config)
    for _ in range(times):
        for message in await pulled.fetch(10, 5):
            assert message.metadata.num_delivered
        await asyncio.sleep(0.1)
    await pulled.unsubscribe()


async def test_what_came_often_is_tried_alone_and_buried_for_its_marks_only(
    context: JetStreamContext, subject: str
) -> None:
    await publish(context, subject, 4)
    await left_several_times(context, subject, 6)  # outages, of which the last three are no proof
    bucket = await cast("Any", context).create_key_value(bucket=f"marks_{subject}_d", history=1)
    await bucket.put("2", str(CRASHES).encode())
    in_work, most, buried, marks = 0, 0, list[str](), list[int]()

    async def write(message: Msg) -> None:
        nonlocal in_work, most
        in_work += 1
        most = max(most, in_work)
        marks.append(int((await bucket.get(str(message.metadata.sequence.stream))).value))
        await asyncio.sleep(0.01)
        in_work -= 1

    def bury(message: Msg, error: Exception) -> None:
        buried.append(f"{number(message)} {error}")

    flow = messages(context, subject, "d", ack_wait=0.5, on_dead_letter=bury)
    async with flow.ack_after(write, concurrency=8).running():
        await until(lambda: is_done(context, subject))
    assert (most, marks) == (1, [1, 1, 1])
    assert buried == [f"1 {DIED.format(CRASHES)}"]
    with pytest.raises(NoKeysError):
        await bucket.keys()


async def test_work_that_takes_longer_than_the_wait_is_done_once(
    context: JetStreamContext, subject: str
) -> None:
    await publish(context, subject, 2)
    done: list[int] = []

    async def write(number: int) -> None:
        await asyncio.sleep(1)
        done.append(number)

    flow = messages(context, subject, "d", ack_wait=0.3)
    async with flow.map(number).ack_after(write, concurrency=2).running():
        await until(lambda: is_done(context, subject))
    assert sorted(done) == [0, 1]


async def test_a_message_that_fails_is_delivered_again(
    context: JetStreamContext, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats, "AGAIN", 0.01)
    await publish(context, subject, 2)
    attempts: list[int] = []

    def write(value: int) -> None:
        attempts.append(value)
        if attempts.count(1) < 3 and value == 1:
            raise OSError("not now")

    flow = messages(context, subject, "d").map(number).ack_after(write, on_error="skip")
    async with flow.running():
        await until(lambda: is_done(context, subject))
    assert sorted(attempts) == [0, 1, 1, 1]


async def test_a_consumer_that_is_deleted_fails_the_flow(
    context: JetStreamContext, subject: str
) -> None:
    await publish(context, subject, 1)
    flow = messages(context, subject, "d")

    async def delete(_: Msg) -> None:
        await context.delete_consumer(subject, "d")

    with pytest.raises(APIError):
        await flow.ack_after(delete).run()


async def test_a_stream_that_is_made_anew_is_not_silence(
    context: JetStreamContext, subject: str
) -> None:
    await publish(context, subject, 1)

    async def replace(_: Msg) -> None:
        await context.delete_stream(subject)
        await make_stream(context, subject)

    with pytest.raises(APIError):
        await messages(context, subject, "d").ack_after(replace).run()


async def test_a_lost_connection_is_made_again(
    nats_server: NatsServer, context: JetStreamContext, subject: str
) -> None:
    async with proxy_of(nats_server.url) as proxy, nats.connect(proxy.url) as client:
        flow = messages(client, subject, "d", limit=5, count=5, ack_wait=1, retry=AGAIN)
        send = nats.sink(client, subject, retry=AGAIN)
        report = await work_through_losses(proxy, flow.map(number), send)
        await until(lambda: is_done(context, subject))
    assert report.is_complete
    info: Any = await context.stream_info(subject)
    assert info.state.messages == len(NUMBERS), "what was sent again was dropped by its id"


async def test_what_waits_for_an_answer_fails_when_the_connection_is_lost(
    nats_server: NatsServer, subject: str
) -> None:
    lost = asyncio.Event()

    async def notice() -> None:
        lost.set()

    async with (
        proxy_of(nats_server.url) as proxy,
        nats.connect(proxy.url, disconnected_cb=notice) as client,
    ):
        proxy.freeze()
        sending = asyncio.create_task(nats.sink(client, subject, retry=1)([Message(b"0")]))
        await until(lambda: bool(cast("Any", client)._resp_map))
        proxy.cut()
        with pytest.raises(ConnectionReconnectingError):
            await sending
        await lost.wait()


async def test_the_block_of_a_client_is_left_in_an_outage(nats_server: NatsServer) -> None:
    """The client has kept what is to be sent, and tries to send it when it is closed."""
    async with proxy_of(nats_server.url) as proxy:
        async with nats.connect(proxy.url) as client:
            await cast("Any", client).jetstream().account_info()  # subscribes to the answer
            await proxy.stop()
            await until(lambda: client.is_reconnecting)
            await client.publish("kept", b"0")
        assert client.is_closed


async def test_the_block_of_a_client_is_left_while_its_connection_ends(
    nats_server: NatsServer,
) -> None:
    """The client closes by awaiting what the task that it has cancelled awaits."""
    async with nats.connect(nats_server.url) as client:
        await client.force_reconnect()
        await asyncio.sleep(0)  # the task starts, and closes the connection
    assert client.is_closed


@pytest.mark.parametrize("turns", range(8))
async def test_a_client_does_not_connect_again_after_its_block(
    nats_server: NatsServer, turns: int
) -> None:
    """In some turns of the loop, Python 3.11 loses the cancellation of the task that connects."""
    async with proxy_of(nats_server.url) as proxy:
        async with nats.connect(proxy.url) as client:
            proxy.cut()
            proxy.freeze()
            await until(lambda: proxy.connections == 2)
            made = cast("Any", client)
            await until(lambda: made._transport._io_reader._waiter)  # for the server's greeting
            proxy.cut()
            for _ in range(turns):
                await asyncio.sleep(0)
        assert client.is_closed
        assert made._reconnection_task.done()


async def test_a_connection_that_is_dead_is_found_long_before_a_flow_fails(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = nats.PINGS["ping_interval"] * (nats.PINGS["max_outstanding_pings"] + 1)
    assert seconds <= to_seconds(RECONNECT.within or 0, "within") / 2
    monkeypatch.setitem(nats.PINGS, "ping_interval", 0.05)
    async with (
        proxy_of(nats_server.url) as proxy,
        nats.connect(proxy.url) as client,
        nats.connect(proxy.url, ping_interval=3600) as other,
    ):
        proxy.freeze()
        await until(lambda: client.is_reconnecting)
        assert other.is_connected, "it is as its user has said"
        proxy.thaw()
        await until(lambda: client.is_connected)


async def test_a_drain_ends_in_time_although_the_server_is_frozen(
    nats_server: NatsServer, context: JetStreamContext, subject: str
) -> None:
    await publish(context, subject, 4)
    release, started = asyncio.Event(), list[int]()

    async def work(number: int) -> None:
        started.append(number)
        await release.wait()

    async with proxy_of(nats_server.url) as proxy, nats.connect(proxy.url) as client:
        flow = messages(client, subject, "d").map(number).ack_after(work, concurrency=4)
        async with flow.name("orders").running() as run:
            await until(lambda: len(started) == 4)
            proxy.freeze()
            release.set()
            report = await run.drain(timeout=0.5)
            proxy.thaw()
            assert (await run.drain()).is_clean, "what it did not wait for has gone on"
    assert (report.is_complete, report.is_clean) == (False, False)
    assert report.seconds < 2, "the server has five seconds for its answer"
    server = f"an answer of NATS (subject {subject!r})"
    assert f"4 × orders: an acknowledgement: waits for {server}" in report.waits_for
    assert report.unacknowledged == 4


async def test_a_sink_says_which_messages_are_refused(client: Client, subject: str) -> None:
    messages = [Message(b"0"), Message(b"1", to="nowhere"), Message(None), Message(b"3")]
    with pytest.raises(BatchFailed) as failed:
        await nats.sink(client, subject)(messages)
    assert sorted(failed.value.errors) == [1, 2]


async def test_a_sink_says_at_once_which_messages_are_too_large(
    client: Client, context: JetStreamContext, nats_server: NatsServer
) -> None:
    """The client raises in its callback for such an answer; nobody would receive it."""
    subject = nats_server.subject()
    made: Any = context  # whose parameters have no types
    await made.add_stream(StreamConfig(name=subject, subjects=[subject], max_msg_size=100))
    messages = [Message(b"0"), Message(b"1" * 200), Message(b"2" * 2_000_000), Message(b"3")]
    with pytest.raises(BatchFailed) as failed:
        await nats.sink(client, subject)(messages)
    assert sorted(failed.value.errors) == [1, 2]
    assert "message size exceeds maximum" in str(failed.value.errors[1])
    assert (await context.stream_info(subject)).state.messages == 2


async def test_a_server_that_refuses_the_password_says_so() -> None:
    server = nats_running("--user", "u", "--pass", "p")
    running = await asyncio.to_thread(server.__enter__)
    try:
        with pytest.raises(Error, match="Authorization Violation") as refused:
            async with nats.connect(running.url):
                pass
        assert isinstance(refused.value.__cause__, NoServersError)
        async with nats.connect(running.url.replace("//", "//u:p@")):
            pass
    finally:
        await asyncio.to_thread(server.__exit__, None, None, None)


async def test_a_subject_without_a_stream_is_an_error_that_says_so(client: Client) -> None:
    with pytest.raises(NotFoundError, match="no stream has the subject 'nowhere': make one first"):
        await messages(client, "nowhere", "d").ack_after(print).run()
