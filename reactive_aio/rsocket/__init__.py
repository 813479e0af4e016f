"""RSocket 1.0: Reactive Streams over a network.

`connect` gives a `Requester`, whose streams are flows; `serve` answers by a `Router`; `loopback`
has both in memory. Demand is the application's own, on both sides and on the wire.

`protocol` is what is said on the wire, as a state machine without I/O; `transports` are what moves
its bytes; `driver` brings both together with the clock and the application.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .payloads import BYTES, JSON, MSGPACK, TEXT, Codec, PayloadError, typed
from .protocol.connection import Connection
from .protocol.errors import (
    ApplicationError,
    ConnectionLost,
    NoLease,
    NoStreamLeft,
    ProtocolError,
    RequestCanceled,
    RequestInvalid,
    RequestRejected,
    ResumeRejected,
    SetupRejected,
    StreamFailed,
    error_of,
)
from .protocol.frames import ErrorCode, Payload, Setup
from .protocol.limits import Limits
from .protocol.metadata import BearerToken, MetadataItem, OtherCredentials, SimpleAuth
from .protocol.resume import Resumption, Sessions
from .protocol.stream_states import InteractionModel
from .uri import Address

if TYPE_CHECKING:
    from .asgi_application import AsgiApp, asgi_app
    from .auth import ConnectingClient
    from .client import Client, ClientOptions, connect
    from .leases import Lease
    from .request import Request
    from .requester import Requester
    from .responder import ResponderOptions, RouterResponder
    from .routing import Router
    from .server import Server, loopback, serve

__all__ = (
    "BYTES",
    "JSON",
    "MSGPACK",
    "TEXT",
    "Address",
    "ApplicationError",
    "AsgiApp",
    "BearerToken",
    "Client",
    "ClientOptions",
    "Codec",
    "ConnectingClient",
    "Connection",
    "ConnectionLost",
    "ErrorCode",
    "InteractionModel",
    "Lease",
    "Limits",
    "MetadataItem",
    "NoLease",
    "NoStreamLeft",
    "OtherCredentials",
    "Payload",
    "PayloadError",
    "ProtocolError",
    "Request",
    "RequestCanceled",
    "RequestInvalid",
    "RequestRejected",
    "Requester",
    "ResponderOptions",
    "ResumeRejected",
    "Resumption",
    "Router",
    "RouterResponder",
    "Server",
    "Sessions",
    "Setup",
    "SetupRejected",
    "SimpleAuth",
    "StreamFailed",
    "asgi_app",
    "connect",
    "error_of",
    "loopback",
    "serve",
    "typed",
)

# The protocol must be importable where there is no event loop; who asks for these has one.
_DRIVEN = {
    "AsgiApp": "asgi_application",
    "ConnectingClient": "auth",
    "Client": "client",
    "Lease": "leases",
    "ResponderOptions": "responder",
    "Request": "request",
    "Requester": "requester",
    "Router": "routing",
    "RouterResponder": "responder",
    "Server": "server",
    "ClientOptions": "client",
    "asgi_app": "asgi_application",
    "connect": "client",
    "loopback": "server",
    "serve": "server",
}


def __getattr__(name: str) -> Any:
    module = _DRIVEN.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{module}", __name__), name)
