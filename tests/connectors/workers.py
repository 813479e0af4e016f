"""One source of each broker, as its users write it; and a program that reads it until it is killed.

    python -m tests.connectors.workers kafka kafka://127.0.0.1:9092 numbers

writes each number when its work is done, before it is acknowledged.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from aiokafka.consumer import group_coordinator
from aiokafka.consumer.group_coordinator import CoordinatorGroupRebalance

from reactive_aio.connectors import kafka, mqtt, nats, rabbitmq, redis_streams
from reactive_aio.delivery import DeliveryFlow

Opened = AbstractAsyncContextManager[DeliveryFlow[int]]
GROUP: Final = "g"
SECONDS: Final = 0.003  # what the work on a number takes


@asynccontextmanager
async def of_redis(url: str, where: str, name: str) -> AsyncGenerator[DeliveryFlow[int]]:
    async with redis_streams.connect(url) as redis:
        entries = redis_streams.source(
            redis, where, group=GROUP, name=name, limit=20, count=10, idle=0.5
        )
        yield entries.map(lambda entry: int(entry.fields[b"n"]))


class _PatientLeader(CoordinatorGroupRebalance):  # type: ignore[misc]  # it has no types
    """The mock cluster refuses a member that asks for its partitions after the leader has."""

    async def _on_join_leader(self, response: Any) -> Any:
        await asyncio.sleep(0.3)
        join: Any = getattr(super(), "_on_join_leader")  # noqa: B009
        return await join(response)


@asynccontextmanager
async def of_kafka(url: str, where: str, name: str) -> AsyncGenerator[DeliveryFlow[int]]:
    group_coordinator.CoordinatorGroupRebalance = _PatientLeader
    # A group of the mock cluster begins with a wait of three seconds.
    quick = {"session_timeout_ms": 4000, "heartbeat_interval_ms": 100}
    async with kafka.connect(url, group=GROUP, client_id=name, **quick) as consumer:
        records = kafka.source(consumer, where, limit=50, count=20, within=0.1)
        yield records.map(lambda record: int(record.value))


@asynccontextmanager
async def of_rabbit(url: str, where: str, name: str) -> AsyncGenerator[DeliveryFlow[int]]:
    async with rabbitmq.connect(url) as connection:
        messages = rabbitmq.source(connection, where, limit=20)
        yield messages.map(lambda message: int(message.body))


@asynccontextmanager
async def of_nats(url: str, where: str, name: str) -> AsyncGenerator[DeliveryFlow[int]]:
    async with nats.connect(url) as client:
        messages = nats.source(client, where, group=GROUP, limit=20, count=10, ack_wait=1)
        yield messages.map(lambda message: int(message.data))


@asynccontextmanager
async def of_mqtt(url: str, where: str, name: str) -> AsyncGenerator[DeliveryFlow[int]]:
    session = session_of(where, name)
    async with mqtt.connect(url, name=session, limit=20) as client:
        messages = mqtt.source(client, where, group=GROUP, limit=20)
        yield messages.map(lambda message: int(bytes(message.payload)))


def session_of(where: str, name: str) -> str:
    """The one that joins takes the place of the one that was killed: its session is kept."""
    return f"{where} killed" if name == "joins" else f"{where} {name}"


OPENED: Final[dict[str, Callable[[str, str, str], Opened]]] = {
    "redis": of_redis,
    "kafka": of_kafka,
    "rabbit": of_rabbit,
    "nats": of_nats,
    "mqtt": of_mqtt,
}


async def work_on(number: int) -> None:
    await asyncio.sleep(SECONDS)


async def main(broker: str, url: str, where: str) -> None:
    """Print what is done, until the process is killed."""

    async def write(number: int) -> None:
        await work_on(number)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()

    async with OPENED[broker](url, where, "killed") as numbers:
        await numbers.ack_after(write).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
