"""A client's subscription as the request of a route's handler."""

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
from .streams import Peer

if TYPE_CHECKING:
    from ...flow import Flow
    from ...rsocket.routing import Handler

Read = Callable[[Any], Any] | None

__all__ = ("SocketRequest", "call_handler", "problem_of_stream_error")


class SocketRequest:
    """The request that a handler may take: as with RSocket, and the handshake."""

    __slots__ = ("_params", "_read_element", "data", "payload", "peer", "route", "user")

    def __init__(self, handler: "Handler", route: str, params: Any, peer: Peer) -> None:
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


def call_handler(
    handler: "Handler", values: dict[str, str], route: str, params: Any, peer: Peer
) -> Any:
    """Call *handler*, which returns the stream."""
    request: Any = SocketRequest(handler, route, params, peer)
    return handler(request, handler.route_arguments(values))


def _reader(handler: "Handler") -> Read:
    """Return what converts JSON to the class that the handler declares, if it declares one."""
    if not handler.is_typed:
        return None
    decode = handler.decoder(JSON)
    return lambda value: decode(json.dumps(value).encode())


def problem_of_stream_error(error: BaseException) -> Problem | None:
    """Convert an error of RSocket that a handler raises for its peer."""
    if not isinstance(error, StreamFailed) or isinstance(error, ConnectionLost):
        return None
    status = 400 if isinstance(error, RequestInvalid) else 500
    status = 503 if isinstance(error, RequestRejected) else status
    return Problem(status, error.data.decode("utf-8", "replace"))
