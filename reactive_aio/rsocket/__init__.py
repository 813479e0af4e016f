"""RSocket 1.0: Reactive Streams over a network. Here stands the protocol, without a network.

`frames` and `codec` say what frames are and how they are written, `framing` and `fragments` how
they are cut, `metadata` what applications put beside their data. `Connection` is one end of a
connection as a state machine: bytes and deadlines go in, bytes and `events` come out. Whatever
moves the bytes — a socket, a WebSocket, a test — is its driver, and nothing here waits for it.
"""

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
from .resume import Resumption, Sessions
from .states import Model

__all__ = (
    "Connection",
    "ConnectionLost",
    "ErrorCode",
    "Limits",
    "Model",
    "NoLease",
    "NoStreamLeft",
    "Payload",
    "ProtocolError",
    "RequestCanceled",
    "RequestInvalid",
    "RequestRejected",
    "ResumeRejected",
    "Resumption",
    "Sessions",
    "Setup",
    "SetupRejected",
    "StreamFailed",
    "error_of",
)
