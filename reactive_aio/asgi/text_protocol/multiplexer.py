"""StreamMultiplexer: many streams on one socket, which send their messages in turns."""

import json
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import thread_time
from typing import TYPE_CHECKING, Any, Final

from ..._core.foreign_text import excerpt
from ..._core.loop import (
    Future,
    LoopHandle,
    Task,
    TimerHandle,
    cancel_task,
    sleep,
    timeout,
    wait_settled,
    yield_to_loop,
)
from ...rsocket.payloads import JSON
from ...rsocket.protocol.errors import (
    RequestInvalid,
    RequestRejected,
    StreamFailed,
    is_for_peer,
)
from ...rsocket.serving.routing import Handler, Router
from ..formats import Encode
from ..function_errors import failure_of
from ..http import HttpRequest, Receive, Send
from ..options import Counters
from ..problem import (
    ClientDisconnected,
    ErrorPolicy,
    PeerFailed,
    Problem,
    SocketLost,
    problem_of,
    server_stops,
)
from ..send_limit import SendLimit
from .messages import (
    SUBPROTOCOL,
    Id,
    InvalidMessage,
    Message,
    format_error,
    parse_demand,
    parse_message,
)
from .streams import Peer, PeerSubscription, SocketSubscriber, Stream

if TYPE_CHECKING:
    from ...flow import Flow

_MAX_ANSWERS: Final = 64
_FLUSH_TIMEOUT: Final = 5.0  # how long a client may take to read why its socket is closed
_STOP_TIMEOUT: Final = 1.0  # the same, when the server stops
_REST: Final = 20  # times as long as a message of no use has taken
_LONGEST_REST: Final = 0.5
_SHORTEST_REST: Final = 0.002  # timers are no more exact
_MAX_SHOWN: Final = 80  # characters of a message that a foreign server sent
_PROTOCOL_ERROR: Final = 1002  # the code with which a socket closes that is not understood
_INTERNAL_ERROR: Final = 1011  # the code with which a socket closes that cannot be served
_SERVICE_RESTART: Final = 1012  # the code with which a socket closes since the server stops

Read = Callable[[Any], Any] | None


class SocketRequest:
    """The request that a handler may take: as with RSocket, and the handshake."""

    __slots__ = ("_params", "_read_element", "data", "payload", "peer", "route", "user")

    def __init__(self, handler: Handler, route: str, params: Any, peer: Peer) -> None:
        read = _reader(handler)
        self.route: str = route
        self.data: bytes = b"" if params is None else b"null"
        """Empty without params. (With RSocket, the bytes of the request.)"""
        self.payload: Any = params
        """The params, converted to the class that the handler declares for its payload."""
        if handler.takes_payload and read is not None and params is not None:
            self.payload = read(params)
        self.peer: Peer = peer
        """The client, which may publish as well."""
        self.user: Any = peer.user
        """What ``authenticate`` returned."""
        self._params = params
        self._read_element: Read = None if handler.takes_payload else read

    @property
    def http(self) -> HttpRequest:
        """The handshake of the socket."""
        return self.peer.http

    @property
    def incoming(self) -> "Flow[Any]":
        """What the client publishes under the same route."""
        elements = self.peer.request_stream(self._params, route=self.route)
        return elements if self._read_element is None else elements.map(self._read_element)


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketConfig:
    """The validated options of `websocket`, common to all of its sockets, or of `connect`."""

    router: Router
    encode: Encode[Any]
    max_message: int
    max_streams: int
    max_useless: int
    errors: ErrorPolicy
    on_connect: Callable[[Peer], Any] | None
    counters: Counters
    authenticate: Callable[[HttpRequest], Any] | None = None
    auth_timeout: float = 5.0
    origins: frozenset[str] = frozenset()
    send_timeout: float | None = None
    server: str | None = None
    """The URL of the server, at the client's end of a socket."""

    @property
    def peer_name(self) -> str:
        """What errors call the other end."""
        return "client" if self.server is None else "server"


class StreamMultiplexer:
    """The streams of one socket, with a reader and a writer of their messages."""

    def __init__(
        self,
        loop_handle: LoopHandle,
        send: Send,
        config: SocketConfig,
        http: HttpRequest,
    ) -> None:
        self.loop_handle: LoopHandle = loop_handle
        self.counters: Counters = config.counters
        self.encode: Encode[Any] = config.encode
        self.peer: Peer = Peer(self, http)
        self._config = config
        self._send = send
        self._is_closed = False
        self._subscribers: dict[Id, SocketSubscriber] = {}
        self._subscriptions: dict[Id, PeerSubscription] = {}
        self._last_id = 0
        self._useless_messages = 0
        self._answers: deque[str] = deque()
        self._scheduled: deque[Stream] = deque()
        self._writer_wake: Future[Any] | None = None
        self._reader_wake: Future[Any] | None = None
        self._cleaning: list[SocketSubscriber] = []  # removed, but they may still clean up
        self._reading = timeout(None)  # ends when nothing can be sent any more, or may be
        self._is_reading = False
        self._is_stopped = False
        self._reading_timer: TimerHandle | None = None
        self._peer_error = ""  # why the other end closes the socket
        self._error_of_close: Callable[[str], Exception] | None = None  # with that, of a server
        self._foreign = ""  # what a server did that does not speak the protocol

    @property
    def peer_name(self) -> str:
        """What errors call the other end."""
        return self._config.peer_name

    def lost(self) -> Exception:
        """Return the error of streams that the other end can no longer send."""
        server = self._config.server
        if server is None:
            return ClientDisconnected()
        if self._foreign:
            detail = f"the server does not speak {SUBPROTOCOL}: {self._foreign}"
            return PeerFailed(502, detail, what=server)
        if self._error_of_close is not None:
            return self._error_of_close(self._peer_error)
        reason = f": {excerpt(self._peer_error)}" if self._peer_error else ""
        return SocketLost(f"{server}: the socket is closed{reason}; subscribe again to reconnect")

    # -- the life of the socket --------------------------------------------------------------------
    async def run(self, receive: Receive, first: Message | None) -> None:
        """Serve until the other end disconnects, or until a message of its closes the socket."""
        tasks = [self.loop_handle.create_task(self._write(), "asgi: writes to a socket")]
        if self._config.on_connect is not None:
            tasks.append(self.loop_handle.create_task(self._on_connect(), "asgi: on_connect"))
        try:
            async with self._reading:
                await self._read(receive, first)
        except InvalidMessage as fatal:
            self._foreign = self._foreign or f"{fatal}"
            self._peer_error = f"the {self.peer_name} sent an invalid message ({fatal})"
            code = fatal.close_code or _PROTOCOL_ERROR
            await self._part(tasks[0], fatal.problem, code, _FLUSH_TIMEOUT)
        except TimeoutError:
            if not self._reading.expired():
                raise
            if self._is_stopped:
                stops = problem_of(server_stops())
                await self._part(tasks[0], stops, _SERVICE_RESTART, _STOP_TIMEOUT)
        finally:
            await self._end_streams(tasks)

    async def _read(self, receive: Receive, first: Message | None) -> None:
        try:
            self._is_reading = True
            if self._is_stopped:
                self._stop_reading(None)
            elif first is not None:
                self._receive(first)
            await self._read_messages(receive)
        finally:
            self._is_reading = False

    async def _read_messages(self, receive: Receive) -> None:
        while (event := await receive())["type"] != "websocket.disconnect":
            began, useless = thread_time(), self._useless_messages
            try:
                self._receive(self._parse(event.get("text")))
            except InvalidMessage as invalid:
                if self._config.server is not None:
                    # A server that speaks something else would never end the stream.
                    self._foreign = f"it sent {_shown(event, invalid)}"
                    raise
                if invalid.close_code:
                    raise
                self._reject(invalid.problem)
            while len(self._answers) >= _MAX_ANSWERS and not self._is_closed:
                self._reader_wake = self.loop_handle.create_future()
                await self._reader_wake
            if self._useless_messages > useless and self._config.server is None:
                await self._rest(thread_time() - began)
            await yield_to_loop()  # thousands of messages may have arrived already
        self._error_of_close = event.get("error_of")

    async def _rest(self, spent: float) -> None:
        """Read no more for a while, after a message of no use that took so much processor time.

        Many sockets with such messages would otherwise take all turns of a server's loop. (A server
        may still send to a client what that has cancelled.)
        """
        rest = min(spent * _REST, _LONGEST_REST)
        if rest > _SHORTEST_REST:
            await sleep(rest)

    def _parse(self, text: str | None) -> Message:
        if text is None:
            raise InvalidMessage(415, "messages are text", 1003)
        if len(text) > self._config.max_message:
            limit = self._config.max_message
            raise InvalidMessage(413, f"a message has {limit} characters at most", 1009)
        return parse_message(text)

    async def _on_connect(self) -> None:
        try:
            assert self._config.on_connect is not None
            returned = self._config.on_connect(self.peer)
            if returned is not None:
                await returned
        except BaseException as error:
            self.problem(failure_of(error, self.loop_handle))

    async def _end_streams(self, tasks: list[Task[None]]) -> None:
        """Cancel the client's streams, and fail the subscriptions to what it publishes."""
        self._is_closed = True
        if self._reading_timer is not None:
            self._reading_timer.cancel()
        subscribers = [*self._subscribers.values(), *self._cleaning]
        for subscriber in subscribers:
            subscriber.cancel()
            if subscriber.task is not None:
                tasks.append(subscriber.task)
        for subscription in [*self._subscriptions.values()]:
            subscription.fail(self.lost())
        for task in tasks:
            cancel_task(task)
        await wait_settled(*tasks)
        for subscriber in subscribers:
            await subscriber.aclose()

    # -- messages of the other end -----------------------------------------------------------------
    def _receive(self, message: Message) -> None:
        kind = message.type
        if message.id is None:
            if self._config.server is not None and not message.detail:
                raise InvalidMessage(400, "an error has a status and a detail")
            self._peer_error = message.detail
            self._count_useless()
        elif kind == "subscribe":
            self._subscribe(message)
        elif kind in ("request", "cancel"):
            subscriber = self._subscribers.get(message.id)
            if subscriber is None:
                self._count_useless()
            elif kind == "cancel":
                subscriber.cancel()
                if not subscriber.has_sent:  # the most expensive of all useless messages
                    self._count_useless()
            elif isinstance(n := parse_demand(message.n), Problem):
                self.send_first(subscriber.fail(n))
            else:
                subscriber.add_demand(n)
        elif (subscription := self._subscriptions.get(message.id)) is None:
            self._count_useless()
        else:
            self.count_useful()
            subscription.receive(message)

    def _subscribe(self, message: Message) -> None:
        id, config = message.id, self._config
        assert id is not None
        if id in self._subscribers:
            self._reject(Problem(409, f"the id {id!r} is in use"))
            return
        n, found = parse_demand(message.n, least=0), config.router.find(message.route)
        if isinstance(n, Problem):
            self._refuse(id, n)
        elif self._is_full():
            detail = f"there are {config.max_streams} streams on this socket, its most"
            self._refuse(id, Problem(429, detail))
        elif found is None:
            self._refuse(id, Problem(404, "there is no such route"))
        else:
            handler, values = found
            subscriber = self._subscribers[id] = SocketSubscriber(self, id)
            if n:
                subscriber.add_demand(n)
            subscriber.begin(partial(self._call, handler, values, message))

    def _is_full(self) -> bool:
        """Whether there are all streams that may be; a stream is one until it has cleaned up."""
        most = self._config.max_streams
        if len(self._subscribers) + len(self._cleaning) >= most:
            self._cleaning = [each for each in self._cleaning if not each.is_clean]
        return len(self._subscribers) + len(self._cleaning) >= most

    def _call(self, handler: Handler, values: dict[str, str], message: Message) -> Any:
        """Call *handler*, which returns the stream."""
        request: Any = SocketRequest(handler, message.route, message.params, self.peer)
        return handler(request, handler.route_arguments(values))

    def _refuse(self, id: Id, problem: Problem) -> None:
        """Answer a subscription with an error."""
        self.counters.failed += 1
        self.send_first(format_error(id, problem))
        self._count_useless()

    def _reject(self, problem: Problem) -> None:
        """Answer an invalid message with an error of the socket."""
        self.send_first(format_error(None, problem))
        self._count_useless()

    def _count_useless(self) -> None:
        """Count a useless message; too many of them close the socket."""
        self._useless_messages += 1
        if self._useless_messages > self._config.max_useless:
            raise InvalidMessage(429, "too many messages were of no use", 1008)

    def count_useful(self) -> None:
        """Let an element, sent or received, offset one useless message."""
        self._useless_messages = max(0, self._useless_messages - 1)

    # -- for the streams ---------------------------------------------------------------------------
    def schedule(self, stream: Stream) -> None:
        """Write the messages of *stream* as soon as the others have been served."""
        if not stream.is_scheduled:
            stream.is_scheduled = True
            self._scheduled.append(stream)
            _wake(self._writer_wake)

    def send_first(self, text: str) -> None:
        """Write *text* before the messages of any stream."""
        self._answers.append(text)
        _wake(self._writer_wake)

    def remove(self, subscriber: SocketSubscriber) -> None:
        """Free the id of a stream that has ended."""
        del self._subscribers[subscriber.id]
        if not subscriber.is_clean:
            self._cleaning.append(subscriber)

    def register(self, stream: PeerSubscription) -> int:
        """Assign an id, or 0 when the client has disconnected."""
        if self._is_closed:
            return 0
        self._last_id += 1
        self._subscriptions[self._last_id] = stream
        return self._last_id

    def unregister(self, stream: PeerSubscription) -> None:
        self._subscriptions.pop(stream.id, None)

    def problem(self, error: BaseException) -> Problem:
        """Return what the client receives for *error*."""
        if explicit := _problem_of_stream_error(error):
            return explicit
        # A loss while this socket is open is that of another one, whose elements a stream relays.
        loss = ClientDisconnected if self._config.server is None else SocketLost
        report = not (self._is_closed and isinstance(error, loss))
        context = "a stream on a WebSocket failed"
        return self._config.errors.problem(error, self.loop_handle, context, report=report)

    # -- messages to the other end -----------------------------------------------------------------
    async def _write(self) -> None:
        try:
            async with SendLimit(self.loop_handle, self._send, self._config.send_timeout) as limit:
                await self._write_messages(limit.send)
        except TimeoutError:  # of the limit: the other end does not read, and loses its place
            self._stop_reading(None)
        except OSError:  # what servers raise after a disconnect
            self._stop_reading_later(None)
        except Exception as error:
            try:
                await self._close(_INTERNAL_ERROR)
            except Exception:
                # Some servers raise other errors than OSError after a disconnect, before the
                # reader is notified of it.
                self._stop_reading_later(error)
            else:
                self._stop_reading(error)
        finally:
            self._is_closed = True
            _wake(self._reader_wake)

    async def _write_messages(self, send: Send) -> None:
        while True:
            for text in self._next_messages():
                await send({"type": "websocket.send", "text": text})
                self.counters.bytes += len(text)
            if self._answers or self._scheduled:
                # The send of some servers never suspends: let other tasks run.
                await yield_to_loop()
                continue
            self._writer_wake = self.loop_handle.create_future()
            await self._writer_wake

    def stop(self) -> None:
        """End all streams and close the socket, since the server stops."""
        self._is_stopped = True
        self._stop_reading(None)

    async def _part(self, writer: Task[None], why: Problem, code: int, seconds: float) -> None:
        """Close the socket with *code*, after the answers that wait, and an error that says why.

        A client that does not read is waited for *seconds*, each time.
        """
        for subscriber in [*self._subscribers.values()]:
            subscriber.cancel()  # its elements would come after the error
        self.send_first(format_error(None, why))
        await self._flush(writer, seconds)
        # The client has closed the socket at the same time, or reads nothing.
        with suppress(OSError, RuntimeError):
            await self._close(code, seconds)

    async def _close(self, code: int, seconds: float = _FLUSH_TIMEOUT) -> None:
        """Close the socket; a client that does not read is waited for *seconds*."""
        async with timeout(seconds):
            await self._send({"type": "websocket.close", "code": code})

    def _stop_reading_later(self, error: Exception | None) -> None:
        """Report *error*, and stop reading, unless the server notifies of a disconnect first."""
        if self._is_reading:
            self._reading_timer = self.loop_handle.call_later(
                _FLUSH_TIMEOUT, self._stop_reading, error
            )

    def _stop_reading(self, error: Exception | None) -> None:
        """End the socket, to which nothing can be sent any more, and report the cause."""
        if error is not None:
            self.problem(error)
        if self._is_reading:
            self._reading.reschedule(self.loop_handle.time())

    def _next_messages(self) -> Iterator[str]:
        """Generate all answers, then the messages of the stream that is due."""
        while self._answers:
            yield self._answers.popleft()
            if len(self._answers) < _MAX_ANSWERS:
                _wake(self._reader_wake)
        if self._scheduled:
            stream = self._scheduled.popleft()
            stream.is_scheduled = False
            if not stream.is_done:
                yield from stream.messages()

    async def _flush(self, writer: Task[None], seconds: float) -> None:
        """Wait until the answers have been sent, for a limited time, and stop the writer."""
        timer = self.loop_handle.call_later(seconds, writer.cancel)
        try:
            while self._answers and not writer.done():
                self._reader_wake = self.loop_handle.create_future()
                await self._reader_wake
        finally:
            timer.cancel()
            writer.cancel()
            await wait_settled(writer)


def _wake(waiter: Future[Any] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


def _shown(event: MutableMapping[str, Any], invalid: InvalidMessage) -> str:
    """Return the beginning of a message, and what is wrong with it."""
    content: str | bytes = event.get("bytes") or event.get("text") or ""
    more = " …" if len(content) > _MAX_SHOWN else ""
    return f"{content[:_MAX_SHOWN]!r}{more} ({invalid})"


def _reader(handler: Handler) -> Read:
    """Return what converts JSON to the class that the handler declares, if it declares one."""
    if not handler.is_typed:
        return None
    decode = handler.decoder(JSON)
    return lambda value: decode(json.dumps(value).encode())


def _problem_of_stream_error(error: BaseException) -> Problem | None:
    """Convert an error of RSocket that a handler raises for its peer."""
    if not isinstance(error, StreamFailed) or not is_for_peer(error):
        return None
    status = 400 if isinstance(error, RequestInvalid) else 500
    status = 503 if isinstance(error, RequestRejected) else status
    return Problem(status, error.data.decode("utf-8", "replace"))
