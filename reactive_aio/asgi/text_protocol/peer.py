"""Peer: the client of a socket as a publisher, whose streams are flows."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from ..._core.demand import Demand
from ..._core.flow_subscription import FlowSubscription
from ...errors import NotAnElement, RuleViolation
from ...stage import Downstream, from_push
from ..problem import ClientDisconnected, PeerFailed
from ..request import HttpRequest
from .messages import MAX_SAFE_INTEGER, Id, Message, format_message

if TYPE_CHECKING:
    from ...flow import Flow

__all__ = ("Peer", "PeerSubscription", "SubscribingSocket")


class SubscribingSocket(Protocol):
    """What a `PeerSubscription` needs from its socket."""

    def schedule(self, stream: Any, /) -> None:
        """Write the messages of *stream* as soon as the others have been served."""
        ...

    def register(self, stream: "PeerSubscription", /) -> int:
        """Assign an id, or 0 when the client has disconnected."""
        ...

    def unregister(self, stream: "PeerSubscription", /) -> None: ...
    def send_first(self, text: str, /) -> None:
        """Write *text* before the messages of any stream."""
        ...


class PeerSubscription(FlowSubscription):
    """A subscription to a stream that the client publishes."""

    def __init__(
        self, socket: SubscribingSocket, downstream: Downstream[Any], route: str, params: Any
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
            self.fail(ClientDisconnected())
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
        self._is_announced = True
        params = {} if self._params is None else {"params": self._params}
        yield format_message("subscribe", self.id, route=self._route, n=n, **params)

    def receive(self, message: Message) -> None:
        """Handle a message of the client for this stream."""
        if message.type == "complete":
            self._finish()
            self._downstream.complete()
        elif message.type == "error":
            self.fail(PeerFailed(message.status, message.detail))
        elif message.value is None:
            self._reject(NotAnElement("the client sent null, which is not an element"))
        elif not self._expected.take(1):
            self._reject(RuleViolation("1.1", "the client sent more than was requested"))
        else:
            self._downstream.push([message.value])

    def _reject(self, error: Exception) -> None:
        self._socket.send_first(format_message("cancel", self.id))
        self.fail(error)


class Peer:
    """The client at the other end of a socket, which may publish as well."""

    def __init__(self, socket: SubscribingSocket, http: HttpRequest, user: Any) -> None:
        self._socket = socket
        self.http: HttpRequest = http
        """The handshake."""
        self.user: Any = user
        """What ``authenticate`` returned."""

    def request_stream(self, payload: Any = None, *, route: str) -> "Flow[Any]":
        """Return a flow of what the client publishes as *route*, with *payload* as its params.

        Each subscription subscribes at the client with its first request, and requests exactly as
        much as its subscriber. It fails with `PeerFailed` when the client reports an error, with
        `ClientDisconnected` when the socket closes, and with a `RuleViolation` when the client
        sends more than was requested.
        """

        def open(downstream: Downstream[Any]) -> FlowSubscription:
            return PeerSubscription(self._socket, downstream, route, payload)

        return from_push(open, name=f"client's {route!r}", holds=None)
