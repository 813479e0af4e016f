"""Kafka, with a stand-in for the consumer of aiokafka: its documented interface, and no server."""

import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaConnectionError
from recipes.kafka_log import Record, records

import reactive_aio as r

pytestmark = pytest.mark.virtual_time

ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


@dataclass(frozen=True)
class Message:
    """The part of a `ConsumerRecord` that is used."""

    topic: str
    partition: int
    offset: int


class StandIn:
    """A consumer of two partitions of *length* records each, from the *committed* offsets on."""

    def __init__(self, length: int, committed: Mapping[TopicPartition, int] = {}) -> None:
        self.committed = {ONE: 0, OTHER: 0, **committed}
        self.commits: list[dict[TopicPartition, int]] = []
        self.error: Exception | None = None
        self._assigned = {ONE, OTHER}
        self._position = dict(self.committed)
        self._length = length

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[Record]]:
        assert timeout_ms > 0, "without a timeout it would be called all the time"
        room = max_records or 1000
        found: dict[TopicPartition, list[Record]] = {}
        for each in sorted(self._assigned):
            first = self._position[each]
            last = min(first + room, self._length)
            if first < last:
                found[each] = [Message(each.topic, each.partition, n) for n in range(first, last)]
                self._position[each] = last
                room -= last - first
        if not found:
            await asyncio.sleep(timeout_ms / 1000)
        return found

    async def commit(self, offsets: dict[TopicPartition, int] | None = None) -> None:
        assert offsets, "without offsets, those of records in work would be committed"
        await asyncio.sleep(0.01)
        if self.error is not None:
            raise self.error
        if not offsets.keys() <= self._assigned:
            raise IllegalStateError(f"not assigned: {offsets.keys() - self._assigned}")
        self.commits.append(offsets)
        self.committed |= offsets

    def assignment(self) -> set[TopicPartition]:
        return set(self._assigned)

    def revoke(self, partition: TopicPartition) -> None:
        self._assigned.discard(partition)

    def assign(self, partition: TopicPartition) -> None:
        """Read on from what was committed, by whomever."""
        self._assigned.add(partition)
        self._position[partition] = self.committed[partition]


@pytest.mark.parametrize("name", ["getmany", "commit", "assignment"])
def test_the_stand_in_has_the_interface_of_aiokafka(name: str) -> None:
    real: Any = AIOKafkaConsumer
    theirs = inspect.signature(getattr(real, name)).parameters
    ours = inspect.signature(getattr(StandIn, name)).parameters
    assert [(each.name, each.kind, each.default) for each in theirs.values()] == [
        (each.name, each.kind, each.default) for each in ours.values()
    ]
    assert inspect.iscoroutinefunction(getattr(real, name)) == inspect.iscoroutinefunction(
        getattr(StandIn, name)
    )


async def test_the_offset_that_follows_what_is_done_is_committed() -> None:
    consumer, done = StandIn(length=700), list[tuple[int, int]]()

    def write(record: Record) -> None:
        done.append((record.partition, record.offset))

    async with records(consumer).ack_after(write).running() as run:
        await asyncio.sleep(10)
        report = await run.drain()
    assert report.is_complete
    assert sorted(done) == [(partition, n) for partition in range(2) for n in range(700)]
    assert consumer.committed == {ONE: 700, OTHER: 700}


async def test_a_record_in_work_holds_back_its_partition_alone() -> None:
    consumer, release = StandIn(length=5), asyncio.Event()

    async def work(record: Record) -> None:
        if (record.partition, record.offset) == (0, 2):
            await release.wait()

    async with records(consumer).ack_after(work, concurrency=20).running() as run:
        await asyncio.sleep(10)
        assert consumer.committed == {ONE: 2, OTHER: 5}
        release.set()
        await run.drain()
    assert consumer.committed == {ONE: 5, OTHER: 5}


async def test_the_next_run_continues_with_what_was_not_committed() -> None:
    consumer, seen = StandIn(length=5, committed={ONE: 3}), list[int]()
    flow = records(consumer).ack_after(lambda record: seen.append(record.offset))
    async with flow.running() as run:
        await asyncio.sleep(5)
        await run.drain()
    assert sorted(seen) == [0, 1, 2, 3, 3, 4, 4]


async def test_a_record_that_always_fails_is_set_aside_and_passed() -> None:
    consumer, aside = StandIn(length=5), list[tuple[int, int]]()

    def write(record: Record) -> None:
        if record.offset == 1:
            raise ValueError("never")

    def set_aside(record: Record, error: Exception) -> None:
        aside.append((record.partition, record.offset))

    flow = records(consumer).nack_on_error(r.RetryPolicy(attempts=3), dead_letter=set_aside)
    async with flow.ack_after(write).running() as run:
        await asyncio.sleep(5)
        await run.drain()
    assert sorted(aside) == [(0, 1), (1, 1)]
    assert consumer.committed == {ONE: 5, OTHER: 5}


async def test_a_partition_that_moves_is_not_committed() -> None:
    consumer = StandIn(length=5)

    async def work(record: Record) -> None:
        await asyncio.sleep(3)
        consumer.revoke(OTHER)

    async with records(consumer).ack_after(work, concurrency=20).running() as run:
        await asyncio.sleep(10)
        await run.drain()
    assert consumer.committed == {ONE: 5, OTHER: 0}


async def test_a_commit_during_a_rebalance_is_left_to_the_next_consumer() -> None:
    consumer = StandIn(length=5)
    consumer.error = CommitFailedError()
    async with records(consumer).ack_after(lambda record: None).running() as run:
        await asyncio.sleep(5)
        assert not run.is_done
        await run.drain()
    assert consumer.commits == []


async def test_a_commit_that_fails_otherwise_fails_the_flow() -> None:
    consumer = StandIn(length=5)
    consumer.error = KafkaConnectionError("no broker")
    with pytest.raises(KafkaConnectionError, match="no broker"):
        await records(consumer).ack_after(lambda record: None).run()


async def test_a_partition_that_comes_back_is_never_committed_backwards() -> None:
    consumer, gate, worked = StandIn(length=10), asyncio.Event(), list[int]()

    async def work(record: Record) -> None:
        worked.append(record.offset)
        if record.offset == 0 and record.partition == 0:
            await gate.wait()

    async with records(consumer).ack_after(work, concurrency=50).running() as run:
        await asyncio.sleep(2)
        consumer.revoke(ONE)
        consumer.committed[ONE] = 100
        consumer._length = 200
        consumer.assign(ONE)
        await asyncio.sleep(2)
        gate.set()
        await run.drain()
    ours = [each[ONE] for each in consumer.commits if ONE in each]
    assert ours == [200]
