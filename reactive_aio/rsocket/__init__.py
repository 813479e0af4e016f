"""RSocket 1.0: Reactive Streams over a network.

`connect` returns a `Requester`, whose streams are flows; `serve` serves a `Router`; `loopback` does
both in memory. The demand of the application is the demand on the wire, in both directions.

Its folders, each of which imports only those before it: `protocol` is the wire protocol as a state
machine without I/O; `link` connects it with a transport, the clock and the event loop; `requesting`
makes requests, and has the local ends of streams; `serving` finds the handler of a request and runs
it. Beside them are the client, the server, load balancing, and the command.
"""

from importlib import import_module
from sys import modules as _modules
from typing import TYPE_CHECKING, Any

from .._shared.foreign_options import explain_foreign_options as _explain_foreign_options
from .payloads import BYTES, JSON, MSGPACK, TEXT, Codec, PayloadError, typed
from .protocol.connection import Connection
from .protocol.errors import (
    ApplicationError,
    CertificateRejected,
    ConnectionLost,
    MustWait,
    NoLease,
    NoStreamLeft,
    ProtocolError,
    RequestCanceled,
    RequestInvalid,
    RequestRejected,
    ResumeRejected,
    SetupRejected,
    StreamFailed,
    TooManyRequests,
    error_of,
)
from .protocol.frames import ErrorCode, Payload, Setup
from .protocol.limits import Limits, MemoryBudget
from .protocol.metadata import BearerToken, MetadataItem, OtherCredentials, SimpleAuth
from .protocol.resume import Resumption, Sessions
from .protocol.stream_states import InteractionModel
from .uri import Address

if TYPE_CHECKING:
    from .balance import BalancedServer, ServerState
    from .client import Client, ClientOptions, connect
    from .link.transports.sockets import UnixPeer
    from .load_balancing import BalancedClient, connect_balanced
    from .requesting.interceptors import ClientInterceptor, OutgoingRequest
    from .requesting.received import Received
    from .requesting.requester import Requester
    from .requesting.requests import RequestOptions
    from .server import AsgiApp, Server, ServerOptions, asgi_app, loopback, serve
    from .serving.fire_and_forget import DroppedRequest
    from .serving.request import Interceptor, Request
    from .serving.responder import (
        ConnectingClient,
        ConnectionInterceptor,
        Lease,
        ResponderOptions,
        RouterResponder,
    )
    from .serving.route_stats import RouteStats, ServerStats
    from .serving.routing import Router

__all__ = (
    "BYTES",
    "JSON",
    "MSGPACK",
    "TEXT",
    "Address",
    "ApplicationError",
    "AsgiApp",
    "BalancedClient",
    "BalancedServer",
    "BearerToken",
    "CertificateRejected",
    "Client",
    "ClientInterceptor",
    "ClientOptions",
    "Codec",
    "ConnectingClient",
    "Connection",
    "ConnectionInterceptor",
    "ConnectionLost",
    "DroppedRequest",
    "ErrorCode",
    "InteractionModel",
    "Interceptor",
    "Lease",
    "Limits",
    "MemoryBudget",
    "MetadataItem",
    "MustWait",
    "NoLease",
    "NoStreamLeft",
    "OtherCredentials",
    "OutgoingRequest",
    "Payload",
    "PayloadError",
    "ProtocolError",
    "Received",
    "Request",
    "RequestCanceled",
    "RequestInvalid",
    "RequestOptions",
    "RequestRejected",
    "Requester",
    "ResponderOptions",
    "ResumeRejected",
    "Resumption",
    "RouteStats",
    "Router",
    "RouterResponder",
    "Server",
    "ServerOptions",
    "ServerState",
    "ServerStats",
    "Sessions",
    "Setup",
    "SetupRejected",
    "SimpleAuth",
    "StreamFailed",
    "TooManyRequests",
    "UnixPeer",
    "asgi_app",
    "connect",
    "connect_balanced",
    "error_of",
    "loopback",
    "serve",
    "typed",
)

# Imported on first use: the protocol is importable without an event loop.
_LAZY = {
    "balance": ("BalancedServer", "ServerState"),
    "client": ("Client", "ClientOptions", "connect"),
    "serving.fire_and_forget": ("DroppedRequest",),
    "requesting.interceptors": ("ClientInterceptor", "OutgoingRequest"),
    "load_balancing": ("BalancedClient", "connect_balanced"),
    "requesting.received": ("Received",),
    "serving.request": ("Interceptor", "Request"),
    "requesting.requester": ("Requester",),
    "requesting.requests": ("RequestOptions",),
    "serving.responder": (
        "ConnectingClient",
        "ConnectionInterceptor",
        "Lease",
        "ResponderOptions",
        "RouterResponder",
    ),
    "serving.route_stats": ("RouteStats", "ServerStats"),
    "serving.routing": ("Router",),
    "link.transports.sockets": ("UnixPeer",),
    "server": ("AsgiApp", "Server", "ServerOptions", "asgi_app", "loopback", "serve"),
}

_explain_foreign_options(_modules[__name__], vars().keys() & {*__all__})


def __getattr__(name: str) -> Any:
    for module, names in _LAZY.items():
        if name in names:
            found = import_module(f".{module}", __name__)
            _explain_foreign_options(found, names)
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
