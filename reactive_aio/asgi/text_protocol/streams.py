"""The streams of a socket: those the client subscribes to, and those it publishes."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final

from ..._core.demand import Demand
from ..._core.failures import is_cancelled_here
from ..._core.flow_subscription import FlowSubscription
from ..._core.loop import cancel_task
from ...errors import NotAnElement, RuleViolation
from ...rsocket.serving.routing import answers_of
from ...stage import Downstream, from_push
from ..function_errors import failure_of
from ..http import HttpRequest
from ..problem import PeerFailed, Problem
from .messages import (
    MAX_SAFE_INTEGER,
    Id,
    Message,
    format_error,
    format_message,
    require_unicode,
)

if TYPE_CHECKING:
    from ..._core.loop import Task
    from ...flow import Flow
    from ...spec import Subscription
    from .multiplexer import StreamMultiplexer

PREFETCH: Final = 16
"""The number of elements requested ahead of the socket."""
_QUANTUM: Final = 8  # messages of a stream before the next stream is served


class SocketSubscriber:
    """The subscriber that buffers a flow's elements until the socket can take them.

    The client's demand reaches the flow in small portions, as the buffer has room: a client that
    requests everything and does not read costs at most `PREFETCH` elements.
    """

    def __init__(self, socket: "StreamMultiplexer", id: Id) -> None:
        self.id: Id = id
        self.is_scheduled: bool = False
        """Whether it waits for the writer of the socket."""
        self.is_done: bool = False
        self.has_sent: bool = False
        """Whether an element has been sent."""
        self.task: Task[None] | None = None
        """Awaits the handler, if that is asynchronous."""
        self._socket = socket
        self._head = format_message("next", id)[:-1] + ',"value":'  # of the message of an element
        self._demand = Demand()
        self._outstanding = 0
        self._elements: deque[Any] = deque()
        self._upstream_is_done = False
        self._error: BaseException | None = None
        self._subscription: Subscription | None = None
        socket.counters.open += 1
        socket.counters.opened += 1

    # -- the beginning -----------------------------------------------------------------------------
    def begin(self, make: Callable[[], Any]) -> None:
        """Subscribe to what *make* returns, which may have to be awaited."""
        try:
            made = make()
            if isawaitable(made):
                self.task = self._socket.loop_handle.create_task(
                    self._subscribe_later(made), f"asgi: stream {self.id}"
                )
            else:
                answers_of(made).subscribe(self)
        except BaseException as error:
            self.on_error(failure_of(error, self._socket.loop_handle))

    async def _subscribe_later(self, made: Awaitable[Any]) -> None:
        try:
            found = await made
            if not self.is_done:
                answers_of(found).subscribe(self)
        except BaseException as error:
            if not self.is_done and is_cancelled_here(error):
                self.on_error(RuntimeError("the task that makes the stream was cancelled"))
            self.on_error(failure_of(error, self._socket.loop_handle))

    # -- the client's side -------------------------------------------------------------------------
    def add_demand(self, n: int) -> None:
        self._demand.add(n)
        self._request()

    def cancel(self) -> None:
        if not self.is_done:
            self._socket.counters.cancelled += 1
            self._stop()

    def fail(self, problem: Problem) -> str:
        """End the stream with *problem*; return the message for the client."""
        self._socket.counters.failed += 1
        self._stop()
        return format_error(self.id, problem)

    @property
    def is_clean(self) -> bool:
        """Whether nothing of a stream that has ended runs any more."""
        if self.task is not None and not self.task.done():
            return False
        return not isinstance(self._subscription, FlowSubscription) or self._subscription.is_clean

    async def aclose(self) -> None:
        """Wait for the cleanup of a flow that has been cancelled."""
        if isinstance(self._subscription, FlowSubscription):
            await self._subscription.aclose()

    def _stop(self) -> None:
        self._finish()
        if self.task is not None:
            cancel_task(self.task)
        if self._subscription is not None and not self._upstream_is_done:
            self._subscription.cancel()
        self._socket.remove(self)

    def _finish(self) -> None:
        socket = self._socket
        self.is_done = True
        self._elements.clear()
        socket.counters.open -= 1
        socket.counters.outstanding -= self._outstanding
        self._outstanding = 0

    def _request(self) -> None:
        """Request as much of the client's demand as the buffer has room for."""
        if self._subscription is None or self._upstream_is_done or self.is_done:
            return
        room = PREFETCH - self._outstanding - len(self._elements)
        n = self._demand.take(room) if room > 0 else 0
        if n:
            self._outstanding += n
            self._socket.counters.outstanding += n
            self._subscription.request(n)

    # -- the socket's side -------------------------------------------------------------------------
    def messages(self) -> Iterator[str]:
        """Generate some messages, each after the previous one has been sent."""
        socket, elements = self._socket, self._elements
        for _ in range(_QUANTUM):
            if not elements:
                break
            try:
                encoded = socket.encode(elements.popleft())
                text = encoded if isinstance(encoded, str) else str(encoded, "utf-8")
                require_unicode(text)
            except BaseException as error:
                yield self.fail(socket.problem(failure_of(error, socket.loop_handle)))
                return
            socket.counters.elements += 1
            socket.count_useful()
            self.has_sent = True
            yield f"{self._head}{text}}}"
            if self.is_done:
                return
        if not elements and self._upstream_is_done:
            yield self._terminal_message()
        else:
            self._request()
            if elements:
                socket.schedule(self)

    def _terminal_message(self) -> str:
        self._finish()
        self._socket.remove(self)
        if self._error is None:
            self._socket.counters.completed += 1
            return format_message("complete", self.id)
        self._socket.counters.failed += 1
        return format_error(self.id, self._socket.problem(self._error))

    # -- the flow's side ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription", /) -> None:
        self._subscription = subscription
        if self.is_done:
            subscription.cancel()
        else:
            self._request()

    def on_next(self, element: Any, /) -> None:
        if not self.is_done:
            self._outstanding -= 1
            self._socket.counters.outstanding -= 1
            self._elements.append(element)
            self._socket.schedule(self)

    def on_error(self, error: BaseException, /) -> None:
        self._error = error
        self.on_complete()

    def on_complete(self) -> None:
        self._upstream_is_done = True
        if not self.is_done:
            self._socket.schedule(self)


class PeerSubscription(FlowSubscription):
    """A subscription to a stream that the other end publishes."""

    def __init__(
        self, socket: "StreamMultiplexer", downstream: Downstream[Any], route: str, params: Any
    ) -> None:
        self.id: Id = 0
        self.is_scheduled: bool = False
        self.is_done: bool = False
        self._socket = socket
        self._downstream = downstream
        self._route = route
        self._params = params
        self._is_announced = False
        self._unsent_demand = 0
        self._expected = Demand()

    # -- the flow's side ---------------------------------------------------------------------------
    def request(self, n: int, /) -> None:
        if self.is_done:
            return
        self.id = self.id or self._socket.register(self)
        if not self.id:
            self.fail(self._socket.lost())
            return
        self._expected.add(n)
        self._unsent_demand = min(self._unsent_demand + n, MAX_SAFE_INTEGER)
        self._socket.schedule(self)

    def cancel(self) -> None:
        if not self.is_done:
            self._finish()
            if self._is_announced:
                self._socket.send_first(format_message("cancel", self.id))

    def fail(self, error: BaseException) -> None:
        if not self.is_done:
            self._finish()
            self._downstream.fail(error)

    def _finish(self) -> None:
        self.is_done = True
        if self.id:
            self._socket.unregister(self)

    # -- the socket's side -------------------------------------------------------------------------
    def messages(self) -> Iterator[str]:
        """Generate the messages that are due."""
        n, self._unsent_demand = self._unsent_demand, 0
        if self._is_announced:
            yield format_message("request", self.id, n=n)
            return
        params = {} if self._params is None else {"params": self._params}
        try:
            message = format_message("subscribe", self.id, route=self._route, n=n, **params)
        except Exception as error:  # the params or the route cannot be sent as JSON
            self.fail(error)
            return
        self._is_announced = True
        yield message

    def receive(self, message: Message) -> None:
        """Handle a message of the other end for this stream."""
        if message.type == "complete":
            self._finish()
            self._downstream.complete()
        elif message.type == "error":
            what = f"the {self._socket.peer_name}'s stream"
            self.fail(PeerFailed(message.status, message.detail, what=what))
        elif message.value is None:
            name = self._socket.peer_name
            self._reject(NotAnElement(f"the {name} sent null, which is not an element"))
        elif not self._expected.take(1):
            name = self._socket.peer_name
            self._reject(RuleViolation("1.1", f"the {name} sent more than was requested"))
        else:
            self._downstream.push([message.value])

    def _reject(self, error: Exception) -> None:
        self._socket.send_first(format_message("cancel", self.id))
        self.fail(error)


Stream = SocketSubscriber | PeerSubscription


class Peer:
    """The other end of a socket: a client, which may publish as well, or a server."""

    def __init__(self, socket: "StreamMultiplexer", http: HttpRequest) -> None:
        self._socket = socket
        self.http: HttpRequest = http
        """The handshake; without content if the other end is a server."""
        self.user: Any = None
        """What ``authenticate`` returned; None if the other end is a server."""

    def request_stream(self, payload: Any = None, *, route: str) -> "Flow[Any]":
        """Return a flow of what the other end publishes as *route*, with *payload* as its params.

        Each subscription subscribes there with its first request, and requests exactly as much as
        its subscriber. It fails with `PeerFailed` when the other end reports an error, with
        `ClientDisconnected` or `SocketLost` when the socket closes, and with a `RuleViolation` when
        the other end sends more than was requested.
        """

        def open(downstream: Downstream[Any]) -> FlowSubscription:
            return PeerSubscription(self._socket, downstream, route, payload)

        name = f"{self._socket.peer_name}'s {route!r}"
        return from_push(open, name=name, holds=None)
