"""Frames to bytes and back: the layout of RSocket 1.0, and nothing of what frames lead to.

`decode` takes a whole frame without its length and copies what it keeps. It returns a frame, or
None for a malformed one whose sender allows it to be ignored, or raises `ProtocolError`. Reserved
bits are masked; unknown flags, and bytes after a complete frame, are ignored. `encode` is the
inverse; a value that does not fit its field is a `ValueError`. `encode_payload` does the same for
requests and elements, which are sent by the thousand, and adds their length.
"""

from collections.abc import Callable, Iterable
from struct import Struct, error as StructError
from typing import Any, Final, TypeAlias, cast

from .errors import ProtocolError
from .frames import (
    MAX_31,
    MAX_63,
    MAX_FRAME,
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
    PayloadTuple,
    RequestChannel,
    RequestFnf,
    RequestFrame,
    RequestN,
    RequestResponse,
    RequestStream,
    Resume,
    ResumeOk,
    Setup,
)

HEADER: Final = 6
"""The size of every frame's header: stream id, type and flags."""
LENGTH_SIZE: Final = 3
"""The size of the length of a frame, which precedes it."""

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
_PREFIXED_HEADER: Final = Struct(">BHIH").pack
_DEMAND: Final = Struct(">xHIHI").pack
small_header: Final = Struct(">xHIH").pack
"""The length, stream id, and type and flags of a frame shorter than 64 KiB."""

# Flags. The meaning of the lower ones depends on the type of the frame.
IGNORE, METADATA, FOLLOWS, COMPLETE, NEXT = 0x200, 0x100, 0x80, 0x40, 0x20
RESUME = RESPOND = FOLLOWS
LEASE = COMPLETE
ELEMENT_BITS: Final = FrameType.PAYLOAD << 10 | NEXT
"""The type and the flags of an element."""
LAST_BITS: Final = ELEMENT_BITS | COMPLETE
_REQUEST_N_BITS: Final = FrameType.REQUEST_N << 10

Reader: TypeAlias = Callable[[int, int, bytes], Frame]
"""Makes a frame of its stream id, its flags and its body."""
Parts: TypeAlias = tuple[int, int, bytes]
Writer: TypeAlias = Callable[[Any], Parts]
"""The inverse."""


# -- bytes to frames -------------------------------------------------------------------------------
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
        message = f"a {FrameType(kind).name} frame of {len(frame)} bytes is cut short"
        problem = ProtocolError(message)
    except ProtocolError as error:
        problem = error
    if kind == FrameType.SETUP:
        problem.code = ErrorCode.INVALID_SETUP
    elif flags & IGNORE:
        return None
    raise problem


def _payload(flags: int, body: bytes) -> Payload:
    if not flags & METADATA:
        return _new(Payload, (body, None))
    if len(body) < 3:
        raise ProtocolError("the frame ends where the length of its metadata should be")
    end = 3 + int.from_bytes(body[:3], "big")
    if end > len(body):
        raise ProtocolError(f"metadata of {end - 3} bytes in what is left of a frame: {len(body)}")
    return _new(Payload, (body[end:], body[3:end]))


def _setup(_stream_id: int, flags: int, body: bytes) -> Setup:
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
        raise ProtocolError(f"SETUP: {error}") from None
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
        raise ProtocolError("SETUP: keepalive interval and lifetime must be greater than zero")
    return setup


def _token(body: bytes) -> tuple[bytes, bytes]:
    (length,) = _U16.unpack_from(body)
    end = 2 + length
    return body[2:end], body[end:]  # a token that is cut short leaves nothing of what must follow


def _mime(body: bytes) -> tuple[str, bytes]:
    end = 1 + body[0] if body else 1
    if end > len(body):
        raise ProtocolError("SETUP ends within its token or a MIME type")
    try:
        return str(body[1:end], "ascii"), body[end:]
    except UnicodeDecodeError:
        raise ProtocolError("SETUP: a MIME type that is not ASCII") from None


def _lease(_stream_id: int, flags: int, body: bytes) -> Lease:
    ttl, requests = _LEASE.unpack_from(body)
    metadata = body[8:] if flags & METADATA else None
    return Lease(ttl & MAX_31, requests & MAX_31, metadata)


def _keepalive(_stream_id: int, flags: int, body: bytes) -> KeepAlive:
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


def _request_n(stream_id: int, _flags: int, body: bytes) -> RequestN:
    return RequestN(stream_id, _U32.unpack_from(body)[0] & MAX_31)


def _cancel(stream_id: int, _flags: int, _body: bytes) -> Cancel:
    return Cancel(stream_id)


def _payload_frame(stream_id: int, flags: int, body: bytes) -> PayloadFrame:
    complete = bool(flags & COMPLETE)
    follows = bool(flags & FOLLOWS) and not complete
    return PayloadFrame(stream_id, _payload(flags, body), bool(flags & NEXT), complete, follows)


def _error(stream_id: int, _flags: int, body: bytes) -> Error:
    return Error(stream_id, _U32.unpack_from(body)[0], body[4:])


def _metadata_push(_stream_id: int, _flags: int, body: bytes) -> MetadataPush:
    return MetadataPush(body)


def _resume(_stream_id: int, _flags: int, body: bytes) -> Resume:
    (major, minor) = _U16.unpack_from(body)[0], _U16.unpack_from(body, 2)[0]
    token, rest = _token(body[4:])
    received, first = _POSITIONS.unpack_from(rest)
    return Resume(token, received & MAX_63, first & MAX_63, (major, minor))


def _resume_ok(_stream_id: int, _flags: int, body: bytes) -> ResumeOk:
    return ResumeOk(_U64.unpack_from(body)[0] & MAX_63)


def _ext(stream_id: int, flags: int, body: bytes) -> Ext:
    (extended,) = _U32.unpack_from(body)
    ignore, metadata = bool(flags & IGNORE), bool(flags & METADATA)
    return Ext(stream_id, extended & MAX_31, body[4:], ignore, metadata)


# -- frames to bytes -------------------------------------------------------------------------------
def encode(frame: Frame) -> bytes:
    """Write *frame*, without its length; `ValueError` for what cannot be written."""
    kind, write = _WRITERS[type(frame)]
    stream_id, flags, body = write(frame)
    if not 0 <= stream_id <= MAX_31:
        raise ValueError(f"stream id {stream_id} does not fit 31 bits")
    encoded = _HEADER.pack(stream_id, kind << 10 | flags) + body
    if len(encoded) > MAX_FRAME:
        raise ValueError(f"a frame of {len(encoded)} bytes: more than {MAX_FRAME}; fragment it")
    return encoded


def _number(name: str, value: int, most: int, least: int = 0) -> int:
    if not least <= value <= most:
        raise ValueError(f"{name} must be from {least} to {most}, not {value}")
    return value


def _sized(name: str, value: bytes, width: int) -> bytes:
    _number(f"length of the {name}", len(value), (1 << 8 * width) - 1)
    return len(value).to_bytes(width, "big") + value


def _body(payload: Payload) -> tuple[int, bytes]:
    data, metadata = payload
    if metadata is None:
        return 0, data
    return METADATA, _sized("metadata", metadata, 3) + data


def _put_setup(frame: Setup) -> Parts:
    flags, body = _body(frame.payload)
    times = (
        _number("keepalive", frame.keepalive, MAX_31, 1),
        _number("lifetime", frame.lifetime, MAX_31, 1),
    )
    parts = [_SETUP.pack(*frame.version, *times)]
    if frame.token is not None:
        flags |= RESUME
        parts.append(_sized("token", frame.token, 2))
    parts += [
        _sized("MIME type", name.encode("ascii"), 1)
        for name in (frame.metadata_mime, frame.data_mime)
    ]
    return 0, flags | (LEASE if frame.lease else 0), b"".join([*parts, body])


def _put_lease(frame: Lease) -> Parts:
    numbers = _LEASE.pack(
        _number("ttl", frame.ttl, MAX_31), _number("requests", frame.requests, MAX_31)
    )
    if frame.metadata is None:
        return 0, 0, numbers
    return 0, METADATA, numbers + frame.metadata


def _put_keepalive(frame: KeepAlive) -> Parts:
    position = _U64.pack(_number("position", frame.position, MAX_63))
    return 0, RESPOND if frame.respond else 0, position + frame.data


def _put_payload(frame: RequestFrame | PayloadFrame) -> Parts:
    flags, body = _body(frame.payload)
    if isinstance(frame, RequestStream | RequestChannel):
        body = _U32.pack(_number("n", frame.n, MAX_31, 1)) + body
    if isinstance(frame, RequestChannel | PayloadFrame) and frame.complete:
        flags |= COMPLETE
    if isinstance(frame, PayloadFrame) and frame.next:
        flags |= NEXT
    return frame.stream_id, flags | (FOLLOWS if frame.follows else 0), body


def _put_request_n(frame: RequestN) -> Parts:
    return frame.stream_id, 0, _U32.pack(_number("n", frame.n, MAX_31, 1))


def _put_cancel(frame: Cancel) -> Parts:
    return frame.stream_id, 0, b""


def _put_error(frame: Error) -> Parts:
    return frame.stream_id, 0, _U32.pack(_number("code", frame.code, 2**32 - 1)) + frame.data


def _put_metadata_push(frame: MetadataPush) -> Parts:
    return 0, METADATA, frame.metadata


def _put_resume(frame: Resume) -> Parts:
    positions = _POSITIONS.pack(
        _number("last_received", frame.last_received, MAX_63),
        _number("first_available", frame.first_available, MAX_63),
    )
    version = b"".join(_U16.pack(number) for number in frame.version)
    return 0, 0, version + _sized("token", frame.token, 2) + positions


def _put_resume_ok(frame: ResumeOk) -> Parts:
    return 0, 0, _U64.pack(_number("last_received", frame.last_received, MAX_63))


def _put_ext(frame: Ext) -> Parts:
    flags = (IGNORE if frame.ignore else 0) | (METADATA if frame.metadata else 0)
    extended = _number("extended_type", frame.extended_type, MAX_31)
    return frame.stream_id, flags, _U32.pack(extended) + frame.data


_LAYOUTS: Final[tuple[tuple[FrameType, type[Any], Reader, Writer], ...]] = (
    (FrameType.SETUP, Setup, _setup, _put_setup),
    (FrameType.LEASE, Lease, _lease, _put_lease),
    (FrameType.KEEPALIVE, KeepAlive, _keepalive, _put_keepalive),
    (FrameType.REQUEST_RESPONSE, RequestResponse, _request_response, _put_payload),
    (FrameType.REQUEST_FNF, RequestFnf, _request_fnf, _put_payload),
    (FrameType.REQUEST_STREAM, RequestStream, _request_stream, _put_payload),
    (FrameType.REQUEST_CHANNEL, RequestChannel, _request_channel, _put_payload),
    (FrameType.REQUEST_N, RequestN, _request_n, _put_request_n),
    (FrameType.CANCEL, Cancel, _cancel, _put_cancel),
    (FrameType.PAYLOAD, PayloadFrame, _payload_frame, _put_payload),
    (FrameType.ERROR, Error, _error, _put_error),
    (FrameType.METADATA_PUSH, MetadataPush, _metadata_push, _put_metadata_push),
    (FrameType.RESUME, Resume, _resume, _put_resume),
    (FrameType.RESUME_OK, ResumeOk, _resume_ok, _put_resume_ok),
    (FrameType.EXT, Ext, _ext, _put_ext),
)
_READERS: Final[dict[int, Reader]] = {kind: read for kind, _, read, _ in _LAYOUTS}
_WRITERS: Final[dict[type[Any], tuple[FrameType, Writer]]] = {
    frame: (kind, write) for kind, frame, _, write in _LAYOUTS
}


def encode_payload(stream_id: int, bits: int, payload: PayloadTuple, n: int = 0) -> bytes:
    """Write a request (with *n* if it has one) or an element after its length.

    *bits* are its type and its flags but for METADATA. All fields are known to fit.
    """
    data, metadata = payload
    head = _U32.pack(n) if n else b""
    if metadata is not None:
        bits |= METADATA
        head += len(metadata).to_bytes(3, "big") + metadata
    size = len(head) + len(data) + HEADER
    return _PREFIXED_HEADER(size >> 16, size & 0xFFFF, stream_id, bits) + head + data


def encode_demand(stream_id: int, n: int) -> bytes:
    """Write a REQUEST_N, whose fields are known to fit, after its length."""
    return _DEMAND(HEADER + 4, stream_id, _REQUEST_N_BITS, n)


# -- frames in a stream of bytes, and as messages --------------------------------------------------
def add_length(frame: bytes) -> bytes:
    """*frame* after its length, for transports without messages."""
    return len(frame).to_bytes(LENGTH_SIZE, "big") + frame


def join_messages(messages: Iterable[bytes | bytearray | memoryview]) -> bytes:
    """The frames in *messages* as a byte stream, each after its length."""
    pieces: list[bytes | bytearray | memoryview] = []
    for message in messages:
        pieces += (len(message).to_bytes(LENGTH_SIZE, "big"), message)
    return b"".join(pieces)


def split_messages(data: bytes) -> list[bytes]:
    """The frames in *data*, which holds whole frames only, without their lengths."""
    messages: list[bytes] = []
    at, end = 0, len(data)
    while at < end:
        start = at + LENGTH_SIZE
        at = start + int.from_bytes(data[at:start], "big")
        messages.append(data[start:at])
    return messages
