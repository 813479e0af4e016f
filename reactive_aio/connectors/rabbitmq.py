"""RabbitMQ: the messages of a queue, acknowledged when the work on them is done; and a sink.

::

    async with rabbitmq.connect("amqp://127.0.0.1/") as connection:
        orders = rabbitmq.source(connection, "orders", dead_letters="orders.dead")
        await orders.ack_after(store).run()

The extra ``rabbitmq`` is needed (aio-pika).
"""

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from sys import modules
from typing import Any, Final, TypeAlias

import anyio

from .._core.compiler.error_notes import short_text
from .._shared.foreign_options import explain_foreign_options
from ..delivery import Delivery, DeliveryFlow, Outage, deliveries
from ..errors import MissingExtra
from ..retry import RetryPolicy
from ..stage import from_async, require_int
from .common import (
    ATTEMPTS,
    CLOSED,
    RECONNECT,
    Arrivals,
    Message,
    Send,
    ack_timeout,
    closing,
    content,
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
    import aio_pika
    from aio_pika.abc import (
        AbstractConnection,
        AbstractExchange,
        AbstractIncomingMessage,
        AbstractQueue,
        AbstractRobustConnection,
    )
    from aio_pika.exceptions import (
        AMQPConnectionError,
        ChannelInvalidStateError,
        ChannelNotFoundEntity,
        DeliveryError,
    )
except ModuleNotFoundError as _error:
    if (_error.name or "").partition(".")[0] not in ("aio_pika", "aiormq"):
        raise
    raise MissingExtra("connectors.rabbitmq", "rabbitmq") from _error

__all__ = ("connect", "sink", "source")

LOST: Final = (AMQPConnectionError, ChannelInvalidStateError, OSError)
READY: Final = 5.0  # seconds that one attempt waits for a connection that is being made again
GONE: Final = "the queue was deleted: restart the service, which declares it again"

_CLIENT: Final = "a connection of aio_pika"

Incoming: TypeAlias = AbstractIncomingMessage


@asynccontextmanager
async def connect(url: str, **options: Any) -> AsyncGenerator[AbstractRobustConnection]:
    """A connection that is made again when it was lost; the first attempt has to succeed."""
    require_scheme("rabbitmq.connect", url, "amqp", "amqps")
    options = {"reconnect_interval": 0.5, "fail_fast": True} | options
    connection = await aio_pika.connect_robust(url, **options)
    async with closing(connection.close):
        yield connection


def source(
    connection: AbstractConnection,
    queue: str,
    *,
    limit: int = 256,
    dead_letters: str | None = None,
    retry: RetryPolicy | int = RECONNECT,
    attempts: RetryPolicy | int = ATTEMPTS,
    on_dead_letter: Callable[[Incoming, Exception], object] | None = None,
) -> DeliveryFlow[Incoming]:
    """The messages of *queue*, which its consumers share.

    A queue that does not exist is declared, as a durable quorum queue. With *dead_letters*, the
    name of another one, what fails after the last of *attempts* is sent there, with its error in
    the header ``x-error``, before it is acknowledged; unless *on_dead_letter* is given, which is
    called with it instead. A message that ends its process each time is not found:
    RabbitMQ keeps a count of deliveries alone, to which each outage adds. Each subscription has a
    channel of its own, whose prefetch count is *limit*. A message that fails otherwise goes back to
    the queue.

    Demand: the broker sends what is not acknowledged up to *limit* messages, whatever is requested.
    Completes: never; a drain ends it.
    Fails: when RabbitMQ cannot be reached for longer than *retry* allows; when the queue is
        deleted.
    Cancels: the consumer; messages that arrived go back to the queue.
    Holds: *limit* messages.
    Rules: 1.1
    """
    require_client("rabbitmq.source", _CLIENT, connection, "ready", "channel")
    require_open("rabbitmq.source", is_closed=_is_closed(connection))
    require_name("rabbitmq.source", "queue", queue)
    require_int("rabbitmq.source", "limit", limit, least=1)
    lost = partial(_is_closed, connection)
    outage = outage_of(f"RabbitMQ (queue {queue!r})", retry, _is_lost, lost)
    letters_outage = outage_of(f"RabbitMQ (queue {dead_letters!r})", retry, _delays_letters, lost)
    reader = _Reader(connection, queue, limit, dead_letters, outage, letters_outage)
    lists = from_async(reader.lists, name=f"rabbitmq({queue!r})", holds=limit)
    flow = deliveries(
        lists.concat_map(lambda each: each), limit=limit, ack_timeout=ack_timeout(retry)
    )
    if dead_letters is not None:
        on_dead_letter = on_dead_letter or reader.set_aside
    return with_dead_letters(flow, attempts, on_dead_letter)


def sink(
    connection: AbstractConnection,
    to: str,
    *,
    exchange: str = "",
    retry: RetryPolicy | int = RECONNECT,
) -> Send[Message]:
    """A function that publishes a list of messages, and returns when the broker has all of them.

    *to* is the routing key: with the default exchange, the name of a queue. Messages are persistent
    and confirmed. One that no queue receives (``basic.return``), or that the broker refuses, is an
    error in `BatchFailed`. What was not confirmed when the connection was lost is sent again, and
    may then be there twice.
    """
    require_client("rabbitmq.sink", _CLIENT, connection, "ready", "channel")
    require_open("rabbitmq.sink", is_closed=_is_closed(connection))
    require_name("rabbitmq.sink", "to", to)
    outage = outage_of(f"RabbitMQ (sink {to!r})", retry, _is_lost, partial(_is_closed, connection))
    writer = _Writer(connection, to, exchange)

    async def send(batch: Sequence[Message]) -> None:
        require_list("rabbitmq.sink", Message, "Message", batch)
        results: dict[int, object] = {}
        await outage.call(writer.publish, batch, results)
        raise_failed(results[n] for n in range(len(batch)))

    return send


def _is_closed(connection: AbstractConnection) -> bool:
    return connection.is_closed is True


def _is_lost(error: BaseException) -> bool:
    """Whether it is the loss of a connection.

    The client raises errors of AMQP for it, or a `RuntimeError`, or an `Exception` that says
    nothing, where it ends what waits for an answer: which of them is a race.
    """
    return isinstance(error, LOST) or type(error) in (Exception, RuntimeError)


def _delays_letters(error: BaseException) -> bool:
    """Whether the queue of dead letters cannot be reached, is full, or is not there."""
    return isinstance(error, DeliveryError) or _is_lost(error)


async def _channel(connection: AbstractConnection, **options: bool) -> aio_pika.Channel:
    """A channel that is not restored by itself: its unacknowledged messages belong to it."""
    with anyio.fail_after(READY):
        await connection.ready()
        channel = aio_pika.Channel(connection, **options)
        await channel.initialize()
    return channel


@contextmanager
def _unless_lost() -> Generator[None]:
    """Let an error pass unless the connection was lost."""
    try:
        yield
    except Exception as error:
        if not _is_lost(error):
            raise


async def _close(channel: aio_pika.Channel) -> None:
    """Close it, unless the connection is lost, or RabbitMQ does not answer in time."""
    with anyio.move_on_after(CLOSED, shield=True), _unless_lost():
        await channel.close()


class _Consuming(Arrivals[Incoming]):
    """One consumer, on a channel of its own: closed when it is over and nothing is open there."""

    def __init__(self, channel: aio_pika.Channel) -> None:
        super().__init__()
        self.channel = channel
        self.is_over = False
        self.open = 0

    async def on_message(self, message: Incoming) -> None:
        """The broker has sent a message."""
        self.add(message)

    async def settle(self, answer: Callable[[], Any]) -> None:
        """Answer a message; with its channel, the broker has taken it back."""
        with _unless_lost():
            await answer()
        self.open -= 1
        await self.close_if_done()

    async def close_if_done(self) -> None:
        """Close the channel after the last answer."""
        if self.is_over and not self.open:
            await _close(self.channel)


@dataclass(slots=True, eq=False)
class _Reader:
    connection: AbstractConnection
    queue: str
    limit: int
    dead_letters: str | None
    outage: Outage
    letters_outage: Outage

    async def set_aside(self, message: Incoming, error: Exception) -> None:
        """Send a message to the queue of dead letters. It is acknowledged after that.

        To reject it would be a loss where the queue has no dead-letter exchange: a queue that was
        there before may have none, and its arguments cannot be asked for.
        """
        letter = _dead_letter(message, error, self.queue)
        await self.letters_outage.call(self._send_aside, letter)

    async def _send_aside(self, letter: aio_pika.Message) -> None:
        channel = await _channel(self.connection, on_return_raises=True)
        try:
            to = self.dead_letters or ""
            await channel.default_exchange.publish(letter, to, mandatory=True)
        finally:
            await _close(channel)

    async def lists(self) -> AsyncGenerator[list[Delivery[Incoming]]]:
        await self.outage.call(self._declare)
        while True:
            try:
                async with self._consuming() as consuming:
                    self.outage.over()
                    while True:
                        found = await consuming.next()
                        consuming.open += len(found)
                        yield [self._delivery(each, consuming) for each in found]
            except Exception as error:
                await self.outage.wait(error)

    def _delivery(self, message: Incoming, consuming: _Consuming) -> Delivery[Incoming]:
        def ack() -> Any:
            return consuming.settle(message.ack)

        def nack(_: Exception) -> Any:
            return consuming.settle(partial(message.reject, requeue=True))

        return Delivery(message, ack, nack)

    @asynccontextmanager
    async def _consuming(self) -> AsyncGenerator[_Consuming]:
        channel = await _channel(self.connection)
        consuming = _Consuming(channel)

        def on_close(_: object, error: BaseException | None) -> None:
            lost = error if isinstance(error, Exception) else ConnectionError("the channel closed")
            consuming.end(lost)

        def on_cancel(_: object) -> None:
            error = ConnectionAbortedError(f"RabbitMQ has cancelled the consumer of {self.queue!r}")
            consuming.end(error)

        try:
            channel.close_callbacks.add(on_close)
            await channel.set_qos(prefetch_count=self.limit)
            queue = await self._existing(channel)
            under = await channel.get_underlay_channel()
            under.on_consumer_cancel_callbacks.add(on_cancel)
            tag = await queue.consume(consuming.on_message)
            try:
                yield consuming
            finally:
                with anyio.move_on_after(CLOSED, shield=True), _unless_lost():
                    await queue.cancel(tag)
        finally:
            consuming.is_over = True
            await consuming.close_if_done()

    async def _existing(self, channel: aio_pika.Channel) -> AbstractQueue:
        try:
            return await channel.declare_queue(self.queue, passive=True)
        except ChannelNotFoundEntity as error:
            error.add_note(GONE)
            raise

    async def _declare(self) -> None:
        """Declare the queues, unless they are there, with whatever arguments."""
        for name in filter(None, (self.dead_letters, self.queue)):
            channel = await _channel(self.connection)
            try:
                await channel.declare_queue(name, passive=True)
            except ChannelNotFoundEntity:  # which has closed the channel
                channel = await _channel(self.connection)
                arguments: dict[str, Any] = {"x-queue-type": "quorum"}
                arguments |= delivery_limit(self.connection)
                await channel.declare_queue(name, durable=True, arguments=arguments)
            finally:
                await _close(channel)


def delivery_limit(connection: Any) -> dict[str, int]:
    """No limit: from version 4 on, a quorum queue drops by itself what was delivered 20 times."""
    version = str(connection.transport.connection.server_properties["version"])
    return {"x-delivery-limit": -1} if int(version.partition(".")[0]) >= 4 else {}


@dataclass(slots=True, eq=False)
class _Writer:
    connection: AbstractConnection
    to: str
    exchange: str
    _channel: aio_pika.Channel | None = None

    async def publish(self, batch: Sequence[Message], results: dict[int, object]) -> None:
        """Publish those that have no result yet."""
        if self._channel is None or self._channel.is_closed:
            self._channel = await _channel(self.connection, on_return_raises=True)
        channel = self._channel
        exchange: AbstractExchange = channel.default_exchange
        if self.exchange:
            exchange = await channel.get_exchange(self.exchange, ensure=False)

        async def one(_: int, message: Message) -> None:
            await exchange.publish(_outgoing(message), message.to or self.to, mandatory=True)

        await send_missing(batch, results, one, _is_refused)


def _is_refused(error: Exception) -> bool:
    return isinstance(error, (DeliveryError, TypeError))


def _dead_letter(message: Incoming, error: Exception, queue: str) -> aio_pika.Message:
    """A message as it was, without its expiration, and with what has become of it."""
    return aio_pika.Message(
        message.body,
        headers={**message.headers, "x-queue": queue, "x-error": short_text(error)},
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        content_type=message.content_type,
        content_encoding=message.content_encoding,
        priority=message.priority,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        message_id=message.message_id,
        timestamp=message.timestamp,
        type=message.type,
        app_id=message.app_id,
    )


def _outgoing(message: Message) -> aio_pika.Message:
    body = content(message, "RabbitMQ")
    persistent = aio_pika.DeliveryMode.PERSISTENT
    return aio_pika.Message(body, headers={**message.headers}, delivery_mode=persistent)


explain_foreign_options(modules[__name__], __all__)
