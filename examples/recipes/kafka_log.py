# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio", "aiokafka>=0.12"]
# ///
"""Kafka: the records of topics, whose offsets are committed when the work on them is done.

    python examples/recipes/kafka_log.py --servers 127.0.0.1:9092 --group demo orders payments

Work may end in any order: the offset of a partition is committed up to where all is done. A record
that fails is tried again, and then set aside, since it would hold back its partition. Partitions
that move to another consumer are not committed here any more, also if they come back; what was not
committed is worked on there again. Serve until Ctrl-C.

This recipe is tested against the documented interface of aiokafka, and not with a server.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, Protocol

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError

import reactive_aio as rx
from reactive_aio.delivery import DeliveryFlow, log_deliveries

WAIT: Final = 1000  # milliseconds for which one call waits for records

Record = Any  # a ConsumerRecord; aiokafka ships no types


class Consumer(Protocol):
    """What is used of an `AIOKafkaConsumer` that was started with ``enable_auto_commit=False``."""

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None
    ) -> Mapping[TopicPartition, list[Record]]:
        """Records, by partition; none if there are none within *timeout_ms*."""
        ...

    async def commit(self, offsets: dict[TopicPartition, int] | None = None) -> None:
        """Commit the offsets of the records that follow."""
        ...

    def assignment(self) -> set[TopicPartition]:
        """The partitions that this consumer reads now."""
        ...


class Generations:
    """Counts how often the records of a partition do not follow the one before.

    A partition that comes back is read from the offset that another consumer has committed. Offsets
    that a compacted log leaves out count as well: those before them are committed with one after.
    """

    def __init__(self) -> None:
        self._last: dict[TopicPartition, tuple[int, int]] = {}

    def of(self, record: Record) -> int:
        """The generation in which *record* was read."""
        partition = TopicPartition(record.topic, record.partition)
        offset: int = record.offset
        generation, last = self._last.get(partition, (0, offset - 1))
        generation += offset != last + 1
        self._last[partition] = generation, offset
        return generation


def records(consumer: Consumer, *, count: int = 500, limit: int = 1000) -> DeliveryFlow[Record]:
    """The records of *consumer*; at most *limit* are held, with those that wait for a commit."""

    async def lists() -> AsyncGenerator[list[Record]]:
        while True:
            found = await consumer.getmany(timeout_ms=WAIT, max_records=count)
            yield [record for partition in found.values() for record in partition]

    async def commit(last: dict[TopicPartition, int]) -> None:
        mine = consumer.assignment()
        following = {each: offset + 1 for each, offset in last.items() if each in mine}
        try:
            if following:
                await consumer.commit(following)
        except (CommitFailedError, IllegalStateError):
            pass  # the partitions move to another consumer, which does the work again

    return log_deliveries(
        rx.from_aiter(lists).flat_map(lambda each: each),
        commit,
        position=lambda record: record.offset,
        partition=lambda record: TopicPartition(record.topic, record.partition),
        generation=Generations().of,
        every=count,
        within=1.0,
        limit=limit,
    )


def set_aside(record: Record, error: Exception) -> None:
    """Keep a record that always fails: replace it by what writes it to a topic of its own."""
    where = f"{record.topic}/{record.partition}/{record.offset}"
    print(f"set aside: {where}: {error!r}", file=sys.stderr)


async def main(options: argparse.Namespace) -> int:
    """Print records until SIGTERM or Ctrl-C."""
    consumer: Any = AIOKafkaConsumer(
        *options.topics,
        bootstrap_servers=options.servers,
        group_id=options.group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        flow = records(consumer)
        flow = flow.nack_on_error(rx.RetryPolicy(attempts=5, delay=0.2), dead_letter=set_aside)
        printed = flow.ack_after(lambda record: print(record.topic, record.value, flush=True))
        return await rx.run_until_signal(printed, on_drained=print)
    finally:
        await consumer.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("topics", nargs="+", help="topics that exist")
    parser.add_argument("--servers", default="127.0.0.1:9092", help="bootstrap servers")
    parser.add_argument("--group", default="recipe", help="the consumer group")
    options = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(options)))
    except (KafkaError, OSError) as error:
        sys.exit(f"{options.servers}: {error!r}")
