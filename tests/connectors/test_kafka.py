"""Kafka: with the mock cluster of its C client, and, for what that cannot show, with a stand-in."""

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiokafka.client
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    IllegalStateError,
    KafkaConnectionError,
    KafkaError,
    UnknownTopicOrPartitionError,
)

import reactive_aio as rx
from reactive_aio.connectors import Message, kafka
from reactive_aio.connectors.kafka import Record
from reactive_aio.delivery import BatchFailed, DeliveryFlow
from tests.connectors.workers import of_kafka
from tests.harness.outages import Proxy, proxy_of
from tests.harness.servers import KafkaServer
from tests.recipes.waiting import until

ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


@dataclass(frozen=True)
class Found:
    """The part of a `ConsumerRecord` that is used."""

    topic: str
    partition: int
    offset: int


class StandIn:
    """A consumer of two partitions of *length* records each, from the *committed* offsets on."""

    def __init__(self, length: int, committed: Mapping[TopicPartition, int] = {}) -> None:
        self.committed = {ONE: 0, OTHER: 0, **committed}
        self.commits: list[dict[TopicPartition, int]] = []
        self.known = {"t"}
        self.error: Exception | None = None
        self.unreachable: Exception | None = None
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
                found[each] = [Found(each.topic, each.partition, n) for n in range(first, last)]
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

    def subscribe(self, topics: Sequence[str] = (), *, listener: Any = None) -> None:
        raise AssertionError("it has subscribed")

    async def topics(self) -> set[str]:
        if self.unreachable is not None:
            raise self.unreachable
        return self.known

    def come_back(self, partition: TopicPartition, offset: int, length: int) -> None:
        """Another consumer has committed *offset* meanwhile."""
        self.committed[partition] = self._position[partition] = offset
        self._assigned.add(partition)
        self._length = length

    def revoke(self, partition: TopicPartition) -> None:
        self._assigned.discard(partition)


def records(consumer: Any, **options: Any) -> DeliveryFlow[Record]:
    return kafka.source(consumer, **options)


@pytest.mark.parametrize("name", ["getmany", "commit", "assignment", "topics"])
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


@pytest.mark.virtual_time
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


@pytest.mark.virtual_time
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


@pytest.mark.virtual_time
async def test_the_next_run_continues_with_what_was_not_committed() -> None:
    consumer, seen = StandIn(length=5, committed={ONE: 3}), list[int]()
    flow = records(consumer).ack_after(lambda record: seen.append(record.offset))
    async with flow.running() as run:
        await asyncio.sleep(5)
        await run.drain()
    assert sorted(seen) == [0, 1, 2, 3, 3, 4, 4]


@pytest.mark.virtual_time
async def test_a_record_that_always_fails_is_set_aside_and_passed() -> None:
    consumer, aside = StandIn(length=5), list[tuple[int, int]]()

    def write(record: Record) -> None:
        if record.offset == 1:
            raise ValueError("never")

    def set_aside(record: Record, error: Exception) -> None:
        aside.append((record.partition, record.offset))

    flow = records(consumer).nack_on_error(rx.RetryPolicy(attempts=3), dead_letter=set_aside)
    async with flow.ack_after(write).running() as run:
        await asyncio.sleep(5)
        await run.drain()
    assert sorted(aside) == [(0, 1), (1, 1)]
    assert consumer.committed == {ONE: 5, OTHER: 5}


@pytest.mark.virtual_time
async def test_a_partition_that_moves_is_not_committed() -> None:
    consumer = StandIn(length=5)

    async def work(record: Record) -> None:
        await asyncio.sleep(3)
        consumer.revoke(OTHER)

    async with records(consumer).ack_after(work, concurrency=20).running() as run:
        await asyncio.sleep(10)
        await run.drain()
    assert consumer.committed == {ONE: 5, OTHER: 0}


@pytest.mark.virtual_time
async def test_a_commit_during_a_rebalance_is_left_to_the_next_consumer() -> None:
    consumer = StandIn(length=5)
    consumer.error = CommitFailedError()
    async with records(consumer).ack_after(lambda record: None).running() as run:
        await asyncio.sleep(5)
        assert not run.is_done
        await run.drain()
    assert consumer.commits == []


@pytest.mark.virtual_time
async def test_a_commit_that_fails_otherwise_fails_the_flow() -> None:
    consumer = StandIn(length=5)
    consumer.error = KafkaConnectionError("no broker")
    again = rx.RetryPolicy(attempts=3, delay=0.1)
    with pytest.raises(KafkaConnectionError, match="no broker") as failed:
        await records(consumer, retry=again).ack_after(lambda record: None).run()
    assert "attempt 3 failed" in str(failed.value.__notes__)


@pytest.mark.virtual_time
async def test_a_partition_that_returns_is_not_committed_backwards() -> None:
    consumer, release = StandIn(length=10), asyncio.Event()

    async def work(record: Record) -> None:
        if (record.partition, record.offset) == (0, 0):
            await release.wait()
        if record.offset >= 100:
            await asyncio.sleep(3)

    async with records(consumer).ack_after(work, concurrency=500).running() as run:
        await asyncio.sleep(2)
        consumer.revoke(ONE)
        consumer.come_back(ONE, offset=100, length=200)
        await asyncio.sleep(2)
        release.set()
        await run.drain()
    offsets = [each[ONE] for each in consumer.commits if ONE in each]
    assert offsets == sorted(offsets)
    assert offsets[0] > 100, "what was done before the partition came back is no position any more"
    assert consumer.committed == {ONE: 200, OTHER: 200}


@pytest.mark.virtual_time
async def test_a_commit_that_is_repeated_after_an_outage_leaves_out_what_returned_meanwhile() -> (
    None
):
    consumer = StandIn(length=10)
    consumer.error = KafkaConnectionError("no broker")
    again = rx.RetryPolicy(attempts=None, delay=1, maximum=1)
    async with records(consumer, retry=again).ack_after(lambda record: None).running() as run:
        await asyncio.sleep(5)
        consumer.revoke(ONE)
        consumer.come_back(ONE, offset=100, length=200)
        await asyncio.sleep(5)
        consumer.error = None
        await asyncio.sleep(5)
        await run.drain()
    assert [each[ONE] for each in consumer.commits if ONE in each] == [200]
    assert consumer.committed == {ONE: 200, OTHER: 200}


class WithGaps(StandIn):
    """Of a log that was compacted: each third record is left."""

    last = 0

    async def getmany(self, *_: Any, **__: Any) -> dict[TopicPartition, list[Record]]:
        await asyncio.sleep(0.1)
        self.last += 3
        return {ONE: [Found("t", 0, self.last)]}


@pytest.mark.virtual_time
async def test_gaps_of_a_log_delay_commits_and_do_not_prevent_them() -> None:
    consumer = WithGaps(length=200)

    async def work(record: Record) -> None:
        await asyncio.sleep(1)

    async with records(consumer).ack_after(work, concurrency=50).running() as run:
        await asyncio.sleep(30)
        offsets = [each[ONE] for each in consumer.commits]
        await run.drain()
    assert offsets == sorted(offsets)
    assert len(offsets) > 8
    assert consumer.committed[ONE] == consumer.last + 1


@pytest.mark.virtual_time
async def test_a_topic_that_is_deleted_fails_the_flow_and_silence_does_not() -> None:
    consumer = StandIn(length=5)
    async with records(consumer).ack_after(lambda record: None).running() as run:
        await asyncio.sleep(3 * kafka.SILENCE)
        assert not run.is_done
        consumer.known.clear()
        with pytest.raises(UnknownTopicOrPartitionError, match="t: no such topic"):
            await run.wait()


@pytest.mark.virtual_time
async def test_a_source_that_is_silent_in_an_outage_goes_on_after_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """aiokafka reads nothing then, and raises no error: it is noticed by the question of topics."""
    consumer = StandIn(length=5)
    done: list[int] = []
    async with records(consumer).ack_after(lambda record: done.append(record.offset)).running():
        await asyncio.sleep(1)
        consumer.unreachable = KafkaError("Unable to get cluster metadata over all known brokers")
        await asyncio.sleep(3 * kafka.SILENCE)
        consumer.unreachable = None
        consumer.come_back(ONE, offset=5, length=6)
        await until(lambda: len(done) >= 11)
        await asyncio.sleep(2 * kafka.SILENCE)
    said = [each.getMessage() for each in caplog.records if each.name == "reactive_aio.delivery"]
    assert [each.split()[:2] for each in said] == [["Kafka", "fails"], ["Kafka", "is"]]


# -- with the mock cluster -------------------------------------------------------------------------
@pytest.fixture
def topic(kafka_server: KafkaServer) -> str:
    return kafka_server.topic()


@pytest.fixture
async def producer(kafka_server: KafkaServer) -> AsyncGenerator[Any]:
    async with kafka.producer(kafka_server.url) as started:
        yield started


async def send(producer: Any, topic: str, *values: str | None) -> None:
    messages = [Message(None if each is None else each.encode(), key=b"k") for each in values]
    await kafka.sink(producer, topic)(messages)


@pytest.mark.slow
async def test_records_are_read_by_a_group_and_committed(
    kafka_server: KafkaServer, producer: Any, topic: str
) -> None:
    numbers = rx.range(300).map(lambda n: Message(str(n).encode(), key=str(n % 7).encode()))
    await numbers.buffer(50).for_each(kafka.sink(producer, topic))
    done: list[int] = []
    async with (
        of_kafka(kafka_server.url, topic, "one") as flow,
        flow.ack_after(done.append).running() as run,
    ):
        await until(lambda: len(done) == 300)
        report = await run.drain()
    assert report.is_complete
    for key in range(7):
        assert [n for n in done if n % 7 == key] == [*range(key, 300, 7)]
    async with (
        of_kafka(kafka_server.url, topic, "next") as flow,
        flow.ack_after(done.append).running() as run,
    ):
        await producer.send_and_wait(topic, b"300")
        await until(lambda: len(done) > 300)
        await run.drain()
    assert done[300:] == [300], "the next one continues after the last commit"


@pytest.mark.slow
async def test_tombstones_and_what_fails_are_handled(
    kafka_server: KafkaServer, producer: Any, topic: str
) -> None:
    await send(producer, topic, "a", None, "b", "bad", None)
    done: list[bytes] = []
    buried: list[tuple[int, str]] = []

    def write(record: Record) -> None:
        if record.value == b"bad":
            raise ValueError("never")
        done.append(record.value)

    def bury(record: Record, error: Exception) -> None:
        buried.append((record.offset, repr(error)))

    async with kafka.connect(kafka_server.url, group="g") as consumer:
        flow = kafka.source(consumer, topic, attempts=2, on_dead_letter=bury)
        flow = flow.filter(lambda record: record.value is not None)
        async with flow.ack_after(write).running() as run:
            await until(lambda: buried and len(done) == 2)
            await run.drain()
        [offset] = [await consumer.committed(each) for each in consumer.assignment()
                    if await consumer.committed(each)]  # fmt: skip
    assert (done, buried, offset) == ([b"a", b"b"], [(3, "ValueError('never')")], 5)


@pytest.mark.slow
async def test_a_sink_says_which_messages_are_refused(producer: Any, topic: str) -> None:
    messages = [Message(b"a"), Message(None), Message(bytes(2_000_000)), Message(b"b")]
    with pytest.raises(BatchFailed) as failed:
        await kafka.sink(producer, topic)(messages)
    assert sorted(failed.value.errors) == [1, 2]


@pytest.fixture
async def proxy(
    kafka_server: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Proxy]:
    """A proxy of the broker, for all connections: the broker tells clients its own port."""
    create: Any = aiokafka.client.create_conn

    async def create_conn(host: str, port: int, **options: Any) -> Any:
        return await create(host, there.port if port == real else port, **options)

    real = urlsplit(kafka_server.url).port
    monkeypatch.setattr(aiokafka.client, "create_conn", create_conn)
    async with proxy_of(kafka_server.url) as there:
        yield there


@pytest.mark.slow
async def test_the_block_of_a_consumer_is_left_while_the_broker_is_away(
    proxy: Proxy, topic: str, expects_error_logs: list[logging.LogRecord]
) -> None:
    """The client cancels what waits to read again, and awaits it: nobody else was cancelled."""
    async with kafka.producer(proxy.url) as producer:
        await send(producer, topic, "a")
    async with kafka.connect(proxy.url, group=topic, retry_backoff_ms=500) as consumer:
        consumer.subscribe([topic])
        assert await consumer.getone()
        await proxy.stop()
        await until(lambda: any("Failed fetch" in each.getMessage() for each in expects_error_logs))
    assert not consumer._client._conns


@pytest.mark.slow
async def test_a_consumer_whose_broker_is_frozen_is_cut_off(
    proxy: Proxy, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "_CLOSED", 0.1)
    async with kafka.connect(proxy.url, group=topic) as consumer:
        consumer.subscribe([topic])
        await until(lambda: consumer._fetcher._in_flight)
        proxy.freeze()
    proxy.thaw()
    await until(lambda: not proxy.open)


@pytest.mark.slow
async def test_a_producer_whose_broker_is_frozen_is_cut_off(proxy: Proxy, topic: str) -> None:
    async with kafka.producer(proxy.url) as made:
        await made.partitions_for(topic)
        proxy.freeze()
        sent = await made.send(topic, b"0")
    with pytest.raises(KafkaConnectionError, match="the producer was cut off"):
        await sent
    proxy.thaw()
    await until(lambda: not proxy.open)
