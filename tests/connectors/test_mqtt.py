"""MQTT, with a real Mosquitto."""

import asyncio
import gc
import selectors
from functools import partial
from typing import Any

import pytest
from aiomqtt import Message as Incoming, MqttError

import reactive_aio as rx
from reactive_aio.connectors import Message, mqtt
from reactive_aio.delivery import BatchFailed
from tests.connectors.losses import AGAIN, work_through_losses
from tests.harness.outages import proxy_of
from tests.harness.servers import MqttServer
from tests.recipes.waiting import until

pytestmark = pytest.mark.slow
paho_may_log = pytest.mark.usefixtures("expects_error_logs")
"""paho logs some losses of a connection as errors, and not others."""


@pytest.fixture
def topic(mqtt_server: MqttServer) -> str:
    return mqtt_server.topic()


def number(message: Incoming) -> int:
    return int(bytes(message.payload))


async def send(server: MqttServer, topic: str, *numbers: int) -> None:
    async with mqtt.connect(server.url, name=f"sends to {topic}") as client:
        await mqtt.sink(client, topic)([Message(str(n).encode()) for n in numbers])


async def subscribe(server: MqttServer, topic: str, name: str) -> None:
    """Let the broker keep a session."""
    async with mqtt.connect(server.url, name=name) as client:
        await client.subscribe(topic, qos=1)


async def test_messages_that_came_before_are_read_and_acknowledged_once(
    mqtt_server: MqttServer, topic: str
) -> None:
    await subscribe(mqtt_server, topic, f"me {topic}")
    await send(mqtt_server, topic, *range(50))
    done: list[int] = []
    for _ in range(2):
        async with mqtt.connect(mqtt_server.url, name=f"me {topic}") as client:
            flow = mqtt.source(client, topic).map(number).ack_after(done.append)
            async with flow.running() as run:
                await until(lambda: len(done) == 50)
                report = await run.drain()
        assert report.is_complete
    assert done == [*range(50)], "the second one receives nothing again"


async def test_what_was_not_acknowledged_is_sent_to_the_next_client_of_the_session(
    mqtt_server: MqttServer, topic: str
) -> None:
    name = f"me {topic}"
    await subscribe(mqtt_server, topic, name)
    await send(mqtt_server, topic, *range(10))
    started: list[int] = []

    async def work(message: Incoming) -> None:
        started.append(number(message))
        if number(message) >= 3:
            await asyncio.sleep(60)

    async with mqtt.connect(mqtt_server.url, name=name) as client:
        await until(lambda: len(client.messages) == 10)  # the broker waits for no source
        flow = mqtt.source(client, topic).ack_after(work, concurrency=10)
        async with flow.running() as first:
            await until(lambda: (len(started), first.delivered) == (10, 3))
    done: list[int] = []
    async with mqtt.connect(mqtt_server.url, name=name) as client:
        again = mqtt.source(client, topic).map(number).ack_after(done.append)
        async with again.running() as run:
            await until(lambda: 9 in done)
            await run.drain()
    assert done == [*range(3, 10)]


async def test_the_broker_sends_no_more_than_the_limit(mqtt_server: MqttServer, topic: str) -> None:
    name = f"me {topic}"
    await subscribe(mqtt_server, topic, name)
    await send(mqtt_server, topic, *range(30))
    started, release = list[int](), asyncio.Event()

    async def work(message: Incoming) -> None:
        started.append(number(message))
        await release.wait()

    async with mqtt.connect(mqtt_server.url, name=name, limit=5) as client:
        flow = mqtt.source(client, topic, limit=5).ack_after(work, concurrency=20)
        async with flow.running() as run:
            await until(lambda: len(started) == 5)
            await asyncio.sleep(0.1)
            assert len(started) == 5
            # Mosquitto sends as many again of those that were queued for the session.
            assert len(client.messages) <= 5
            release.set()
            await until(lambda: len(started) == 30)
            await run.drain()


async def test_what_always_fails_is_a_dead_letter(mqtt_server: MqttServer, topic: str) -> None:
    name = f"me {topic}"
    await subscribe(mqtt_server, topic, name)
    await send(mqtt_server, topic, 0, 1, 2)
    done: list[int] = []
    buried: list[str] = []

    def write(message: Incoming) -> None:
        if number(message) == 1:
            raise ValueError("never")
        done.append(number(message))

    def bury(message: Incoming, error: Exception) -> None:
        buried.append(f"{number(message)} {error!r}")

    for _ in range(2):
        async with mqtt.connect(mqtt_server.url, name=name) as client:
            flow = mqtt.source(client, topic, attempts=2, on_dead_letter=bury)
            async with flow.ack_after(write).running() as run:
                await until(lambda: buried and len(done) == 2)
                await run.drain()
    assert (done, buried) == ([0, 2], ["1 ValueError('never')"])


@paho_may_log
async def test_a_lost_connection_is_made_again(mqtt_server: MqttServer, topic: str) -> None:
    skip_on_uvloop()
    await subscribe(mqtt_server, topic, f"me {topic}")
    async with (
        proxy_of(mqtt_server.url) as proxy,
        mqtt.connect(proxy.url, name=f"me {topic}") as client,
        mqtt.connect(proxy.url, name=f"sends to {topic}") as sender,
    ):
        numbers = mqtt.source(client, topic, retry=AGAIN).map(number)
        report = await work_through_losses(proxy, numbers, mqtt.sink(sender, topic, retry=AGAIN))
    assert report.is_complete


@paho_may_log
@pytest.mark.parametrize("is_first", [True, False])
async def test_a_connection_that_is_lost_when_nobody_uses_it_is_reported_nowhere(
    mqtt_server: MqttServer, topic: str, is_first: bool
) -> None:
    """Whoever uses it next connects again; the loop would report a future that nobody asked."""
    skip_on_uvloop()
    async with (
        proxy_of(mqtt_server.url) as proxy,
        mqtt.connect(proxy.url, name=f"sends to {topic}") as client,
    ):
        await mqtt.sink(client, topic, retry=AGAIN)([Message(b"0")])
        proxy.cut()
        await until(client._disconnected.done)
        if not is_first:
            await mqtt._enter_again(client)
            await until(lambda: proxy.connections == 2)
            proxy.cut()
            await until(client._disconnected.done)
    del client
    gc.collect()


@paho_may_log
async def test_what_waits_for_an_answer_fails_when_the_connection_is_lost(
    mqtt_server: MqttServer, topic: str
) -> None:
    """And not after the timeout of the client, which counts as time of the outage."""
    skip_on_uvloop()
    async with (
        proxy_of(mqtt_server.url) as proxy,
        mqtt.connect(proxy.url, name=f"sends to {topic}") as client,
    ):
        for ask in (
            partial(mqtt.sink(client, topic, retry=1), [Message(b"0")]),
            mqtt.source(client, topic, retry=1).ack_after(print).run,
        ):
            proxy.freeze()
            asking = asyncio.create_task(ask())
            await until(lambda: [*client._pending_calls])
            proxy.cut()
            with pytest.raises(MqttError, match="lost before the broker answered"):
                await asking
            await mqtt._enter_again(client)


async def test_the_loop_does_not_watch_for_writing_when_all_is_written(
    mqtt_server: MqttServer, topic: str
) -> None:
    """It would call the client without end, and still watch the file when it is closed."""
    skip_on_uvloop()
    loop: Any = asyncio.get_running_loop()
    async with mqtt.connect(mqtt_server.url, name=f"sends to {topic}") as client:
        mqtt.sink(client, topic)
        inner: Any = client._client
        inner.publish(topic, b"0", 1)
        inner.loop_write()  # as the loop does for what was queued before
        await asyncio.sleep(0)
        assert loop._selector.get_key(inner.socket()).events == selectors.EVENT_READ


def skip_on_uvloop() -> None:
    """aiomqtt watches a file that is closed, at which libuv aborts: docs/connectors.md says so."""
    if type(asyncio.get_running_loop()).__module__.startswith("uvloop"):
        pytest.skip("aiomqtt cannot lose a connection on uvloop")


@paho_may_log
async def test_a_broker_that_is_gone_fails_the_flow_when_the_policy_gives_up(
    mqtt_server: MqttServer, topic: str
) -> None:
    skip_on_uvloop()
    async with (
        proxy_of(mqtt_server.url) as proxy,
        mqtt.connect(proxy.url, name=f"me {topic}") as client,
    ):
        again = rx.RetryPolicy(attempts=3, delay=0.01)
        async with mqtt.source(client, topic, retry=again).as_flow().running() as run:
            await asyncio.sleep(0.1)
            await proxy.stop()
            with pytest.raises(MqttError) as failed:
                await run.wait()
    assert "attempt 3 failed" in str(failed.value.__notes__)


async def test_a_sink_says_which_messages_are_refused(mqtt_server: MqttServer, topic: str) -> None:
    async with mqtt.connect(mqtt_server.url, name=f"sends to {topic}") as client:
        messages = [Message(b"0", headers={"a": "b"}), Message(None), Message(b"2", to="a/#")]
        with pytest.raises(BatchFailed) as failed:
            await mqtt.sink(client, topic)(messages)
    assert sorted(failed.value.errors) == [1, 2]
