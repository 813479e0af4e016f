"""What stands in metadata: several items in one (composite), routes, credentials, MIME types.

Each pair of functions writes and reads one extension of RSocket (all of version 0). Reading
foreign bytes raises `ProtocolError` and nothing else, and reads no more than a stated number of
items, tags or types: a megabyte of them would be a million. Items that are not known here, tracing
among them, are passed through as they came.
"""

from collections.abc import Iterable, Sized
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from .errors import ProtocolError
from .limits import MAX_ITEMS

COMPOSITE_METADATA: Final = "message/x.rsocket.composite-metadata.v0"
ROUTING: Final = "message/x.rsocket.routing.v0"
TRACING_ZIPKIN: Final = "message/x.rsocket.tracing-zipkin.v0"
AUTHENTICATION: Final = "message/x.rsocket.authentication.v0"
ACCEPT_MIME_TYPES: Final = "message/x.rsocket.accept-mime-types.v0"
MIME_TYPE: Final = "message/x.rsocket.mime-type.v0"
OCTET_STREAM: Final = "application/octet-stream"

_FROM_ZERO: Final = [
    "application/avro",
    "application/cbor",
    "application/graphql",
    "application/gzip",
    "application/javascript",
    "application/json",
    "application/octet-stream",
    "application/pdf",
    "application/vnd.apache.thrift.binary",
    "application/vnd.google.protobuf",
    "application/xml",
    "application/zip",
    "audio/aac",
    "audio/mp3",
    "audio/mp4",
    "audio/mpeg3",
    "audio/mpeg",
    "audio/ogg",
    "audio/opus",
    "audio/vorbis",
    "image/bmp",
    "image/gif",
    "image/heic-sequence",
    "image/heic",
    "image/heif-sequence",
    "image/heif",
    "image/jpeg",
    "image/png",
    "image/tiff",
    "multipart/mixed",
    "text/css",
    "text/csv",
    "text/html",
    "text/plain",
    "text/xml",
    "video/H264",
    "video/H265",
    "video/VP8",
    "application/x-hessian",
    "application/x-java-object",
    "application/cloudevents+json",
    "application/x-capnp",
    "application/x-flatbuffers",
]

WELL_KNOWN: Final[dict[str, int]] = {
    **{name: number for number, name in enumerate(_FROM_ZERO)},
    MIME_TYPE: 0x7A,
    ACCEPT_MIME_TYPES: 0x7B,
    AUTHENTICATION: 0x7C,
    TRACING_ZIPKIN: 0x7D,
    ROUTING: 0x7E,
    COMPOSITE_METADATA: 0x7F,
}
_NAMES: Final = {number: name for name, number in WELL_KNOWN.items()}


class MetadataItem(NamedTuple):
    """One item of composite metadata."""

    mime: str
    content: bytes


@dataclass(frozen=True, slots=True)
class SimpleAuth:
    """A user's name and password. They are sent unencrypted: use TLS."""

    username: str
    password: str

    def __repr__(self) -> str:
        return f"SimpleAuth(username={self.username!r}, password=…)"


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A token that authenticates its bearer. It is sent unencrypted: use TLS."""

    token: str

    def __repr__(self) -> str:
        return "BearerToken(token=…)"


@dataclass(frozen=True, slots=True)
class OtherCredentials:
    """Credentials of another type, as they came."""

    kind: str
    content: bytes

    def __repr__(self) -> str:
        return f"OtherCredentials(kind={self.kind!r}, content=…)"


Credentials: TypeAlias = SimpleAuth | BearerToken | OtherCredentials

_AUTH_NUMBERS: Final = {"simple": 0, "bearer": 1}
_AUTH_NAMES: Final = {number: name for name, number in _AUTH_NUMBERS.items()}


# -- MIME types, and the numbers of well-known ones ------------------------------------------------
def write_mime(name: str, numbers: dict[str, int] = WELL_KNOWN) -> bytes:
    """*name* as its number if it has one, else after its length less one, as all peers write it."""
    number = numbers.get(name)
    if number is not None:
        return bytes((0x80 | number,))
    encoded = name.encode("ascii")
    if not 0 < len(encoded) <= 128:
        raise ValueError(f"{name!r}: a type is from 1 to 128 characters long")
    return bytes((len(encoded) - 1,)) + encoded


def read_mime(data: bytes, at: int, names: dict[int, str] = _NAMES) -> tuple[str, int]:
    """The name written at *at*, and where it ends; an unknown number reads as ``unknown/0x55``."""
    if at >= len(data):
        raise ProtocolError("metadata ends where a type should be")
    first = data[at]
    if first & 0x80:
        number = first & 0x7F
        return names.get(number, f"unknown/0x{number:02X}"), at + 1
    end = at + 2 + first
    if end > len(data):
        raise ProtocolError("metadata ends within the name of a type")
    try:
        return data[at + 1 : end].decode("ascii"), end
    except UnicodeDecodeError:
        raise ProtocolError("metadata: the name of a type is not ASCII") from None


# -- composite -------------------------------------------------------------------------------------
def write_composite(items: Iterable[MetadataItem | tuple[str, bytes]]) -> bytes:
    """Several items in one; their order is kept."""
    parts: list[bytes] = []
    for mime, content in items:
        if len(content) >= 1 << 24:
            raise ValueError(f"{mime}: {len(content)} bytes of metadata are too many for one item")
        parts += (write_mime(mime), len(content).to_bytes(3, "big"), content)
    return b"".join(parts)


def read_composite(metadata: bytes, most: int = MAX_ITEMS) -> list[MetadataItem]:
    """The items of composite *metadata*, in their order; up to *most*."""
    items: list[MetadataItem] = []
    at = 0
    while at < len(metadata):
        _require_room(items, most, "items")
        mime, at = read_mime(metadata, at)
        start = at + 3
        end = start + int.from_bytes(metadata[at:start], "big")
        if start > len(metadata) or end > len(metadata):
            raise ProtocolError(f"composite metadata ends within {mime}")
        items.append(MetadataItem(mime, metadata[start:end]))
        at = end
    return items


# -- routing ---------------------------------------------------------------------------------------
def write_routing(*tags: str) -> bytes:
    """The route, and tags beside it."""
    parts: list[bytes] = []
    for tag in tags:
        encoded = tag.encode()
        if len(encoded) > 255:
            raise ValueError(f"a route or tag takes up to 255 bytes, not {len(encoded)}: {tag!r}")
        parts.append(bytes((len(encoded),)) + encoded)
    return b"".join(parts)


def read_routing(content: bytes, most: int = MAX_ITEMS) -> list[str]:
    """The tags of a routing item, up to *most*; the first is the route."""
    tags: list[str] = []
    at = 0
    while at < len(content):
        _require_room(tags, most, "tags")
        end = at + 1 + content[at]
        if end > len(content):
            raise ProtocolError("routing metadata ends within a tag")
        tags.append(_text(content[at + 1 : end], "a route"))
        at = end
    return tags


# -- authentication --------------------------------------------------------------------------------
def write_auth(credentials: Credentials) -> bytes:
    match credentials:
        case SimpleAuth(username, password):
            name = username.encode()
            if len(name) > 0xFFFF:
                raise ValueError(f"a username takes up to 65535 bytes, not {len(name)}")
            content = len(name).to_bytes(2, "big") + name + password.encode()
            return write_mime("simple", _AUTH_NUMBERS) + content
        case BearerToken(token):
            return write_mime("bearer", _AUTH_NUMBERS) + token.encode()
        case OtherCredentials(kind, content):
            return write_mime(kind, _AUTH_NUMBERS) + content


def read_auth(content: bytes) -> Credentials:
    kind, at = read_mime(content, 0, _AUTH_NAMES)
    rest = content[at:]
    if kind == "bearer":
        return BearerToken(_text(rest, "a bearer token"))
    if kind != "simple":
        return OtherCredentials(kind, rest)
    end = 2 + int.from_bytes(rest[:2], "big")
    if len(rest) < 2 or end > len(rest):
        raise ProtocolError("simple authentication ends within the username")
    return SimpleAuth(_text(rest[2:end], "a username"), _text(rest[end:], "a password"))


# -- MIME types of one stream ----------------------------------------------------------------------
def write_mime_types(*names: str) -> bytes:
    """The MIME type of a stream's data, or all those acceptable in answer to it."""
    return b"".join(write_mime(name) for name in names)


def read_mime_types(content: bytes, most: int = MAX_ITEMS) -> list[str]:
    """The types of a stream's data, up to *most*."""
    names: list[str] = []
    at = 0
    while at < len(content):
        _require_room(names, most, "types of data")
        name, at = read_mime(content, at)
        names.append(name)
    return names


def _require_room(found: Sized, most: int, what: str) -> None:
    if len(found) >= most:
        raise ProtocolError(f"metadata with more than {most} {what}")


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ProtocolError(f"{what} that is not UTF-8") from None
