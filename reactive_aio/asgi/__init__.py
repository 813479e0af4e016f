"""Flows as HTTP responses and over WebSockets, for any ASGI server or framework.

`sse`, `ndjson` and `stream` make an ASGI app from a flow; `websocket` serves many flows on one
socket, in the text protocol of docs/protocol.md. An app is the endpoint of a route in Starlette or
FastAPI, is returned from a function of theirs, is mounted, or is served directly. `from_sse`,
`from_websocket` and `connect` are the clients; `websocket_messages` reads any other WebSocket.
"""

from sys import modules as _modules

from .._shared.foreign_options import explain_foreign_options as _explain_foreign_options
from .app_streams import AppStreams
from .formats import Event
from .http import HttpRequest
from .http_endpoint import javascript, ndjson, sse, stream
from .message_client import MessageOptions, websocket_messages
from .options import Counters, ResponseOptions
from .problem import ClientDisconnected, PeerFailed, Refused, SocketLost, SocketRefused
from .socket_client import SocketOptions
from .sse_client import EventStreamOptions, from_sse
from .text_protocol.client import ClientOptions, connect, from_websocket
from .text_protocol.streams import Peer
from .text_protocol.websocket_endpoint import websocket

__all__ = (
    "AppStreams",
    "ClientDisconnected",
    "ClientOptions",
    "Counters",
    "Event",
    "EventStreamOptions",
    "HttpRequest",
    "MessageOptions",
    "Peer",
    "PeerFailed",
    "Refused",
    "ResponseOptions",
    "SocketLost",
    "SocketOptions",
    "SocketRefused",
    "connect",
    "from_sse",
    "from_websocket",
    "javascript",
    "ndjson",
    "sse",
    "stream",
    "websocket",
    "websocket_messages",
)

_explain_foreign_options(_modules[__name__], __all__)
