"""MIME types of the extensions, and the numbers that stand for well-known ones."""

from typing import Final

from .errors import ProtocolError

__all__ = (
    "ACCEPT_MIME_TYPES",
    "AUTHENTICATION",
    "COMPOSITE_METADATA",
    "MIME_TYPE",
    "OCTET_STREAM",
    "ROUTING",
    "TRACING_ZIPKIN",
    "WELL_KNOWN",
    "read_mime",
    "write_mime",
)

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
