"""NATS JetStream: messages of a durable consumer, acknowledged when their work is done; and a sink.

::

    async with nats.connect("nats://127.0.0.1:4222") as client:
        orders = nats.source(client, "orders", group="billing", on_dead_letter=keep)
        await orders.ack_after(store).run()

The extra ``nats`` is needed (nats-py). The stream of the subject has to exist.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from sys import modules
from typing import Any, Final
from uuid import uuid4

from .._shared.foreign_options import explain_foreign_options
from .._sources.timers import interval
from ..delivery import Delivery, DeliveryFlow, Outage, Unfinished, deliveries
from ..delivery.crash_marks import CRASHES, SUSPECT, CrashMarks
from ..errors import MissingExtra
from ..retry import RetryPolicy
from ..stage import Duration, from_async, to_seconds
from .common import (
    ATTEMPTS,
    DAY,
    LOG,
    RECONNECT,
    Message,
    Send,
    ack_timeout,
    awaits_messages,
    closing,
    content,
    end_tasks,
    list_length,
    outage_of,
    raise_failed,
    require_client,
    require_list,
    require_name,
    require_open,
    require_scheme,
    send_missing,
    with_dead_letters,
)

try:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.errors import (
        ConnectionClosedError,
        ConnectionReconnectingError,
        MaxPayloadError,
        NoRespondersError,
        NoServersError,
        OutboundBufferLimitError,
        StaleConnectionError,
        TimeoutError as NoAnswer,
    )
    from nats.js import JetStreamContext
    from nats.js.api import ConsumerConfig, KeyValueConfig
    from nats.js.errors import (
        APIError,
        BucketNotFoundError,
        KeyNotFoundError,
        NoStreamResponseError,
        NotFoundError,
        ServiceUnavailableError,
    )
except ModuleNotFoundError as _error:
    if (_error.name or "").partition(".")[0] != "nats":
        raise
    raise MissingExtra("connectors.nats", "nats") from _error

__all__ = ("connect", "sink", "source")

LOST: Final = (
    NoAnswer,
    NoRespondersError,
    NoServersError,
    ConnectionClosedError,
    ConnectionReconnectingError,
    StaleConnectionError,
    OutboundBufferLimitError,
    ServiceUnavailableError,
    OSError,
)
REFUSED: Final = (APIError, NoStreamResponseError, MaxPayloadError, TypeError)
"""What the stream or the client does not take; a stream that is full is lost for a while."""
WAIT: Final = 2.0  # seconds for which one call waits for messages, and then asks for the consumer
CONFIRMED: Final = 5.0  # seconds within which the server has to answer
ATTEMPTED: Final = 4  # errors of the first connection, one of which says why there is none
PINGS: Final = {"ping_interval": 10, "max_outstanding_pings": 2}
"""A firewall may forget a connection, and let new ones pass. So that is noticed within 30 seconds,
long before a flow has failed as `RECONNECT` says."""
AGAIN: Final = 1.0  # seconds after which a message whose work has failed is delivered again
GONE: Final = (
    "the consumer or its stream was deleted, or was in memory when the server ended; messages "
    "since then are not read: restart the service, which creates the consumer again"
)


@asynccontextmanager
async def connect(url: str, **options: Any) -> AsyncGenerator[Client]:
    """A client that connects again for as long as it is open; the server has to be there.

    What waits for an answer fails when the connection is lost: that answer does not come. The
    client asks the server every 10 seconds whether it is there, and connects again when two of its
    questions are unanswered; *options* may say otherwise, with ``ping_interval`` and
    ``max_outstanding_pings``.
    """
    first: list[Exception] = []  # that the client has raised

    async def show(error: Exception) -> None:
        if len(first) < ATTEMPTED:
            first.append(error)
        LOG.info("NATS: %r", error)

    async def fail_requests() -> None:
        for answer in [*client._resp_map.values()]:  # else each would wait for its whole time
            if not answer.done():
                answer.set_exception(ConnectionReconnectingError())
                answer.exception()  # nobody waits for that of a message that was not sent
        if on_loss is not None:
            await on_loss()

    on_loss = options.pop("disconnected_cb", None)
    require_scheme("nats.connect", url, "nats", "tls", "ws", "wss")
    settings: dict[str, Any] = {"reconnect_time_wait": 0.2, "max_reconnect_attempts": 1}
    settings |= {"disconnected_cb": fail_requests} | PINGS
    client: Any = Client()  # whose options have no types
    try:
        await client.connect(url, **(settings | {"error_cb": show} | options))
    except NoServersError as error:
        if not first:
            raise
        # It says that no server is left, and not what the server has said before it hung up.
        raise min(first, key=lambda each: isinstance(each, OSError)) from error
    client.options |= {"max_reconnect_attempts": -1} | options
    async with closing(partial(_close, client), partial(_cut_off, client)):
        yield client


async def _close(client: Any) -> None:
    """Close a client, also while it connects again: `Client.close` cancels that once only."""
    await end_tasks(client._reconnection_task)
    await client.close()


async def _cut_off(client: Any) -> None:
    """End what `Client.close` leaves of a client when it does not come to its end."""
    client._status = Client.CLOSED
    tasks = [client._reading_task, client._flusher_task, client._ping_interval_task]
    tasks += [each._wait_for_msgs_task for each in client._subs.values()]
    await end_tasks(client._reconnection_task, *tasks)
    if client._transport is not None:
        client._transport.close()


def source(
    client: Client | JetStreamContext,
    subject: str,
    *,
    group: str,
    stream: str | None = None,
    limit: int = 256,
    count: int = 100,
    ack_wait: Duration = 30.0,
    retry: RetryPolicy | int = RECONNECT,
    attempts: RetryPolicy | int = ATTEMPTS,
    on_dead_letter: Callable[[Msg, Exception], object] | None = None,
) -> DeliveryFlow[Msg]:
    """The messages of *subject*, for the durable consumer *group*, which several processes share.

    The consumer is created if it does not exist. Messages are pulled, at most *count* with one
    call, and each acknowledgement is confirmed by the server. Those in work are shown to be,
    however long that takes; what a process did not answer before it ended is delivered again after
    *ack_wait*. With *on_dead_letter*, a message that was delivered twice before is tried alone,
    with a mark in a key-value bucket; what three processes died of while they worked on it alone is
    a dead letter.

    Demand: passed through, while fewer than *limit* messages are held.
    Completes: never; a drain ends it.
    Fails: when NATS cannot be reached for longer than *retry* allows; when the consumer or its
        stream is deleted, which is asked after two seconds of silence.
    Cancels: the call that waits for messages.
    Holds: *limit* messages, and a list of *count*, which is no longer than *limit*.
    Rules: 1.1
    """
    most = list_length("nats.source", count, limit)
    context = _jetstream("nats.source", client)
    outage = outage_of(f"NATS (subject {subject!r})", retry, LOST, partial(_is_closed, context))
    seconds = to_seconds(ack_wait, "nats.source: ack_wait")
    config = ConsumerConfig(ack_wait=seconds, max_ack_pending=10 * limit)
    for what, name in (("subject", subject), ("group", group)):
        require_name("nats.source", what, name)
    reader = _Reader(context, subject, group, stream, most, config, outage, on_dead_letter)
    lists = from_async(reader.lists, name=f"nats({subject!r}, group={group!r})")
    flow = deliveries(
        lists.concat_map(lambda each: each),
        limit=limit,
        ack_concurrency=32,  # each is a request of its own
        ack_timeout=ack_timeout(retry),
    )
    return with_dead_letters(flow, attempts, on_dead_letter)


def sink(
    client: Client | JetStreamContext, subject: str, *, retry: RetryPolicy | int = RECONNECT
) -> Send[Message]:
    """A function that publishes a list of messages, and returns when the stream has all of them.

    Messages have an id, by which the stream drops what is sent again after a lost connection. What
    the stream refuses is an error in `BatchFailed`.
    """
    require_name("nats.sink", "subject", subject)
    context = _jetstream("nats.sink", client)
    outage = outage_of(f"NATS (sink {subject!r})", retry, LOST, partial(_is_closed, context))

    async def send(batch: Sequence[Message]) -> None:
        require_list("nats.sink", Message, "Message", batch)
        prefix = uuid4().hex
        results: dict[int, object] = {}

        async def one(number: int, message: Message) -> None:
            data, to = content(message, "NATS"), message.to or subject
            headers = {"Nats-Msg-Id": f"{prefix}-{number}", **message.headers}
            await context.publish(to, data, timeout=CONFIRMED, headers=headers)

        await outage.call(partial(send_missing, batch, results, one, _is_refused))
        raise_failed(results[n] for n in range(len(batch)))

    return send


def _is_refused(error: Exception) -> bool:
    return isinstance(error, REFUSED) and not isinstance(error, LOST)


def _jetstream(call: str, client: Client | JetStreamContext) -> JetStreamContext:
    context: Any = client
    if not isinstance(client, JetStreamContext):
        what = "a nats.aio.client.Client or its JetStream context"
        require_client(call, what, client, "jetstream")
        context = context.jetstream()
    if isinstance(of := context._nc, Client):
        is_used = of.is_connected or of.is_connecting or of.is_reconnecting
        require_open(call, is_new=not is_used, is_closed=of.is_closed)
    made: JetStreamContext = context
    return made


def _is_closed(context: Any) -> bool:
    is_closed: bool = context._nc.is_closed
    return is_closed


@dataclass(eq=False)
class _Bucket:
    """The marks of a consumer, in a key-value bucket that is made when there is a first suspect."""

    context: Any
    name: str
    _bucket: Any = None

    async def read(self, ids: Sequence[str]) -> list[int]:
        if self._bucket is None:
            try:
                self._bucket = await self.context.key_value(self.name)
            except BucketNotFoundError:
                config = KeyValueConfig(bucket=self.name, history=1, ttl=7 * DAY)
                self._bucket = await self.context.create_key_value(config)
        return [await self._mark(id) for id in ids]

    async def _mark(self, id: str) -> int:
        try:
            return int((await self._bucket.get(id)).value)
        except KeyNotFoundError:
            return 0

    async def write(self, id: str, crashes: int) -> None:
        await self._bucket.put(id, str(crashes).encode())

    async def clear(self, ids: Sequence[str]) -> None:
        for id in ids:
            await self._bucket.delete(id)


@dataclass(slots=True, eq=False)
class _Reader:
    context: JetStreamContext
    subject: str
    group: str
    stream: str | None
    count: int
    config: ConsumerConfig
    outage: Outage
    on_dead_letter: Callable[[Msg, Exception], object] | None
    _subscription: Any = None
    _marks: CrashMarks = field(init=False)
    _suspects: dict[str, Msg] = field(default_factory=dict[str, Msg])
    """Messages that came again, and are tried one after another."""

    async def lists(self) -> AsyncGenerator[list[Delivery[Msg]]]:
        self._subscription = subscription = await self.outage.call(self._subscribe)
        patience = self.config.ack_wait or 30.0
        name = re.sub("[^A-Za-z0-9_-]", "_", f"marks_{await self._stream_name()}_{self.group}")
        self._marks = CrashMarks(_Bucket(self.context, name), self.outage, patience)
        try:
            async with interval(patience / 3).running(self._keep):
                while True:
                    yield (await self._suspect() if self._suspects else await self._fetched())
                    await self._marks.done_alone()
        finally:
            await self._marks.worked()
            with suppress(*LOST):
                for each in self._suspects.values():
                    await each.nak()
                await subscription.unsubscribe()

    async def _stream_name(self) -> str:
        info: Any = await self.outage.call(self._subscription.consumer_info)
        name: str = info.stream_name
        return name

    @awaits_messages
    async def _fetched(self) -> list[Delivery[Msg]]:
        """The next messages; those that have come again become suspects."""
        try:
            found = await self._subscription.fetch(self.count, WAIT)
        except NoAnswer:
            # A consumer that is gone is silent for ever.
            await self.outage.call(self._require)
            self.outage.over()
            return []
        except LOST as error:
            await self.outage.wait(error)
            await self.outage.call(self._require)
            return []
        self.outage.over()
        # One that is in work here comes again when what shows that was lost with the connection.
        found = [each for each in found if _id(each) not in self._marks.working]
        if self.on_dead_letter is None:
            return [self._delivery(each) for each in found]
        again = {_id(each): each for each in found if each.metadata.num_delivered > SUSPECT}
        self._suspects |= again
        return [self._delivery(each) for each in found if _id(each) not in again]

    async def _suspect(self) -> list[Delivery[Msg]]:
        """One that has come again, alone; or nothing, if processes have died of it."""
        is_alone = await self._marks.all_done()
        id, crashes = (await self._marks.crashes_of([*self._suspects]))[0]
        message = self._suspects.pop(id)
        if crashes >= CRASHES and self.on_dead_letter is not None:
            await self._marks.bury(message, id, crashes, self.on_dead_letter)
            await self._ack(message)
            return []
        if is_alone:
            await self._marks.begin(id, crashes)
        return [self._delivery(message)]

    async def _keep(self, _: object) -> None:
        """Show that messages are in work, or wait to be tried: they are not delivered again."""
        with suppress(*LOST):  # of which the next read knows as well
            for each in [*self._marks.working.values(), *self._suspects.values()]:
                await each.in_progress()

    async def _subscribe(self) -> Any:
        context: Any = self.context
        try:
            return await context.pull_subscribe(
                self.subject, self.group, stream=self.stream, config=self.config
            )
        except NotFoundError as error:
            if error.code is not None:  # the server has said what is missing
                raise
            missing = f"no stream has the subject {self.subject!r}: make one first"
            raise NotFoundError(code=404, description=missing) from error

    async def _require(self) -> None:
        try:
            await self._subscription.consumer_info()
        except NotFoundError as error:
            error.add_note(GONE)
            raise

    def _delivery(self, message: Msg) -> Delivery[Msg]:
        self._marks.working[_id(message)] = message
        return Delivery(message, partial(self._ack, message), partial(self._nack, message))

    async def _ack(self, message: Msg) -> None:
        is_answered = True

        async def confirm() -> None:
            nonlocal is_answered
            if not is_answered:  # or the consumer is gone, for which nobody answers
                await self._require()
            is_answered = False
            await message.ack_sync(CONFIRMED)

        await self.outage.call(confirm)
        await self._marks.over([_id(message)])

    def _nack(self, message: Msg, error: Exception) -> Awaitable[None]:
        return self._given_back(message, None if isinstance(error, Unfinished) else AGAIN)

    async def _given_back(self, message: Msg, delay: float | None) -> None:
        await self._marks.over([_id(message)])
        with suppress(*LOST):  # it follows after ack_wait
            await message.nak(delay)


def _id(message: Msg) -> str:
    """The number of a message in its stream, whose consumer delivers it with others each time."""
    return str(message.metadata.sequence.stream)


explain_foreign_options(modules[__name__], __all__)
