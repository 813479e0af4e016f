"""What do the connectors cost for a message, compared with a loop over the client?

Both read with the same client and the same sizes, and work on at most 64 messages at a time, which
includes a call of a millisecond. Both acknowledge what is done: Redis with one call for many, Kafka
by committing offsets. The loop works on one list after another.
"""

import asyncio
import atexit
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from functools import cache
from typing import Any, Final

from ..runner.question import Question

try:
    from aiokafka import TopicPartition
    from confluent_kafka import Producer

    from reactive_aio.connectors import kafka, redis_streams
    from tests.harness.servers import KafkaServer, RedisServer, kafka_running, redis_running
except ModuleNotFoundError as error:
    raise ImportError(f"{error}; the extras `redis` and `kafka` are needed") from error

MESSAGES: Final = 50_000
COUNT: Final = 500
LIMIT: Final = 1000
CONCURRENCY: Final = 64
CONTENT: Final = b'{"id": 12345, "customer": "a name", "items": [{"sku": "x-1", "count": 3}]}'
PARTITIONS: Final = 4


WORK: Final[dict[str, Any]] = {"concurrency": CONCURRENCY, "ordered": False}


@cache
def servers() -> tuple[RedisServer, KafkaServer]:
    """Both servers, which end with this process."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(redis_running()), stack.enter_context(kafka_running())


class Work:
    """What is done with each message, with a call of another service that takes a millisecond."""

    def __init__(self) -> None:
        self.done = 0
        self._places = asyncio.Semaphore(CONCURRENCY)

    async def call(self, message: Any) -> None:
        # What a service does with a message, at the least: it reads, asks, and writes.
        order = json.loads(CONTENT)
        await asyncio.sleep(0.001)
        order["digest"] = hashlib.sha256(json.dumps(order).encode()).hexdigest()
        json.dumps(order)
        self.done += 1

    async def by_hand(self, messages: list[Any]) -> None:
        await asyncio.gather(*map(self._in_its_place, messages))

    async def _in_its_place(self, message: object) -> None:
        async with self._places:
            await self.call(message)


# -- Redis -----------------------------------------------------------------------------------------
@asynccontextmanager
async def filled_stream(count: int) -> AsyncGenerator[Any]:
    async with redis_streams.connect(servers()[0].database()) as redis:
        send = redis_streams.sink(redis, "events")
        for first in range(0, count, 1000):
            await send([{"content": CONTENT} for _ in range(first, min(first + 1000, count))])
        await redis.xgroup_create("events", "g", "0")
        yield redis
        summary: Any = await redis.xpending("events", "g")
        if summary["pending"] > LIMIT:
            raise RuntimeError(f"{summary} are not acknowledged")
        await redis.delete("events")


async def redis_by_hand(redis: Any, work: Work, count: int) -> None:
    while work.done < count:
        [[_, entries]] = await redis.xreadgroup("g", "hand", {"events": ">"}, COUNT, 2000)
        await work.by_hand(entries)
        await redis.xack("events", "g", *(id for id, _ in entries))


async def redis_by_flow(redis: Any, work: Work, count: int) -> None:
    flow = redis_streams.source(redis, "events", group="g", count=COUNT, limit=LIMIT)
    await flow.ack_after(work.call, **WORK).take(count).run()


# -- Kafka -----------------------------------------------------------------------------------------
topics = iter(f"events-{n}" for n in range(10**6))


@asynccontextmanager
async def filled_topic(count: int) -> AsyncGenerator[Any]:
    url, topic = servers()[1].url, next(topics)
    producer = Producer({"bootstrap.servers": url.removeprefix("kafka://")})
    for n in range(count):
        producer.produce(topic, CONTENT, partition=n % PARTITIONS)
        if n % 10_000 == 0:
            producer.flush()
    producer.flush()
    async with kafka.connect(url, group=topic) as consumer:
        consumer.assign([TopicPartition(topic, n) for n in range(PARTITIONS)])
        yield consumer


async def kafka_by_hand(consumer: Any, work: Work, count: int) -> None:
    while work.done < count:
        found = await consumer.getmany(timeout_ms=1000, max_records=COUNT)
        await work.by_hand([record for records in found.values() for record in records])
        await consumer.commit({each: found[each][-1].offset + 1 for each in found})


async def kafka_by_flow(consumer: Any, work: Work, count: int) -> None:
    flow = kafka.source(consumer, count=COUNT, every=COUNT, limit=LIMIT)
    await flow.ack_after(work.call, **WORK).take(count).run()


def question_of(
    broker: str,
    filled: Callable[[int], Any],
    by_hand: Callable[[Any, Work, int], Awaitable[None]],
    by_flow: Callable[[Any, Work, int], Awaitable[None]],
) -> Question:
    """The question about one broker."""
    text = f"Messages of {broker}, acknowledged"
    question = Question(text, MESSAGES, unit="µs", rounds=5, counted=0)

    async def measured(read: Callable[[Any, Work, int], Awaitable[None]], count: int) -> float:
        async with filled(count) as client:
            work, began = Work(), time.perf_counter()
            await read(client, work, count)
            return (time.perf_counter() - began) / count * 1e6

    @question.handwritten(f"a loop over the client of {broker}")
    async def loop(count: int) -> float:
        return await measured(by_hand, count)

    # At least 0.85 of the throughput.
    @question.ours(f"`connectors`: {broker}", goal=1.18)
    async def source(count: int) -> float:
        return await measured(by_flow, count)

    return question


of_redis = question_of("Redis Streams", filled_stream, redis_by_hand, redis_by_flow)
of_kafka = question_of("Kafka", filled_topic, kafka_by_hand, kafka_by_flow)
