"""The metadata of a request: route, credentials, MIME types, deadline, other items.

The deadline is an item of our own: the number of milliseconds that the requester waits for the
response, as a 32-bit number. It is a duration because the clocks of two machines differ.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from .errors import ProtocolError
from .frames import Setup
from .limits import MAX_ITEMS
from .metadata import (
    ACCEPT_MIME_TYPES,
    AUTHENTICATION,
    COMPOSITE_METADATA,
    MIME_TYPE,
    ROUTING,
    Credentials,
    MetadataItem,
    read_auth,
    read_composite,
    read_mime_types,
    read_routing,
    write_composite,
)

DEADLINE: Final = "application/x.reactive-aio.deadline.v0"
DEADLINE_PASSED: Final = b"the deadline has passed"
"""The text of the CANCELED error of a request whose deadline has passed."""
_BYTES: Final = (bytes, bytearray, memoryview)
_MAX_MILLISECONDS: Final = 2**32 - 1


class RequestMetadata(NamedTuple):
    """The metadata of one request, decoded."""

    items: tuple[MetadataItem, ...] = ()
    route: str = ""
    mime: str | None = None
    """The type of the data, if it differs from that of the connection."""
    accept: tuple[str, ...] = ()
    """The acceptable types of the response."""
    timeout: float | None = None
    """The number of seconds that the requester waits."""


def deadline_item(seconds: float) -> MetadataItem:
    """The item for a requester that waits *seconds* for the response."""
    milliseconds = min(max(1, round(seconds * 1000)), _MAX_MILLISECONDS)
    return MetadataItem(DEADLINE, milliseconds.to_bytes(4, "big"))


def read_items(
    setup: Setup | None, metadata: bytes | None, most: int = MAX_ITEMS
) -> tuple[MetadataItem, ...]:
    """The items in *metadata*, up to *most*.

    A single one of the connection's type unless that is composite.
    """
    if not metadata or setup is None:
        return ()
    if setup.metadata_mime == COMPOSITE_METADATA:
        return tuple(read_composite(metadata, most))
    return (MetadataItem(setup.metadata_mime, metadata),)


def write_items(mime: str, items: Iterable[MetadataItem | tuple[str, bytes]]) -> bytes | None:
    """Encode *items* for a connection whose metadata is of type *mime*."""
    if mime == COMPOSITE_METADATA:
        return write_composite(items) or None
    contents: list[bytes] = []
    for kind, content in items:
        if kind != mime:
            raise ValueError(f"metadata of type {kind} on a connection whose metadata is {mime}")
        contents.append(content)
    if len(contents) > 1:
        raise ValueError(f"{len(contents)} items of metadata need metadata_mime=composite")
    return contents[0] if contents else None


def checked_items(
    items: Iterable[MetadataItem | tuple[str, bytes]],
) -> Sequence[MetadataItem | tuple[str, bytes]]:
    """*items*, which must be pairs of a MIME type and bytes."""
    given = cast("object", items)
    wanted = "a list of (MIME type, bytes)"
    if isinstance(given, Mapping):
        raise TypeError(f"metadata must be {wanted}, not a dict: write [*metadata.items()]")
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"metadata must be {wanted}, not {type(given).__name__}")
    checked: list[Any] = [*items]
    for each in checked:
        kind = _type_of(each)  # the content may be a secret
        if not issubclass(kind, tuple) or len(each) != 2 or not issubclass(type(each[0]), str):
            message = f"metadata must be {wanted}, and one of its items is not: a {kind.__name__}"
            raise TypeError(message)
        kind = _type_of(each[1])
        if not issubclass(kind, _BYTES):
            remedy = ": write value.encode()" if issubclass(kind, str) else ""
            message = f"metadata of type {each[0]} must be bytes, not {kind.__name__}{remedy}"
            raise TypeError(message)
    return checked


def _type_of(value: object) -> type[object]:
    return type(value)


def find_credentials(items: Iterable[MetadataItem]) -> Credentials | None:
    """The first credentials among *items*; raises `ProtocolError` if they are malformed."""
    return next((read_auth(content) for mime, content in items if mime == AUTHENTICATION), None)


def read_metadata(
    setup: Setup | None, metadata: bytes | None, most: int = MAX_ITEMS
) -> RequestMetadata:
    """Decode *metadata*; raise `ProtocolError` if it is malformed, or has too many items."""
    items = read_items(setup, metadata, most)
    route, mime, timeout = "", None, None
    accept: tuple[str, ...] = ()
    for kind, content in items:
        if kind == ROUTING:
            tags = read_routing(content, most)
            route = route or (tags[0] if tags else "")
        elif kind == MIME_TYPE:
            mime = next(iter(read_mime_types(content, most)), None)
        elif kind == ACCEPT_MIME_TYPES:
            accept = tuple(read_mime_types(content, most))
        elif kind == DEADLINE:
            if len(content) != 4:
                raise ProtocolError(f"a deadline of {len(content)} bytes, not of 4")
            timeout = int.from_bytes(content, "big") / 1000
    return RequestMetadata(items, route, mime, accept, timeout)
