"""Bytes to frames: `decode`, strict where it must be, lenient where the protocol wants it.

What must be zero is masked; unknown flags, and what follows a complete frame, are passed over.
"""

from collections.abc import Callable
from struct import Struct, error as StructError
from typing import Final, cast

from .errors import ProtocolError
from .frames import (
    MAX_31,
    MAX_63,
    Cancel,
    Error,
    ErrorCode,
    Ext,
    Frame,
    FrameType,
    KeepAlive,
    Lease,
    MetadataPush,
    Payload,
    PayloadFrame,
    RequestChannel,
    RequestFnf,
    RequestN,
    RequestResponse,
    RequestStream,
    Resume,
    ResumeOk,
    Setup,
)

__all__ = ("HEADER", "decode", "decode_body", "header")

HEADER: Final = 6
"""How many bytes every frame begins with: stream id, type and flags."""

# Half the time of calling Payload.
_new: Final = cast(
    "Callable[[type[Payload], tuple[bytes, bytes | None]], Payload]",
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]
)
_HEADER: Final = Struct(">IH")
_U16: Final = Struct(">H")
_U32: Final = Struct(">I")
_U64: Final = Struct(">Q")
_SETUP: Final = Struct(">HHII")
_LEASE: Final = Struct(">II")
_POSITIONS: Final = Struct(">QQ")

IGNORE, METADATA, FOLLOWS, COMPLETE, NEXT = 0x200, 0x100, 0x80, 0x40, 0x20
RESUME = RESPOND = FOLLOWS
LEASE = COMPLETE


def header(frame: bytes | memoryview) -> tuple[int, int, int]:
    """Stream id, type and flags of *frame*."""
    if len(frame) < HEADER:
        raise ProtocolError(f"a frame of {len(frame)} bytes is shorter than its header")
    stream_id, bits = _HEADER.unpack_from(frame)
    return stream_id & MAX_31, bits >> 10, bits & 0x3FF


def decode(frame: bytes | memoryview) -> Frame | None:
    """Read one *frame*, given without its length."""
    return decode_body(*header(frame), bytes(frame))


def decode_body(stream_id: int, kind: int, flags: int, frame: bytes) -> Frame | None:
    """Read a *frame* whose `header` has been read."""
    reader = _READERS.get(kind)
    try:
        if reader is None:
            raise ProtocolError(f"a frame of the unknown type 0x{kind:02X}")
        return reader(stream_id, flags, frame[HEADER:])
    except StructError:
        problem = f"a {FrameType(kind).name} frame of {len(frame)} bytes is cut short"
    except ProtocolError as error:
        if kind == FrameType.SETUP or not flags & IGNORE:
            raise
        problem = str(error)
    if kind == FrameType.SETUP:
        raise ProtocolError(problem, ErrorCode.INVALID_SETUP)
    if flags & IGNORE:
        return None
    raise ProtocolError(problem)


def _payload(flags: int, body: bytes) -> Payload:
    if not flags & METADATA:
        return _new(Payload, (body, None))
    length = _u24(body)
    end = 3 + length
    if end > len(body):
        raise ProtocolError(f"metadata of {length} bytes in what is left of a frame: {len(body)}")
    return _new(Payload, (body[end:], body[3:end]))


def _u24(body: bytes) -> int:
    if len(body) < 3:
        raise ProtocolError("the frame ends where the length of its metadata should be")
    return body[0] << 16 | body[1] << 8 | body[2]


def _setup(stream_id: int, flags: int, body: bytes) -> Setup:
    del stream_id
    major, minor, keepalive, lifetime = _SETUP.unpack_from(body)
    rest = body[_SETUP.size :]
    token = None
    if flags & RESUME:
        token, rest = _token(rest)
    metadata_mime, rest = _mime(rest)
    data_mime, rest = _mime(rest)
    try:
        payload = _payload(flags, rest)
    except ProtocolError as error:
        raise ProtocolError(f"SETUP: {error}", ErrorCode.INVALID_SETUP) from None
    setup = Setup(
        keepalive & MAX_31,
        lifetime & MAX_31,
        metadata_mime,
        data_mime,
        payload,
        token,
        bool(flags & LEASE),
        (major, minor),
    )
    if not setup.keepalive or not setup.lifetime:
        message = "SETUP: keepalive interval and lifetime must be greater than zero"
        raise ProtocolError(message, ErrorCode.INVALID_SETUP)
    return setup


def _token(body: bytes) -> tuple[bytes, bytes]:
    (length,) = _U16.unpack_from(body)
    end = 2 + length
    if end > len(body):
        message = f"a token of {length} bytes does not fit its frame"
        raise ProtocolError(message, ErrorCode.INVALID_SETUP)
    return body[2:end], body[end:]


def _mime(body: bytes) -> tuple[str, bytes]:
    end = 1 + body[0] if body else 1
    if end > len(body):
        raise ProtocolError("SETUP ends within a MIME type", ErrorCode.INVALID_SETUP)
    try:
        return str(body[1:end], "ascii"), body[end:]
    except UnicodeDecodeError:
        message = "SETUP: a MIME type that is not ASCII"
        raise ProtocolError(message, ErrorCode.INVALID_SETUP) from None


def _lease(stream_id: int, flags: int, body: bytes) -> Lease:
    del stream_id
    ttl, requests = _LEASE.unpack_from(body)
    metadata = body[8:] if flags & METADATA else None
    return Lease(ttl & MAX_31, requests & MAX_31, metadata)


def _keepalive(stream_id: int, flags: int, body: bytes) -> KeepAlive:
    del stream_id
    (position,) = _U64.unpack_from(body)
    return KeepAlive(bool(flags & RESPOND), position & MAX_63, body[8:])


def _request_response(stream_id: int, flags: int, body: bytes) -> RequestResponse:
    return RequestResponse(stream_id, _payload(flags, body), bool(flags & FOLLOWS))


def _request_fnf(stream_id: int, flags: int, body: bytes) -> RequestFnf:
    return RequestFnf(stream_id, _payload(flags, body), bool(flags & FOLLOWS))


def _request_stream(stream_id: int, flags: int, body: bytes) -> RequestStream:
    (n,) = _U32.unpack_from(body)
    return RequestStream(stream_id, n & MAX_31, _payload(flags, body[4:]), bool(flags & FOLLOWS))


def _request_channel(stream_id: int, flags: int, body: bytes) -> RequestChannel:
    (n,) = _U32.unpack_from(body)
    payload = _payload(flags, body[4:])
    follows, complete = bool(flags & FOLLOWS), bool(flags & COMPLETE)
    return RequestChannel(stream_id, n & MAX_31, payload, follows, complete)


def _request_n(stream_id: int, flags: int, body: bytes) -> RequestN:
    del flags
    return RequestN(stream_id, _U32.unpack_from(body)[0] & MAX_31)


def _cancel(stream_id: int, flags: int, body: bytes) -> Cancel:
    del flags, body
    return Cancel(stream_id)


def _payload_frame(stream_id: int, flags: int, body: bytes) -> PayloadFrame:
    complete = bool(flags & COMPLETE)
    follows = bool(flags & FOLLOWS) and not complete
    return PayloadFrame(stream_id, _payload(flags, body), bool(flags & NEXT), complete, follows)


def _error(stream_id: int, flags: int, body: bytes) -> Error:
    del flags
    return Error(stream_id, _U32.unpack_from(body)[0], body[4:])


def _metadata_push(stream_id: int, flags: int, body: bytes) -> MetadataPush:
    del stream_id, flags
    return MetadataPush(body)


def _resume(stream_id: int, flags: int, body: bytes) -> Resume:
    del stream_id, flags
    (major, minor) = _U16.unpack_from(body)[0], _U16.unpack_from(body, 2)[0]
    token, rest = _token(body[4:])
    received, first = _POSITIONS.unpack_from(rest)
    return Resume(token, received & MAX_63, first & MAX_63, (major, minor))


def _resume_ok(stream_id: int, flags: int, body: bytes) -> ResumeOk:
    del stream_id, flags
    return ResumeOk(_U64.unpack_from(body)[0] & MAX_63)


def _ext(stream_id: int, flags: int, body: bytes) -> Ext:
    (extended,) = _U32.unpack_from(body)
    ignore, metadata = bool(flags & IGNORE), bool(flags & METADATA)
    return Ext(stream_id, extended & MAX_31, body[4:], ignore, metadata)


_READERS: Final[dict[int, Callable[[int, int, bytes], Frame]]] = {
    FrameType.SETUP: _setup,
    FrameType.LEASE: _lease,
    FrameType.KEEPALIVE: _keepalive,
    FrameType.REQUEST_RESPONSE: _request_response,
    FrameType.REQUEST_FNF: _request_fnf,
    FrameType.REQUEST_STREAM: _request_stream,
    FrameType.REQUEST_CHANNEL: _request_channel,
    FrameType.REQUEST_N: _request_n,
    FrameType.CANCEL: _cancel,
    FrameType.PAYLOAD: _payload_frame,
    FrameType.ERROR: _error,
    FrameType.METADATA_PUSH: _metadata_push,
    FrameType.RESUME: _resume,
    FrameType.RESUME_OK: _resume_ok,
    FrameType.EXT: _ext,
}
