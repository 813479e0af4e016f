"""MQTT: the messages of topics, acknowledged when the work on them is done; and a sink.

::

    async with mqtt.connect("mqtt://127.0.0.1:1883", name="billing-1") as client:
        readings = mqtt.source(client, "sensors/+/temperature")
        await readings.ack_after(store).run()

The extra ``mqtt`` is needed (aiomqtt), and a broker of MQTT 5.
"""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from sys import modules
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

import anyio

from .._shared.foreign_options import explain_foreign_options
from ..delivery import Delivery, DeliveryFlow, Outage, deliveries
from ..errors import MissingExtra
from ..retry import RetryPolicy
from ..stage import Duration, from_async, require_int, to_seconds
from .common import (
    ATTEMPTS,
    RECONNECT,
    Message as Outgoing,
    Send,
    awaits_messages,
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
    from aiomqtt import Client, Message, MqttError, ProtocolVersion, TLSParameters
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties
except ModuleNotFoundError as _error:
    if (_error.name or "").partition(".")[0] not in ("aiomqtt", "paho"):
        raise
    raise MissingExtra("connectors.mqtt", "mqtt") from _error

__all__ = ("connect", "sink", "source")

T = TypeVar("T")

LOST: Final = (MqttError, OSError)
_CLIENT: Final = "an aiomqtt.Client"
AT_A_TIME: Final = 10  # messages that are published and not yet confirmed; aiomqtt warns of more


def connect(
    url: str, *, name: str, limit: int = 256, session: Duration = 86_400.0, **options: Any
) -> Client:
    """A client for ``async with``, whose session the broker keeps when the connection is lost.

    *name* is the identifier of the session: a process that starts again with it receives what came
    meanwhile, and what was not acknowledged, for *session* seconds after the loss. No two processes
    may have it at a time. The broker sends at most *limit* messages that are not acknowledged;
    none is before a `source` has had its work done. A client made otherwise acknowledges what
    arrives before it has a source.
    """
    require_scheme("mqtt.connect", url, "mqtt", "mqtts", "tcp", "ssl")
    require_name("mqtt.connect", "name", name)
    parts = urlsplit(url)
    properties = _properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = int(to_seconds(session, "mqtt.connect: session"))
    properties.ReceiveMaximum = require_int("mqtt.connect", "limit", limit, least=1)
    settings: dict[str, Any] = {"identifier": name, "properties": properties, "clean_start": False}
    settings |= {"protocol": ProtocolVersion.V5, "hostname": parts.hostname or "127.0.0.1"}
    is_encrypted = parts.scheme in ("mqtts", "ssl")
    settings["port"] = parts.port or (8883 if is_encrypted else 1883)
    if is_encrypted:
        settings["tls_params"] = TLSParameters()
    if parts.username:
        settings |= {"username": unquote(parts.username), "password": unquote(parts.password or "")}
    client = Client(**(settings | options))
    # The broker sends what waits as soon as the client connects, before there is a source.
    client._client.manual_ack_set(True)
    _expect_loss(client)
    return client


def source(
    client: Client,
    *topics: str,
    group: str | None = None,
    limit: int = 256,
    retry: RetryPolicy | int = RECONNECT,
    attempts: RetryPolicy | int = ATTEMPTS,
    on_dead_letter: Callable[[Message, Exception], object] | None = None,
) -> DeliveryFlow[Message]:
    """The messages of *topics*, with QoS 1, for a client that is connected.

    Acknowledgements are sent in the order of the messages, as MQTT demands: one that takes long
    holds back those after it. With *group*, the members of the group share the messages. After a
    lost connection, the client is entered again; the broker sends again what was not acknowledged.
    Use the client for nothing else meanwhile.

    Demand: the broker sends what is not acknowledged up to the limit of `connect`.
    Completes: never; a drain ends it.
    Fails: when the broker cannot be reached for longer than *retry* allows, or refuses a topic.
    Cancels: the wait for messages; the broker sends them again to the next client of that name.
    Holds: *limit* messages, and those that have arrived, up to the limit of `connect`.
    Rules: 1.1
    """
    require_client("mqtt.source", _CLIENT, client, "subscribe")
    require_open("mqtt.source", is_new=not _is_entered(client))
    if not topics:
        raise ValueError("mqtt.source: give at least one topic")
    for topic in topics:
        require_name("mqtt.source", "a topic", topic)
    outage = outage_of(f"MQTT (topics {', '.join(topics)})", retry, LOST)
    names = [each if group is None else f"$share/{group}/{each}" for each in topics]
    reader = _Reader(client, names, outage)
    client._client.manual_ack_set(True)  # of one that `connect` has not made, too
    _watch_while_open(client)
    lists = from_async(reader.lists, name=f"mqtt({', '.join(names)})")
    flow = deliveries(lists.concat_map(lambda each: each), limit=limit)
    return with_dead_letters(flow, attempts, on_dead_letter)


def sink(client: Client, topic: str, *, retry: RetryPolicy | int = RECONNECT) -> Send[Outgoing]:
    """A function that publishes a list of messages with QoS 1; it returns when the broker has them.

    The client has to be connected, is entered again after a lost connection, and is used for
    nothing else. What was not acknowledged then is sent again, and may be there twice. Headers
    become user properties of MQTT 5.
    """
    require_client("mqtt.sink", _CLIENT, client, "publish")
    require_open("mqtt.sink", is_new=not _is_entered(client))
    require_name("mqtt.sink", "topic", topic)
    outage = outage_of(f"MQTT (sink {topic})", retry, LOST)
    is_lost = False
    _watch_while_open(client)

    async def send(batch: Sequence[Outgoing]) -> None:
        require_list("mqtt.sink", Outgoing, "connectors.Message", batch)
        results: dict[int, object] = {}

        async def one(_: int, message: Outgoing) -> None:
            async with places:
                await _answered(client, _publish(client, message.to or topic, message))

        async def publish() -> None:
            nonlocal is_lost
            if is_lost:
                await _enter_again(client)
                is_lost = False
            try:
                await send_missing(batch, results, one, _is_refused)
            except LOST:
                is_lost = True
                raise

        places = anyio.Semaphore(AT_A_TIME)
        await outage.call(publish)
        raise_failed(results[n] for n in range(len(batch)))

    return send


def _is_refused(error: Exception) -> bool:
    return isinstance(error, (TypeError, ValueError)) and not isinstance(error, LOST)


def _properties(packet: int) -> Any:
    make: Any = Properties  # which has no types
    return make(packet)


async def _publish(client: Client, topic: str, message: Outgoing) -> None:
    properties = _properties(PacketTypes.PUBLISH)
    if message.headers:
        properties.UserProperty = [*message.headers.items()]
    await client.publish(topic, content(message, "MQTT"), qos=1, properties=properties)


def _is_entered(client: Any) -> bool:
    """Whether it is in its block: a connection that was lost does not leave that."""
    return not isinstance(client, Client) or client._lock.locked()


async def _answered(client: Any, call: Coroutine[Any, Any, T]) -> T:
    """The answer of the broker to *call*, or an error as soon as the connection is lost.

    aiomqtt would wait for the answer until its *timeout*.
    """
    lost = client._disconnected
    with anyio.CancelScope() as scope:

        def give_up(_: object) -> None:
            scope.cancel()

        lost.add_done_callback(give_up)
        try:
            return await call
        finally:
            lost.remove_done_callback(give_up)
    raise MqttError("the connection was lost before the broker answered") from _loss(client)


def _loss(client: Any) -> BaseException | None:
    """The error of a connection that is lost; the loop reports one that nobody has asked for."""
    lost = client._disconnected
    return None if not lost.done() or lost.cancelled() else lost.exception()


def _watch_while_open(client: Client) -> None:
    """Let the loop watch the socket of *client* while it is open and has something to write.

    aiomqtt asks for that in the next turn of the loop. By then all may be written, and the loop
    calls in vain again and again; or the connection is lost, and the number of its file given to
    another one. uvloop ends the process then, and asyncio may not hear the next connection.
    """
    inner: Any = client._client

    def watch(socket: object) -> None:
        if inner.socket() is socket and inner.want_write():
            client._loop.add_writer(inner.socket().fileno(), inner.loop_write)

    def watch_soon(_: object, __: object, socket: object) -> None:
        client._loop.call_soon_threadsafe(watch, socket)  # it may be called by another thread

    inner.on_socket_register_write = watch_soon


async def _enter_again(client: Client) -> None:
    """Connect again: a client can be entered several times, one after another."""
    _loss(client)
    await client.__aexit__(None, None, None)
    await client.__aenter__()
    _expect_loss(client)


def _expect_loss(client: Any) -> None:
    """The loss of this connection may come when nobody uses it any more, and is no error then."""
    client._disconnected.add_done_callback(lambda _: _loss(client))


@dataclass(eq=False)
class _Connection:
    """The messages of one connection, in their order, and whether each is done."""

    client: Client
    is_lost: bool = False
    _open: deque["_Open"] = field(default_factory=deque["_Open"])

    def delivery(self, message: Message) -> Delivery[Message]:
        """A message that has arrived."""
        opened = _Open(message)
        self._open.append(opened)
        return Delivery(message, partial(self._settle, opened, True), partial(self._nack, opened))

    def _nack(self, opened: "_Open", error: Exception) -> None:
        """MQTT takes nothing back: it is sent again to the next connection of the session."""
        self._settle(opened, False)

    def _settle(self, opened: "_Open", is_done: bool) -> None:
        opened.is_done = is_done
        while self._open and (first := self._open[0]).is_done is not None:
            self._open.popleft()
            if first.is_done and first.message.qos and not self.is_lost:
                self.client._client.ack(first.message.mid, first.message.qos)


@dataclass(slots=True, eq=False)
class _Open:
    message: Message
    is_done: bool | None = None


@dataclass(slots=True, eq=False)
class _Reader:
    client: Client
    topics: Sequence[str]
    outage: Outage

    async def lists(self) -> AsyncGenerator[list[Delivery[Message]]]:
        client, connection = self.client, _Connection(self.client)
        while True:
            try:
                if connection.is_lost:
                    await _enter_again(client)
                    connection = _Connection(client)
                await self._subscribe()
                self.outage.over()
                while True:
                    yield [connection.delivery(each) for each in await self._arrived()]
            except LOST as error:
                connection.is_lost = True
                await self.outage.wait(error)
                await self._forget()

    async def _subscribe(self) -> None:
        for topic in self.topics:
            answers: Any = await _answered(self.client, self.client.subscribe(topic, qos=1))
            refused = [str(each) for each in answers if getattr(each, "is_failure", False)]
            if refused:
                raise PermissionError(f"MQTT: the broker refuses {topic!r}: {', '.join(refused)}")

    @awaits_messages
    async def _arrived(self) -> list[Message]:
        messages = self.client.messages
        found = [await anext(messages)]
        while len(messages):
            found.append(await anext(messages))
        return found

    async def _forget(self) -> None:
        """What has arrived and was not read is sent again, since it was not acknowledged."""
        while len(self.client.messages):
            await anext(self.client.messages)


explain_foreign_options(modules[__name__], __all__)
