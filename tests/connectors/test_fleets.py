"""Consumers come and go while messages are produced: nothing is lost, and nothing stays pending."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition
from nats.js.api import StreamConfig

from reactive_aio import Flow, Run
from reactive_aio._core.observation.figures import stalled
from reactive_aio._core.observation.registry import named_flow
from reactive_aio.connectors import Message, kafka, mqtt, nats, rabbitmq, redis_streams
from tests.connectors.workers import GROUP, OPENED, session_of, work_on
from tests.harness.servers import KafkaServer, MqttServer, NatsServer, RabbitServer, RedisServer
from tests.recipes.waiting import until

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[2]
COUNT = 1000
KEYS = 7


@dataclass
class Place:
    """Where numbers are sent, and whether all of them are settled."""

    url: str
    where: str
    send: Callable[[list[int]], Awaitable[None]]
    is_settled: Callable[[], Awaitable[bool]]
    keeps_order: bool = False
    """Whether the numbers of a key come in their order, to whoever reads them."""


def message(number: int) -> Message:
    return Message(str(number).encode(), key=str(number % KEYS).encode())


@asynccontextmanager
async def in_redis(server: RedisServer) -> AsyncGenerator[Place]:
    url = server.database()
    async with redis_streams.connect(url) as redis:
        append = redis_streams.sink(redis, "numbers")

        async def is_settled() -> bool:
            summary: Any = await redis.xpending("numbers", GROUP)
            [group] = await redis.xinfo_groups("numbers")
            return (summary["pending"], group["lag"]) == (0, 0)

        async def send(numbers: list[int]) -> None:
            await append([{"n": n} for n in numbers])

        yield Place(url, "numbers", send, is_settled)


@asynccontextmanager
async def in_kafka(server: KafkaServer) -> AsyncGenerator[Place]:
    topic = server.topic()
    async with (
        kafka.producer(server.url) as producer,
        kafka.connect(server.url, group=GROUP) as watch,  # it joins only when it subscribes
    ):
        append = kafka.sink(producer, topic)
        partitions = [TopicPartition(topic, n) for n in range(4)]

        async def is_settled() -> bool:
            ends = await watch.end_offsets(partitions)
            return all([(await watch.committed(each) or 0) == ends[each] for each in ends])

        async def send(numbers: list[int]) -> None:
            await append([message(n) for n in numbers])

        yield Place(server.url, topic, send, is_settled, keeps_order=True)


@asynccontextmanager
async def in_rabbit(server: RabbitServer) -> AsyncGenerator[Place]:
    queue = server.queue()
    async with rabbitmq.connect(server.url) as connection, connection.channel() as channel:
        await channel.declare_queue(queue, durable=True)
        append = rabbitmq.sink(connection, queue)

        async def is_settled() -> bool:
            """When all consumers have gone, what they left unacknowledged is back."""
            found = await channel.declare_queue(queue, passive=True)
            result = found.declaration_result
            return (result.message_count, result.consumer_count) == (0, 0)

        async def send(numbers: list[int]) -> None:
            await append([message(n) for n in numbers])

        yield Place(server.url, queue, send, is_settled)


@asynccontextmanager
async def in_nats(server: NatsServer) -> AsyncGenerator[Place]:
    subject = server.subject()
    async with nats.connect(server.url) as client:
        context: Any = client
        context = context.jetstream()
        await context.add_stream(StreamConfig(name=subject, subjects=[subject]))
        append = nats.sink(client, subject)

        async def is_settled() -> bool:
            info = await context.consumer_info(subject, GROUP)
            return (info.num_ack_pending, info.num_pending) == (0, 0)

        async def send(numbers: list[int]) -> None:
            await append([message(n) for n in numbers])

        yield Place(server.url, subject, send, is_settled)


@asynccontextmanager
async def in_mqtt(server: MqttServer) -> AsyncGenerator[Place]:
    topic = server.topic()
    for name in ("stays", "killed"):  # what comes before a session begins is for nobody
        async with mqtt.connect(server.url, name=session_of(topic, name)) as client:
            await client.subscribe(f"$share/{GROUP}/{topic}", qos=1)
    async with mqtt.connect(server.url, name=f"sends to {topic}") as client:
        append = mqtt.sink(client, topic)

        async def is_settled() -> bool:
            """The broker sends nothing again to those who return."""
            for name in ("stays", "killed"):
                async with mqtt.connect(server.url, name=session_of(topic, name)) as client:
                    await asyncio.sleep(0.2)
                    assert not len(client.messages)
            return True

        async def send(numbers: list[int]) -> None:
            await append([message(n) for n in numbers])

        yield Place(server.url, topic, send, is_settled)


PLACES: dict[str, Any] = {
    "redis": in_redis,
    "kafka": in_kafka,
    "rabbit": in_rabbit,
    "nats": in_nats,
    "mqtt": in_mqtt,
}


@asynccontextmanager
async def other_process(broker: str, place: Place) -> AsyncGenerator["Other"]:
    command = [sys.executable, "-m", "tests.connectors.workers", broker, place.url, place.where]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, env=environment, stdout=subprocess.PIPE
    )
    other = Other(process)
    reading = asyncio.create_task(other.read())
    try:
        yield other
    finally:
        other.kill()
        await reading
        await process.wait()


class Other:
    """A process that works on numbers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.done: list[int] = []
        self._process = process

    async def read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.done.append(int(line))

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()


@pytest.fixture(params=PLACES)
def broker(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def server(broker: str, request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(f"{broker}_server")


@pytest.mark.usefixtures("expects_error_logs")  # aiokafka reports each commit that fails
async def test_one_is_killed_and_one_joins(broker: str, server: Any) -> None:
    async with PLACES[broker](server) as place, other_process(broker, place) as killed:
        stays, joins = list[int](), list[int]()
        async with consuming(broker, place, "stays", stays) as first:
            producing = asyncio.create_task(produce(place))
            await until(lambda: len(killed.done) > 50 and stays)
            killed.kill()
            async with consuming(broker, place, "joins", joins) as second:
                await until(lambda: {*killed.done, *stays, *joins} == {*range(COUNT)})
                await producing
                await until(lambda: joins)
                reports = await asyncio.gather(first.drain(), second.drain())
        await until(place.is_settled)
    assert all(report.is_complete and not report.unacknowledged for report in reports)
    if place.keeps_order:
        for done in (killed.done, stays, joins):
            assert_in_order(done)


async def test_a_broker_without_messages_is_no_stall(broker: str, server: Any) -> None:
    """The line of the client that waits is not to blame."""
    async with PLACES[broker](server) as place, OPENED[broker](place.url, place.where, "a") as all:
        flow = all.ack_after(work_on).name(f"quiet {broker}")
        async with flow.running():
            await until(lambda: waits_on(flow) == "elements")
            for _ in range(20):
                assert not [*stalled(named_flow(f"quiet {broker}"), 0)]
                await asyncio.sleep(0.05)


def waits_on(flow: Flow[int]) -> str:
    return flow.stats().subscriptions[0].waits_on


@asynccontextmanager
async def consuming(
    broker: str, place: Place, name: str, done: list[int]
) -> AsyncGenerator[Run[int]]:
    async def write(number: int) -> None:
        await work_on(number)
        done.append(number)

    async with (
        OPENED[broker](place.url, place.where, name) as numbers,
        numbers.ack_after(write).running() as run,
    ):
        yield run


async def produce(place: Place) -> None:
    for first in range(0, COUNT, 20):
        await place.send([*range(first, first + 20)])
        await asyncio.sleep(0.02)


def assert_in_order(done: list[int]) -> None:
    """The first time of each number of a key comes after the numbers of that key before it."""
    for key in range(KEYS):
        first_times = [*dict.fromkeys(n for n in done if n % KEYS == key)]
        assert first_times == sorted(first_times)
