"""Frames to bytes: `encode` for any frame, `quick` for those that are sent by the thousand."""

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from .frames import (
    MAX_31,
    MAX_63,
    MAX_FRAME,
    Cancel,
    Error,
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
    RequestN,
    RequestResponse,
    RequestStream,
    Resume,
    ResumeOk,
    Setup,
)

__all__ = ("add_length", "encode", "encode_payload")

_HEADER: Final = Struct(">IH")
_PREFIXED: Final = Struct(">BHIH").pack
_U16: Final = Struct(">H")
_U32: Final = Struct(">I")
_U64: Final = Struct(">Q")
_SETUP: Final = Struct(">HHII")
_LEASE: Final = Struct(">II")
_POSITIONS: Final = Struct(">QQ")

IGNORE, METADATA, FOLLOWS, COMPLETE, NEXT = 0x200, 0x100, 0x80, 0x40, 0x20
RESUME = RESPOND = FOLLOWS
LEASE = COMPLETE


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


def add_length(frame: bytes) -> bytes:
    """*frame* behind its length: what a transport needs that does not keep frames apart."""
    return len(frame).to_bytes(3, "big") + frame


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


def _put_setup(frame: Setup) -> tuple[int, int, bytes]:
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


def _put_lease(frame: Lease) -> tuple[int, int, bytes]:
    numbers = _LEASE.pack(
        _number("ttl", frame.ttl, MAX_31), _number("requests", frame.requests, MAX_31)
    )
    if frame.metadata is None:
        return 0, 0, numbers
    return 0, METADATA, numbers + frame.metadata


def _put_keepalive(frame: KeepAlive) -> tuple[int, int, bytes]:
    position = _U64.pack(_number("position", frame.position, MAX_63))
    return 0, RESPOND if frame.respond else 0, position + frame.data


def _put_request(frame: RequestResponse | RequestFnf) -> tuple[int, int, bytes]:
    flags, body = _body(frame.payload)
    return frame.stream_id, flags | (FOLLOWS if frame.follows else 0), body


def _put_request_stream(frame: RequestStream) -> tuple[int, int, bytes]:
    flags, body = _body(frame.payload)
    n = _U32.pack(_number("n", frame.n, MAX_31, 1))
    return frame.stream_id, flags | (FOLLOWS if frame.follows else 0), n + body


def _put_request_channel(frame: RequestChannel) -> tuple[int, int, bytes]:
    flags, body = _body(frame.payload)
    n = _U32.pack(_number("n", frame.n, MAX_31, 1))
    flags |= (FOLLOWS if frame.follows else 0) | (COMPLETE if frame.complete else 0)
    return frame.stream_id, flags, n + body


def _put_request_n(frame: RequestN) -> tuple[int, int, bytes]:
    return frame.stream_id, 0, _U32.pack(_number("n", frame.n, MAX_31, 1))


def _put_cancel(frame: Cancel) -> tuple[int, int, bytes]:
    return frame.stream_id, 0, b""


def _put_payload_frame(frame: PayloadFrame) -> tuple[int, int, bytes]:
    flags, body = _body(frame.payload)
    flags |= (FOLLOWS if frame.follows else 0) | (COMPLETE if frame.complete else 0)
    return frame.stream_id, flags | (NEXT if frame.next else 0), body


def _put_error(frame: Error) -> tuple[int, int, bytes]:
    return frame.stream_id, 0, _U32.pack(_number("code", frame.code, 2**32 - 1)) + frame.data


def _put_metadata_push(frame: MetadataPush) -> tuple[int, int, bytes]:
    return 0, METADATA, frame.metadata


def _put_resume(frame: Resume) -> tuple[int, int, bytes]:
    positions = _POSITIONS.pack(
        _number("last_received", frame.last_received, MAX_63),
        _number("first_available", frame.first_available, MAX_63),
    )
    version = b"".join(_U16.pack(number) for number in frame.version)
    return 0, 0, version + _sized("token", frame.token, 2) + positions


def _put_resume_ok(frame: ResumeOk) -> tuple[int, int, bytes]:
    return 0, 0, _U64.pack(_number("last_received", frame.last_received, MAX_63))


def _put_ext(frame: Ext) -> tuple[int, int, bytes]:
    flags = (IGNORE if frame.ignore else 0) | (METADATA if frame.metadata else 0)
    extended = _number("extended_type", frame.extended_type, MAX_31)
    return frame.stream_id, flags, _U32.pack(extended) + frame.data


_WRITERS: Final[dict[type[Any], tuple[FrameType, Callable[[Any], tuple[int, int, bytes]]]]] = {
    Setup: (FrameType.SETUP, _put_setup),
    Lease: (FrameType.LEASE, _put_lease),
    KeepAlive: (FrameType.KEEPALIVE, _put_keepalive),
    RequestResponse: (FrameType.REQUEST_RESPONSE, _put_request),
    RequestFnf: (FrameType.REQUEST_FNF, _put_request),
    RequestStream: (FrameType.REQUEST_STREAM, _put_request_stream),
    RequestChannel: (FrameType.REQUEST_CHANNEL, _put_request_channel),
    RequestN: (FrameType.REQUEST_N, _put_request_n),
    Cancel: (FrameType.CANCEL, _put_cancel),
    PayloadFrame: (FrameType.PAYLOAD, _put_payload_frame),
    Error: (FrameType.ERROR, _put_error),
    MetadataPush: (FrameType.METADATA_PUSH, _put_metadata_push),
    Resume: (FrameType.RESUME, _put_resume),
    ResumeOk: (FrameType.RESUME_OK, _put_resume_ok),
    Ext: (FrameType.EXT, _put_ext),
}


def encode_payload(
    stream_id: int, bits: int, payload: PayloadTuple, n: int = 0, *, prefixed: bool = False
) -> bytes:
    """`encode` for a request (with *n* if it has one) or an element, whose fields are known to fit.

    *bits* are its type and its flags but for METADATA; *prefixed*: with its length.
    """
    data, metadata = payload
    head = _U32.pack(n) if n else b""
    if metadata is not None:
        bits |= METADATA
        head += len(metadata).to_bytes(3, "big") + metadata
    if not prefixed:
        return _HEADER.pack(stream_id, bits) + head + data
    size = len(head) + len(data) + _HEADER.size
    return _PREFIXED(size >> 16, size & 0xFFFF, stream_id, bits) + head + data
