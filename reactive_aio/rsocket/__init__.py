"""RSocket 1.0: Reactive Streams over a network.

`connect` gives a `Requester`, whose streams are flows; `serve` answers by a `Router`; `loopback`
has both in memory. Demand is the application's own, on both sides and on the wire.

`protocol` is what is said on the wire, as a state machine without I/O; `transports` are what moves
its bytes; `driver` brings both together with the clock and the application.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .payloads import BYTES, JSON, TEXT, Codec
from .protocol.connection import Connection
from .protocol.errors import (
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
from .protocol.metadata import Bearer, Simple
from .protocol.resume import Resumption, Sessions
from .protocol.states import Model
from .uri import Address

if TYPE_CHECKING:
    from .client import connect
    from .requester import Requester
    from .routing import Request, Router
    from .server import Server, loopback, serve

__all__ = (
    "BYTES",
    "JSON",
    "TEXT",
    "Address",
    "Bearer",
    "Codec",
    "Connection",
    "ConnectionLost",
    "ErrorCode",
    "Limits",
    "Model",
    "NoLease",
    "NoStreamLeft",
    "Payload",
    "ProtocolError",
    "Request",
    "RequestCanceled",
    "RequestInvalid",
    "RequestRejected",
    "Requester",
    "ResumeRejected",
    "Resumption",
    "Router",
    "Server",
    "Sessions",
    "Setup",
    "SetupRejected",
    "Simple",
    "StreamFailed",
    "connect",
    "error_of",
    "loopback",
    "serve",
)

# The protocol must be importable where there is no event loop; who asks for these has one.
_DRIVEN = {
    "Request": "routing",
    "Requester": "requester",
    "Router": "routing",
    "Server": "server",
    "connect": "client",
    "loopback": "server",
    "serve": "server",
}


def __getattr__(name: str) -> Any:
    module = _DRIVEN.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{module}", __name__), name)
