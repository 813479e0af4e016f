"""RSocket 1.0: Reactive Streams over a network.

`connect` gives a `Requester`, whose streams are flows; `serve` answers by a `Router`; `loopback`
has both in memory. Demand is the application's own, on both sides and on the wire.

Below stands the protocol, without a network.
`frames` and `codec` say what frames are and how they are written, `framing` and `fragments` how
they are cut, `metadata` what applications put beside their data. `Connection` is one end of a
connection as a state machine: bytes and deadlines go in, bytes and `events` come out. Whatever
moves the bytes — a socket, a WebSocket, a test — is its driver, and nothing here waits for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .connection import Connection
from .errors import (
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
from .frames import ErrorCode, Payload, Setup
from .limits import Limits
from .metadata import Bearer, Simple
from .payloads import BYTES, JSON, TEXT, Codec
from .resume import Resumption, Sessions
from .states import Model
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
