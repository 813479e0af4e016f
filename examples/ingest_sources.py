"""Where `ingest_service` reads from, and puts back to: a broker, named by the scheme of a URL.

An entry has an ``id`` and a ``payload``. In a stream of Redis they are its fields. Any other
message has the payload as its content, and the id as a header (in MQTT, a user property).
"""

import hashlib
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final
from uuid import uuid4

from ingest_entries import Entry, Fields

import reactive_aio as rx
from reactive_aio.connectors import Message
from reactive_aio.delivery import DeliveryFlow

EVENTS: Final = "events"
"""The name of the stream, topic, queue or subject."""
AGAIN: Final = rx.RetryPolicy(attempts=None, within=None, delay=0.1, maximum=2)

PutBack = Callable[[Fields], Awaitable[None]]


async def nothing(_: Sequence[str]) -> None:
    """Take no note of what was worked on: only Redis leaves that to those who read it."""


@dataclass(frozen=True)
class Source:
    """The messages of a broker that is connected, and how to see an entry in one."""

    name: str
    messages: DeliveryFlow[Any]
    entry: Callable[[Any], Entry]
    worked: Callable[[Sequence[str]], Awaitable[None]] = nothing


@dataclass(frozen=True)
class Reading:
    """What you say of how to read."""

    url: str
    group: str
    limit: int
    count: int
    idle: float


def entry_of(content: bytes | None, headers: Mapping[str, Any], where: str = "") -> Entry:
    """A message as an entry; of its headers, the texts."""
    texts = {name: text for name, text in headers.items() if isinstance(text, str)}
    fields = {name.encode(): text.encode() for name, text in texts.items()}
    if content is not None:  # as of a tombstone of Kafka
        fields[b"payload"] = bytes(content)
    return Entry(where or f"sha256:{hashlib.sha256(repr(fields).encode()).hexdigest()}", fields)


def message_of(fields: Fields) -> Message:
    """The message that is an entry with these fields."""
    headers = {n.decode(): text.decode() for n, text in fields.items() if n != b"payload"}
    return Message(fields.get(b"payload"), headers=headers)


# -- Redis -----------------------------------------------------------------------------------------
def redis_source(redis: Any, reading: Reading) -> tuple[Source, Any]:
    """A stream, as one consumer of a group, which takes over what dead ones have left."""
    from reactive_aio.connectors.redis_streams import Consumer

    options: dict[str, Any] = {"idle": reading.idle, "count": reading.count, "retry": AGAIN}
    consumer = Consumer(redis, EVENTS, reading.group, **options)

    def entry(message: Any) -> Entry:
        return Entry(message.id, message.fields, message.crashes)

    name = f"the stream {EVENTS} as {consumer.name} of {reading.group}"
    messages = consumer.entries(limit=reading.limit)
    return Source(name, messages, entry, consumer.worked), consumer


@asynccontextmanager
async def from_redis(reading: Reading) -> AsyncGenerator[Source]:
    """The stream of a server at a URL."""
    from reactive_aio.connectors.redis_streams import connect

    async with connect(reading.url) as redis:
        source, consumer = redis_source(redis, reading)
        async with rx.interval(reading.idle / 3).running(consumer.keep):  # also while it drains
            yield source
        await consumer.leave()


@asynccontextmanager
async def to_redis(url: str) -> AsyncGenerator[PutBack]:
    """Append to the stream."""
    from reactive_aio.connectors.redis_streams import connect, sink

    async with connect(url) as redis:
        send = sink(redis, EVENTS)
        yield lambda fields: send([fields])


# -- Kafka -----------------------------------------------------------------------------------------
@asynccontextmanager
async def from_kafka(reading: Reading) -> AsyncGenerator[Source]:
    """A topic, as one member of a group."""
    from reactive_aio.connectors import kafka

    def entry(record: Any) -> Entry:
        headers = {name: value.decode(errors="replace") for name, value in record.headers}
        return entry_of(record.value, headers, f"{EVENTS}-{record.partition}-{record.offset}")

    async with kafka.connect(reading.url, group=reading.group) as consumer:
        options: dict[str, Any] = {"limit": reading.limit, "count": reading.count, "retry": AGAIN}
        messages = kafka.source(consumer, EVENTS, **options)
        yield Source(f"the topic {EVENTS} as a member of {reading.group}", messages, entry)


@asynccontextmanager
async def to_kafka(url: str) -> AsyncGenerator[PutBack]:
    """Append to the topic."""
    from reactive_aio.connectors import kafka

    async with kafka.producer(url) as producer:
        send = kafka.sink(producer, EVENTS)
        yield lambda fields: send([message_of(fields)])


# -- RabbitMQ --------------------------------------------------------------------------------------
@asynccontextmanager
async def from_rabbitmq(reading: Reading) -> AsyncGenerator[Source]:
    """A queue, which its consumers share."""
    from reactive_aio.connectors import rabbitmq

    def entry(message: Any) -> Entry:
        return entry_of(message.body, message.headers)

    async with rabbitmq.connect(reading.url) as connection:
        messages = rabbitmq.source(connection, EVENTS, limit=reading.limit, retry=AGAIN)
        yield Source(f"the queue {EVENTS}", messages, entry)


@asynccontextmanager
async def to_rabbitmq(url: str) -> AsyncGenerator[PutBack]:
    """Append to the queue."""
    from reactive_aio.connectors import rabbitmq

    async with rabbitmq.connect(url) as connection:
        send = rabbitmq.sink(connection, EVENTS)
        yield lambda fields: send([message_of(fields)])


# -- NATS ------------------------------------------------------------------------------------------
@asynccontextmanager
async def from_nats(reading: Reading) -> AsyncGenerator[Source]:
    """A subject of a stream that exists, as a durable consumer."""
    from reactive_aio.connectors import nats

    def entry(message: Any) -> Entry:
        headers: dict[str, str] = message.headers or {}
        # One put back with the id of the first message would be dropped, as the same.
        own = {name: headers[name] for name in headers if not name.startswith("Nats-")}
        return entry_of(message.data, own, f"{EVENTS}-{message.metadata.sequence.stream}")

    async with nats.connect(reading.url) as client:
        options: dict[str, Any] = {"limit": reading.limit, "count": reading.count, "retry": AGAIN}
        messages = nats.source(client, EVENTS, group=reading.group, **options)
        yield Source(f"the subject {EVENTS} as {reading.group}", messages, entry)


@asynccontextmanager
async def to_nats(url: str) -> AsyncGenerator[PutBack]:
    """Publish to the subject."""
    from reactive_aio.connectors import nats

    async with nats.connect(url) as client:
        send = nats.sink(client, EVENTS)
        yield lambda fields: send([message_of(fields)])


# -- MQTT ------------------------------------------------------------------------------------------
@asynccontextmanager
async def from_mqtt(reading: Reading) -> AsyncGenerator[Source]:
    """A topic, as one member of a group; the broker keeps a session for each host."""
    from reactive_aio.connectors import mqtt

    def entry(message: Any) -> Entry:
        return entry_of(message.payload, dict(getattr(message.properties, "UserProperty", ())))

    session = f"{reading.group}-{socket.gethostname()}"
    async with mqtt.connect(reading.url, name=session, limit=reading.limit) as client:
        options: dict[str, Any] = {"limit": reading.limit, "retry": AGAIN}
        messages = mqtt.source(client, EVENTS, group=reading.group, **options)
        yield Source(f"the topic {EVENTS} as {session} of {reading.group}", messages, entry)


@asynccontextmanager
async def to_mqtt(url: str) -> AsyncGenerator[PutBack]:
    """Publish to the topic."""
    from reactive_aio.connectors import mqtt

    async with mqtt.connect(url, name=f"requeue-{uuid4().hex}", session=1) as client:
        send = mqtt.sink(client, EVENTS)
        yield lambda fields: send([message_of(fields)])


# -- all of them -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Broker:
    """A kind of broker: what reads from it, and what puts back."""

    name: str
    error: str
    reading: Callable[[Reading], AbstractAsyncContextManager[Source]]
    putting_back: Callable[[str], AbstractAsyncContextManager[PutBack]]

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What the client raises if the broker is not there, or refuses something."""
        module, _, error = self.error.rpartition(".")
        return (getattr(import_module(module), error), OSError)


REDIS: Final = Broker("Redis", "redis.exceptions.RedisError", from_redis, to_redis)
KAFKA: Final = Broker("Kafka", "aiokafka.errors.KafkaError", from_kafka, to_kafka)
RABBITMQ: Final = Broker("RabbitMQ", "aiormq.exceptions.AMQPError", from_rabbitmq, to_rabbitmq)
NATS: Final = Broker("NATS", "nats.errors.Error", from_nats, to_nats)
MQTT: Final = Broker("MQTT", "aiomqtt.MqttError", from_mqtt, to_mqtt)
SCHEMES: Final = {
    "redis": REDIS, "rediss": REDIS, "unix": REDIS, "kafka": KAFKA, "amqp": RABBITMQ,
    "amqps": RABBITMQ, "nats": NATS, "tls": NATS, "mqtt": MQTT, "mqtts": MQTT,
}  # fmt: skip


def broker_of(url: str) -> Broker:
    """The kind of broker at *url*."""
    scheme, mark, _ = url.partition("://")
    if not mark or scheme not in SCHEMES:
        raise ValueError(f"it begins with the scheme of a broker: {', '.join(SCHEMES)}")
    return SCHEMES[scheme]
