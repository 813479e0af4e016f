"""The frames of RSocket 1.0 as values; `codec` reads and writes them.

Each is immutable, and equal to another with the same fields. `Payload` is what applications send
and receive: bytes of data and perhaps bytes of metadata; empty metadata is not absent metadata.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

VERSION: Final = (1, 0)
MAX_31: Final = 2**31 - 1
MAX_63: Final = 2**63 - 1
MAX_FRAME: Final = 2**24 - 1
"""The length of the longest frame, on any transport."""


class FrameType(IntEnum):
    """The type of a frame: six bits of its header."""

    SETUP = 0x01
    LEASE = 0x02
    KEEPALIVE = 0x03
    REQUEST_RESPONSE = 0x04
    REQUEST_FNF = 0x05
    REQUEST_STREAM = 0x06
    REQUEST_CHANNEL = 0x07
    REQUEST_N = 0x08
    CANCEL = 0x09
    PAYLOAD = 0x0A
    ERROR = 0x0B
    METADATA_PUSH = 0x0C
    RESUME = 0x0D
    RESUME_OK = 0x0E
    EXT = 0x3F


class ErrorCode(IntEnum):
    """The codes of the protocol. Those from 0x301 to 0xFFFFFFFE are the applications'."""

    INVALID_SETUP = 0x001
    UNSUPPORTED_SETUP = 0x002
    REJECTED_SETUP = 0x003
    REJECTED_RESUME = 0x004
    CONNECTION_ERROR = 0x101
    CONNECTION_CLOSE = 0x102
    APPLICATION_ERROR = 0x201
    REJECTED = 0x202
    CANCELED = 0x203
    INVALID = 0x204


class Payload(NamedTuple):
    """The data of one element, and its metadata if not None."""

    data: bytes = b""
    metadata: bytes | None = None


EMPTY_PAYLOAD: Final = Payload()
PayloadTuple: TypeAlias = tuple[bytes, bytes | None]
"""A `Payload`, or a plain tuple of the same, which takes a tenth of the time to make."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The client's first frame: the terms of the connection. Times are in milliseconds."""

    keepalive: int = 20_000
    lifetime: int = 90_000
    metadata_mime: str = "message/x.rsocket.composite-metadata.v0"
    data_mime: str = "application/octet-stream"
    payload: Payload = EMPTY_PAYLOAD
    token: bytes | None = None
    lease: bool = False
    version: tuple[int, int] = VERSION


@dataclass(frozen=True, slots=True)
class Lease:
    """How many requests may be sent, and for how many milliseconds."""

    ttl: int
    requests: int
    metadata: bytes | None = None


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """A sign of life; with *respond* it requires an answer with the same data."""

    respond: bool
    position: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class RequestResponse:
    """Request one element."""

    stream_id: int
    payload: Payload = EMPTY_PAYLOAD
    follows: bool = False


@dataclass(frozen=True, slots=True)
class RequestFnf:
    """Send one element, without an answer."""

    stream_id: int
    payload: Payload = EMPTY_PAYLOAD
    follows: bool = False


@dataclass(frozen=True, slots=True)
class RequestStream:
    """Request a stream, and its first *n* elements."""

    stream_id: int
    n: int
    payload: Payload = EMPTY_PAYLOAD
    follows: bool = False


@dataclass(frozen=True, slots=True)
class RequestChannel:
    """Open streams in both directions: the first element of one, the first *n* requested."""

    stream_id: int
    n: int
    payload: Payload = EMPTY_PAYLOAD
    follows: bool = False
    complete: bool = False


@dataclass(frozen=True, slots=True)
class RequestN:
    """Request *n* more elements."""

    stream_id: int
    n: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel a stream."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class PayloadFrame:
    """An element (*next*), the end (*complete*), or both; or a fragment, if more *follows*."""

    stream_id: int
    payload: Payload = EMPTY_PAYLOAD
    next: bool = True
    complete: bool = False
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Error:
    """The end of a stream, or of the connection (stream 0), by an error."""

    stream_id: int
    code: int
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class MetadataPush:
    """Metadata for the whole connection."""

    metadata: bytes


@dataclass(frozen=True, slots=True)
class Resume:
    """The client's first frame on a new transport for an old session."""

    token: bytes
    last_received: int
    first_available: int
    version: tuple[int, int] = VERSION


@dataclass(frozen=True, slots=True)
class ResumeOk:
    """The session continues; frames from *last_received* on are sent again."""

    last_received: int


@dataclass(frozen=True, slots=True)
class Ext:
    """A frame of an extension; with *ignore*, a receiver that does not know it ignores it."""

    stream_id: int
    extended_type: int
    data: bytes = b""
    ignore: bool = False
    metadata: bool = False


RequestFrame: TypeAlias = RequestResponse | RequestFnf | RequestStream | RequestChannel
Frame: TypeAlias = (
    Setup
    | Lease
    | KeepAlive
    | RequestFrame
    | RequestN
    | Cancel
    | PayloadFrame
    | Error
    | MetadataPush
    | Resume
    | ResumeOk
    | Ext
)
