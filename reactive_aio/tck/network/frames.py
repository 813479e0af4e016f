"""Frames for the laws of the wire: writes valid and invalid frames, and parses any.

A law must be able to send frames that a codec would refuse, so writers are functions that return
bytes and check nothing. Received bytes are parsed into a `ParsedFrame`, which names its problem.
"""

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct, error as StructError, pack
from typing import Final

SETUP, LEASE, KEEPALIVE, REQUEST_RESPONSE, FNF = 1, 2, 3, 4, 5
REQUEST_STREAM, REQUEST_CHANNEL, REQUEST_N, CANCEL, PAYLOAD = 6, 7, 8, 9, 10
ERROR, METADATA_PUSH, RESUME, RESUME_OK, EXT = 11, 12, 13, 14, 0x3F

_NAMES: Final = (
    "SETUP LEASE KEEPALIVE REQUEST_RESPONSE REQUEST_FNF REQUEST_STREAM REQUEST_CHANNEL REQUEST_N "
    "CANCEL PAYLOAD ERROR METADATA_PUSH RESUME RESUME_OK"
)
NAMES: Final = {**dict(enumerate(_NAMES.split(), SETUP)), EXT: "EXT"}

IGNORE, METADATA, FOLLOWS, COMPLETE, NEXT = 0x200, 0x100, 0x80, 0x40, 0x20
RESPOND = RESUMED = FOLLOWS
LEASED = COMPLETE

MAX_31: Final = 2**31 - 1
LARGEST: Final = 2**24 - 1
"""The length of the longest frame."""

_HEADER: Final = Struct(">IH")
_U32: Final = Struct(">I")
_U64: Final = Struct(">Q")

COMPOSITE: Final = b"message/x.rsocket.composite-metadata.v0"
_ROUTING: Final = 0x80 | 0x7E
_AUTHENTICATION: Final = 0x80 | 0x7C


class Codes(IntEnum):
    """Codes of errors."""

    INVALID_SETUP = 0x1
    UNSUPPORTED_SETUP = 0x2
    REJECTED_SETUP = 0x3
    REJECTED_RESUME = 0x4
    CONNECTION_ERROR = 0x101
    CONNECTION_CLOSE = 0x102
    APPLICATION_ERROR = 0x201
    REJECTED = 0x202
    INVALID = 0x204


# -- writing ---------------------------------------------------------------------------------------
def frame(stream: int, kind: int, flags: int = 0, content: bytes = b"") -> bytes:
    """Any frame, valid or not."""
    return _HEADER.pack(stream, kind << 10 | flags) + content


def body(data: bytes, metadata: bytes | None) -> tuple[int, bytes]:
    """The flag and the bytes of a payload."""
    if metadata is None:
        return 0, data
    return METADATA, len(metadata).to_bytes(3, "big") + metadata + data


def setup(
    *,
    keepalive: int = 20_000,
    lifetime: int = 90_000,
    version: tuple[int, int] = (1, 0),
    flags: int = 0,
    token: bytes | None = None,
    metadata_mime: bytes = COMPOSITE,
    data_mime: bytes = b"application/octet-stream",
    metadata: bytes | None = None,
) -> bytes:
    """SETUP; times are in milliseconds."""
    content = pack(">HHII", *version, keepalive, lifetime)
    if token is not None:
        content += len(token).to_bytes(2, "big") + token
    content += bytes((len(metadata_mime),)) + metadata_mime
    content += bytes((len(data_mime),)) + data_mime
    flag, rest = body(b"", metadata)
    return frame(0, SETUP, flags | flag, content + rest)


def resume(token: bytes, received: int = 0, available: int = 0) -> bytes:
    content = pack(">HHH", 1, 0, len(token)) + token + _U64.pack(received) + _U64.pack(available)
    return frame(0, RESUME, 0, content)


def keepalive(data: bytes = b"", *, respond: bool = True) -> bytes:
    return frame(0, KEEPALIVE, RESPOND if respond else 0, _U64.pack(0) + data)


def request(
    kind: int,
    stream: int,
    *,
    n: int = 1,
    data: bytes = b"",
    metadata: bytes | None = None,
    flags: int = 0,
) -> bytes:
    """A request of any kind; *n* is written if the kind has one."""
    flag, content = body(data, metadata)
    first = _U32.pack(n) if kind in (REQUEST_STREAM, REQUEST_CHANNEL) else b""
    return frame(stream, kind, flags | flag, first + content)


def payload(
    stream: int, data: bytes = b"", metadata: bytes | None = None, flags: int = NEXT
) -> bytes:
    flag, content = body(data, metadata)
    return frame(stream, PAYLOAD, flags | flag, content)


def request_n(stream: int, n: int) -> bytes:
    return frame(stream, REQUEST_N, 0, _U32.pack(n))


def cancel(stream: int) -> bytes:
    return frame(stream, CANCEL)


def error(stream: int, code: int, data: bytes = b"") -> bytes:
    return frame(stream, ERROR, 0, _U32.pack(code) + data)


def composite(*items: tuple[int, bytes]) -> bytes:
    """Composite metadata of items with well-known types."""
    return b"".join(
        bytes((number,)) + len(content).to_bytes(3, "big") + content for number, content in items
    )


def routing(route: str) -> tuple[int, bytes]:
    encoded = route.encode()
    return _ROUTING, bytes((len(encoded),)) + encoded


def simple_auth(user: str, password: str) -> tuple[int, bytes]:
    name = user.encode()
    return _AUTHENTICATION, b"\x80" + len(name).to_bytes(2, "big") + name + password.encode()


# -- parsing ---------------------------------------------------------------------------------------
@dataclass(slots=True)
class ParsedFrame:
    """A frame as parsed; `problem` says why it is invalid, if it is."""

    stream: int
    kind: int
    flags: int
    data: bytes = b""
    metadata: bytes | None = None
    number: int = 0
    """The n of a request, or the code of an error."""
    problem: str = ""

    @classmethod
    def of(cls, raw: bytes) -> "ParsedFrame":
        if len(raw) < 6:
            what = f"{len(raw)} bytes are too short for a frame of at least 6"
            return cls(0, 0, 0, raw, problem=what)
        stream, bits = _HEADER.unpack_from(raw)
        parsed = cls(stream & MAX_31, bits >> 10, bits & 0x3FF)
        if stream >> 31:
            parsed.problem = "the first bit of its stream id is set"
        elif len(raw) > LARGEST:
            parsed.problem = f"it is {len(raw)} bytes long"
        try:
            parsed._read(raw[6:])
        except StructError:
            parsed.problem = "it is truncated"
        return parsed

    def _read(self, content: bytes) -> None:
        if self.kind in (REQUEST_STREAM, REQUEST_CHANNEL, REQUEST_N, ERROR):
            [self.number] = _U32.unpack_from(content)
            content = content[4:]
            if self.kind != ERROR and not 0 < self.number <= MAX_31:
                self.problem = f"its n is {self.number}"
        elif self.kind == KEEPALIVE:
            _U64.unpack_from(content)
            content = content[8:]
        elif self.kind == LEASE:
            _, self.number = Struct(">II").unpack_from(content)
            content = content[8:]
        elif self.kind not in NAMES:
            self.problem = f"0x{self.kind:02X} is not a type of frame"
        if self.flags & METADATA and self.kind in (*range(REQUEST_RESPONSE, REQUEST_N), PAYLOAD):
            length = int.from_bytes(content[:3], "big")
            if len(content) < 3 or length > len(content) - 3:
                left = len(content)
                self.problem = f"its metadata is {length} bytes long, and {left} bytes remain"
                return
            self.metadata, content = content[3 : 3 + length], content[3 + length :]
        self.data = content

    @property
    def is_next(self) -> bool:
        return bool(self.flags & NEXT)

    @property
    def is_complete(self) -> bool:
        return bool(self.flags & COMPLETE)

    @property
    def has_follows(self) -> bool:
        return bool(self.flags & FOLLOWS) and not self.is_complete

    def __str__(self) -> str:
        """The frame in one line."""
        words = [NAMES.get(self.kind, f"0x{self.kind:02X}")]
        if self.stream:
            words.append(f"stream {self.stream}")
        if self.kind in (REQUEST_STREAM, REQUEST_CHANNEL, REQUEST_N):
            words.append(f"n={self.number}")
        elif self.kind == ERROR:
            words.append(f"0x{self.number:03X}")
        if self.kind == KEEPALIVE and self.flags & RESPOND:
            words.append("RESPOND")
        elif self.kind == PAYLOAD or self.kind in range(REQUEST_RESPONSE, REQUEST_N):
            flags = ((NEXT, "NEXT"), (COMPLETE, "COMPLETE"), (FOLLOWS, "FOLLOWS"))
            words += [name for flag, name in flags if self.flags & flag]
        if self.metadata is not None:
            words.append(f"metadata {_short(self.metadata)}")
        if self.data:
            words.append(_short(self.data))
        if self.problem:
            words.append(f"({self.problem})")
        return " ".join(words)


def _short(data: bytes) -> str:
    return repr(data)[1:] if len(data) <= 40 else f"{data[:24]!r}… ({len(data)} bytes)"
