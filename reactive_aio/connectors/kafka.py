"""Kafka: the records of topics, whose offsets are committed when the work on them is done; a sink.

::

    async with kafka.connect("kafka://127.0.0.1:9092", group="billing") as consumer:
        orders = kafka.source(consumer, "orders", on_dead_letter=set_aside)
        await orders.ack_after(store, concurrency=32, key=lambda record: record.key).run()

The extra ``kafka`` is needed (aiokafka).
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from sys import modules
from typing import Any, Final, Protocol, TypeAlias

import anyio

from .._shared.foreign_options import explain_foreign_options
from ..delivery import DeliveryFlow, Outage, log_deliveries
from ..errors import MissingExtra
from ..retry import RetryPolicy
from ..stage import Duration, from_async
from .common import (
    ATTEMPTS,
    RECONNECT,
    Message,
    Send,
    ack_timeout,
    awaits_messages,
    closing,
    end_tasks,
    list_length,
    outage_of,
    raise_failed,
    require_client,
    require_list,
    require_name,
    require_open,
    require_scheme,
    with_dead_letters,
)

try:
    from aiokafka import (
        AIOKafkaConsumer,
        AIOKafkaProducer,
        ConsumerRebalanceListener,
        TopicPartition,
    )
    from aiokafka.errors import (
        CommitFailedError,
        IllegalStateError,
        KafkaConnectionError,
        KafkaError,
        KafkaTimeoutError,
        UnknownTopicOrPartitionError,
    )
except ModuleNotFoundError as _error:
    if (_error.name or "").partition(".")[0] != "aiokafka":
        raise
    raise MissingExtra("connectors.kafka", "kafka") from _error

__all__ = ("connect", "producer", "sink", "source")

WAIT: Final = 1000  # milliseconds for which one call waits for records
SILENCE: Final = 10.0  # seconds without a record, after which it asks whether the topics exist
GONE: Final = "the topic was deleted: create it, and restart the service"

# A TopicPartition and a ConsumerRecord: aiokafka ships no types.
Partition: TypeAlias = Any
Record: TypeAlias = Any


def is_lost(error: BaseException) -> bool:
    """Whether the same call may succeed later.

    aiokafka raises a plain KafkaError when no broker answers a question about topics.
    """
    if not isinstance(error, KafkaError):
        return isinstance(error, OSError)
    if isinstance(error, UnknownTopicOrPartitionError):  # which it calls retriable
        return False
    return bool(error.retriable) or type(error) in (KafkaError, KafkaTimeoutError)


class Consumer(Protocol):
    """What is used of an `AIOKafkaConsumer` that was started with ``enable_auto_commit=False``."""

    async def getmany(
        self, *partitions: Partition, timeout_ms: int = 0, max_records: int | None = None
    ) -> Mapping[Partition, list[Record]]: ...

    async def commit(self, offsets: dict[Partition, int] | None = None) -> None: ...

    def assignment(self) -> set[Partition]: ...

    def subscribe(self, topics: Sequence[str] = (), *, listener: Any = None) -> None: ...

    async def topics(self) -> set[str]: ...


_CLOSED: Final = 6.0
"""Seconds in which a consumer is closed. One that is joining a group waits for that first: brokers
let the first member of a group wait for others, three seconds by default."""


@asynccontextmanager
async def connect(url: str, *, group: str, **options: Any) -> AsyncGenerator[Any]:
    """A started `AIOKafkaConsumer` of *group*, which reads from the first record on."""
    require_scheme("kafka.connect", url, "kafka")
    settings: dict[str, Any] = {"group_id": group, "enable_auto_commit": False}
    settings["auto_offset_reset"] = "earliest"
    settings["bootstrap_servers"] = url.removeprefix("kafka://").rstrip("/")
    consumer: Any = AIOKafkaConsumer(**(settings | options))
    async with closing(consumer.stop, partial(_cut_consumer, consumer), within=_CLOSED):
        await consumer.start()
        yield consumer


@asynccontextmanager
async def producer(url: str, **options: Any) -> AsyncGenerator[Any]:
    """A started `AIOKafkaProducer`, which waits for all replicas, and repeats without doubling."""
    require_scheme("kafka.producer", url, "kafka")
    settings: dict[str, Any] = {"acks": "all", "enable_idempotence": True}
    settings["bootstrap_servers"] = url.removeprefix("kafka://").rstrip("/")
    made: Any = AIOKafkaProducer(**(settings | options))
    async with closing(made.stop, partial(_cut_producer, made)):
        await made.start()
        yield made


async def _cut_consumer(consumer: Any) -> None:
    """End what `stop` leaves of a consumer when it does not come to its end."""
    coordinator, fetcher = consumer._coordinator, consumer._fetcher
    names = ("_coordination_task", "_heartbeat_task", "_commit_refresh_task")
    tasks = [getattr(coordinator, name, None) for name in names]  # without a group there are none
    if fetcher is not None:
        tasks += [fetcher._fetch_task, *fetcher._pending_tasks]
    await end_tasks(*tasks)
    await consumer._client.close()


async def _cut_producer(producer: Any) -> None:
    """End what `stop` leaves of a producer when it does not come to its end.

    It waits for all that was to be sent, in a task that ends when this has failed.
    """
    await end_tasks(producer._sender.sender_task)
    producer._message_accumulator.fail_all(KafkaConnectionError("the producer was cut off"))
    await producer.client.close()


def source(
    consumer: Consumer,
    *topics: str,
    limit: int = 1000,
    count: int = 500,
    every: int = 500,
    within: Duration = 1.0,
    retry: RetryPolicy | int = RECONNECT,
    attempts: RetryPolicy | int = ATTEMPTS,
    on_dead_letter: Callable[[Record, Exception], object] | None = None,
) -> DeliveryFlow[Record]:
    """The records of *topics*, or of those that *consumer* has subscribed to.

    Work may end in any order: the offset of a partition is committed up to where all is done, after
    *every* records or *within* a time. A record that fails holds back its partition, so give
    *on_dead_letter*, which is called after the last of *attempts*. Positions of a partition that
    was revoked are dropped, also when it comes back: a commit never moves an offset backwards. Let
    the work on *limit* records take less than ``max_poll_interval_ms``, 5 minutes.

    Demand: passed through, while fewer than *limit* records are held.
    Completes: never; a drain ends it.
    Fails: when a commit fails that is no loss of a partition; when Kafka cannot be reached for
        longer than *retry* allows; when a topic is deleted.
    Cancels: the call that waits for records; what is done is committed.
    Holds: *limit* records, with those that wait for one before them, and a list of *count*, which
        is no longer than *limit*.
    Rules: 1.1, 1.7
    """
    require_client("kafka.source", "an AIOKafkaConsumer", consumer, "getmany", "commit")
    _require_started("kafka.source", consumer)
    for topic in topics:
        require_name("kafka.source", "a topic", topic)
    outage = outage_of("Kafka", retry, is_lost)
    reader = _Reader(consumer, topics, list_length("kafka.source", count, limit), outage)
    lists = from_async(reader.lists, name=f"kafka({', '.join(topics) or 'subscribed'})")
    flow = log_deliveries(
        lists.concat_map(lambda each: each),
        reader.commit,
        position=lambda record: record.offset,
        partition=lambda record: TopicPartition(record.topic, record.partition),
        every=every,
        within=within,
        limit=limit,
        ack_timeout=ack_timeout(retry),
    )
    return with_dead_letters(flow, attempts, on_dead_letter)


def sink(producer: Any, topic: str) -> Send[Message]:
    """A function that sends a list of messages, and returns when Kafka has all of them.

    Messages of one key keep their order. The producer makes attempts of its own, for as long as its
    ``request_timeout_ms`` says. A message whose value is None is a tombstone.
    """

    what = "an AIOKafkaProducer"
    require_client("kafka.sink", what, producer, "send", "flush", made_by="producer")
    _require_started("kafka.sink", producer)
    require_name("kafka.sink", "topic", topic)

    async def send(batch: Sequence[Message]) -> None:
        require_list("kafka.sink", Message, "Message", batch)
        results: list[object] = []
        for message in batch:
            headers = [(name, text.encode()) for name, text in message.headers.items()]
            to = message.to or topic
            results.append(
                await _result(producer.send(to, message.value, message.key, headers=headers))
            )
        raise_failed([await _result(each) for each in results])

    return send


def _require_started(call: str, client: Any) -> None:
    """It is started and not stopped, for which aiokafka has no public question."""
    if isinstance(client, AIOKafkaConsumer):
        require_open(call, is_new=client._fetcher is None, is_closed=client._closed is True)
    if isinstance(client, AIOKafkaProducer):
        is_new, is_closed = client._sender.sender_task is None, client._closed is True
        require_open(call, is_new=is_new, is_closed=is_closed, made_by="producer")


async def _result(awaited: Any) -> object:
    """The result of an awaitable, or its error; an error, unchanged."""
    if isinstance(awaited, Exception):
        return awaited
    try:
        return await awaited
    except Exception as error:
        return error


@dataclass(slots=True, eq=False)
class _Reader:
    """Reads and commits. Where *topics* are given, it is told of each assignment."""

    consumer: Consumer
    topics: Sequence[str]
    count: int
    outage: Outage
    _assigned: set[TopicPartition] = field(default_factory=set[TopicPartition])
    """Partitions that were assigned, and not read since then."""
    _next: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    _least: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """The offset from which on positions are committed."""
    _delayed: set[TopicPartition] = field(default_factory=set[TopicPartition])
    """Partitions without a commit since there was a gap."""

    @awaits_messages
    async def lists(self) -> AsyncGenerator[list[Record]]:
        consumer, silent_since = self.consumer, anyio.current_time()
        if self.topics:
            consumer.subscribe(self.topics, listener=_Listener(self._assigned))
        while True:
            found = await consumer.getmany(timeout_ms=WAIT, max_records=self.count)
            for partition, records in found.items():
                self._note(partition, records[0].offset)
                self._next[partition] = records[-1].offset + 1
            yield [record for records in found.values() for record in records]
            if found:
                silent_since = anyio.current_time()
            elif anyio.current_time() - silent_since > SILENCE:
                silent_since = anyio.current_time()
                await self._require_topics()

    def _note(self, partition: TopicPartition, first: int) -> None:
        """Positions before *first* are dropped where another consumer may have committed others.

        Without a listener, a gap may be one of the log, or what another consumer has read. It is
        taken for the latter: that delays a commit until the records after the gap are done.
        """
        if partition in self._assigned or partition not in self._next:
            self._assigned.discard(partition)
            self._least[partition] = first
            self._delayed.discard(partition)
        elif not self.topics and first != self._next[partition] and partition not in self._delayed:
            self._least[partition] = first
            self._delayed.add(partition)

    async def commit(self, last: dict[TopicPartition, int]) -> None:
        try:
            await self.outage.call(self._commit, last)
        except (CommitFailedError, IllegalStateError):
            return  # the partitions move to another consumer, which does the work again

    async def _commit(self, last: dict[TopicPartition, int]) -> None:
        """Commit what may be committed now: partitions may have moved since the last attempt."""
        mine = self.consumer.assignment() - self._assigned
        following = {
            partition: offset + 1
            for partition, offset in last.items()
            if partition in mine and offset >= self._least[partition]
        }
        if not following:
            return
        await self.consumer.commit(following)
        for partition, offset in following.items():
            self._least[partition] = max(offset, self._least[partition])
        self._delayed -= following.keys()

    async def _require_topics(self) -> None:
        """A topic that is gone is silent for ever: its records were read, and none will come."""
        gone = {each.topic for each in self._next} - await self.outage.call(self.consumer.topics)
        if gone:
            error = UnknownTopicOrPartitionError(f"{', '.join(sorted(gone))}: no such topic")
            error.add_note(GONE)
            raise error


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    """Notes which partitions were assigned, or revoked, and not read since then."""

    def __init__(self, assigned: set[TopicPartition]) -> None:
        self._assigned = assigned

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._assigned.update(revoked)

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._assigned.update(assigned)


explain_foreign_options(modules[__name__], __all__)
