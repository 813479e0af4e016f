"""Flows as HTTP responses and over WebSockets, for any ASGI server or framework.

`sse`, `ndjson` and `stream` make an ASGI app from a flow; `websocket` serves many flows on one
socket, in the text protocol of docs/protocol.md. No framework is imported: an app is an endpoint of
a Starlette or FastAPI route, is mounted, or is served directly.
"""

from .formats import Event
from .http import HttpRequest
from .http_endpoint import javascript, ndjson, sse, stream
from .options import Counters, ResponseOptions
from .problem import ClientDisconnected, PeerFailed, Refused
from .text_protocol.streams import Peer
from .text_protocol.websocket_endpoint import websocket

__all__ = (
    "ClientDisconnected",
    "Counters",
    "Event",
    "HttpRequest",
    "Peer",
    "PeerFailed",
    "Refused",
    "ResponseOptions",
    "javascript",
    "ndjson",
    "sse",
    "stream",
    "websocket",
)
