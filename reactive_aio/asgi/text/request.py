"""One subscription of a client, as a handler of the router may want to see it."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...rsocket.payloads import JSON
from ...rsocket.protocol.errors import (
    ConnectionLost,
    RequestInvalid,
    RequestRejected,
    StreamFailed,
)
from ..problem import Problem
from ..request import HttpRequest
from .incoming import Peer

if TYPE_CHECKING:
    from ...flow import Flow
    from ...rsocket.handlers import Handler

Read = Callable[[Any], Any] | None

__all__ = ("SocketRequest", "of_rsocket", "start")


class SocketRequest:
    """What a handler may name: as with RSocket, and the handshake."""

    __slots__ = ("_params", "_read", "data", "payload", "peer", "route", "user")

    def __init__(self, route: str, params: Any, peer: Peer, read: Read, of_elements: Read) -> None:
        self.route: str = route
        self.data: bytes = b"" if params is None else b"null"
        """Whether there are params; with RSocket, the bytes that they came as."""
        self.payload: Any = params if read is None or params is None else read(params)
        """The params, read into the class with which the handler annotates its payload, if any."""
        self.peer: Peer = peer
        """For streams of the client."""
        self.user: Any = peer.user
        """What ``admit`` returned."""
        self._params = params
        self._read = of_elements

    @property
    def http(self) -> HttpRequest:
        """The handshake of the socket."""
        return self.peer.http

    @property
    def incoming(self) -> "Flow[Any]":
        """What the client publishes under the same route."""
        elements = self.peer.request_stream(self._params, route=self.route)
        return elements if self._read is None else elements.map(self._read)


def start(handler: "Handler", values: dict[str, str], route: str, params: Any, peer: Peer) -> Any:
    """Call *handler*; what it returns is the stream."""
    read = _reading(handler)
    of_params, of_elements = (read, None) if handler.takes_payload else (None, read)
    request: Any = SocketRequest(route, params, peer, of_params, of_elements)
    return handler(request, handler.route_arguments(values))


def _reading(handler: "Handler") -> Read:
    """How JSON is read into the class that the handler asks for; None if it asks for none."""
    if not handler.is_typed:
        return None
    decode = handler.decoder(JSON)
    return lambda value: decode(json.dumps(value).encode())


def of_rsocket(error: BaseException) -> Problem | None:
    """An error that a handler has for a peer, whatever the protocol."""
    if not isinstance(error, StreamFailed) or isinstance(error, ConnectionLost):
        return None
    status = 400 if isinstance(error, RequestInvalid) else 500
    status = 503 if isinstance(error, RequestRejected) else status
    return Problem(status, error.data.decode("utf-8", "replace"))
