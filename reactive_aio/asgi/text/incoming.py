"""One stream that the server has subscribed to: what a client publishes, as a flow."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from ..._core.demand import Demand
from ...errors import NotAnElement, RuleViolation
from ...stage import Downstream, from_push
from ..problem import ClientLeft, PeerFailed
from ..request import HttpRequest
from .messages import MOST, Id, Message, write

if TYPE_CHECKING:
    from ...flow import Flow
    from ...spec import Subscription

__all__ = ("Incoming", "Intake", "Peer")


class Intake(Protocol):
    """What such a stream needs of its socket."""

    def ready(self, stream: Any, /) -> None: ...
    def enlist(self, stream: "Incoming", /) -> int:
        """Give it an id, or 0 when the client has left."""
        ...

    def delist(self, stream: "Incoming", /) -> None: ...
    def say(self, text: str, /) -> None: ...


class Incoming:
    """The subscription of a flow that a client feeds."""

    def __init__(
        self, intake: Intake, downstream: Downstream[Any], route: str, params: Any
    ) -> None:
        self.id: Id = 0
        self.queued: bool = False
        self.over: bool = False
        self._intake = intake
        self._downstream = downstream
        self._route = route
        self._params = params
        self._announced = False
        self._unsaid = 0  # demand that the client has not been told of
        self._expected = Demand()

    # -- the flow's side ---------------------------------------------------------------------------
    def request(self, n: int, /) -> None:
        if self.over:
            return
        self.id = self.id or self._intake.enlist(self)
        if not self.id:
            self.fail(ClientLeft())
            return
        self._expected.add(n)
        self._unsaid = min(self._unsaid + n, MOST)
        self._intake.ready(self)

    def cancel(self) -> None:
        if not self.over:
            self._over()
            if self._announced:
                self._intake.say(write("cancel", self.id))

    def fail(self, error: BaseException) -> None:
        if not self.over:
            self._over()
            self._downstream.fail(error)

    def _over(self) -> None:
        self.over = True
        if self.id:
            self._intake.delist(self)

    # -- the socket's side -------------------------------------------------------------------------
    def write(self) -> Iterator[str]:
        n, self._unsaid = self._unsaid, 0
        if self._announced:
            yield write("request", self.id, n=n)
            return
        self._announced = True
        params = {} if self._params is None else {"params": self._params}
        yield write("subscribe", self.id, route=self._route, n=n, **params)

    def take(self, message: Message) -> None:
        """What the client says of this stream."""
        if message.type == "complete":
            self._over()
            self._downstream.complete()
        elif message.type == "error":
            self.fail(PeerFailed(message.status, message.detail))
        elif message.value is None:
            self._violated(NotAnElement("the client sent null, which is not an element"))
        elif not self._expected.take(1):
            self._violated(RuleViolation("1.1", "the client sent more than it was asked for"))
        else:
            self._downstream.push([message.value])

    def _violated(self, error: Exception) -> None:
        self._intake.say(write("cancel", self.id))
        self.fail(error)


class Peer:
    """The client at the other end of a socket, which may publish as well."""

    def __init__(self, intake: Intake, http: HttpRequest, user: Any) -> None:
        self._intake = intake
        self.http: HttpRequest = http
        """The handshake."""
        self.user: Any = user
        """What ``admit`` returned."""

    def request_stream(self, payload: Any = None, *, route: str) -> "Flow[Any]":
        """What the client publishes as *route*, asked for with *payload* as its params.

        Each subscription asks the client anew, when its subscriber first requests, and for exactly
        as much. It fails with `PeerFailed` when the client says so, with `ClientLeft` when the
        socket is closed, and with a `RuleViolation` when the client sends more than was asked for.
        """

        def open(downstream: Downstream[Any]) -> "Subscription":
            return Incoming(self._intake, downstream, route, payload)

        return from_push(open, name=f"client's {route!r}", holds=None)
