"""What stands beside a request's data: its route, credentials, types, deadline, and the rest.

The deadline is an item of our own: how many milliseconds the one who asks will wait, as a 32-bit
number. A duration, because two machines' clocks differ.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from .protocol.errors import ProtocolError
from .protocol.frames import Setup
from .protocol.metadata import (
    Credentials,
    MetadataItem,
    read_auth,
    read_composite,
    read_mime_types,
    read_routing,
    write_composite,
)
from .protocol.mime import (
    ACCEPT_MIME_TYPES,
    AUTHENTICATION,
    COMPOSITE_METADATA,
    MIME_TYPE,
    ROUTING,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = (
    "DEADLINE",
    "DEADLINE_PASSED",
    "MetadataCache",
    "RequestMetadata",
    "deadline_item",
    "find_credentials",
    "read_items",
    "write_items",
)

DEADLINE: Final = "application/x.reactive-aio.deadline.v0"
DEADLINE_PASSED: Final = b"the deadline has passed"
"""What the CANCELED error of a request says whose time is over."""
_MOST: Final = 2**32 - 1


class RequestMetadata(NamedTuple):
    """The metadata of one request, read."""

    items: tuple[MetadataItem, ...] = ()
    route: str = ""
    mime: str | None = None
    """The type of the data, if it is not that of the connection."""
    accept: tuple[str, ...] = ()
    """The types that the answer may have."""
    timeout: float | None = None
    """How many seconds the one who asks will wait."""


def deadline_item(seconds: float) -> MetadataItem:
    """The item that says: the answer is wanted within *seconds*."""
    return MetadataItem(DEADLINE, min(max(1, round(seconds * 1000)), _MOST).to_bytes(4, "big"))


def read_items(setup: Setup | None, metadata: bytes | None) -> tuple[MetadataItem, ...]:
    """The items in *metadata*; one of the connection's type where it is not composite."""
    if not metadata or setup is None:
        return ()
    if setup.metadata_mime == COMPOSITE_METADATA:
        return tuple(read_composite(metadata))
    return (MetadataItem(setup.metadata_mime, metadata),)


def write_items(mime: str, items: "Iterable[MetadataItem | tuple[str, bytes]]") -> bytes | None:
    """The metadata of a connection of type *mime* that says *items*."""
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


def find_credentials(items: "Iterable[MetadataItem]") -> Credentials | None:
    """The first credentials among *items*; raises `ProtocolError` if they make no sense."""
    for mime, content in items:
        if mime == AUTHENTICATION:
            return read_auth(content)
    return None


def _read(items: tuple[MetadataItem, ...]) -> RequestMetadata:
    route, mime, timeout = "", None, None
    accept: tuple[str, ...] = ()
    for kind, content in items:
        if kind == ROUTING:
            tags = read_routing(content)
            route = route or (tags[0] if tags else "")
        elif kind == MIME_TYPE:
            mime = next(iter(read_mime_types(content)), None)
        elif kind == ACCEPT_MIME_TYPES:
            accept = tuple(read_mime_types(content))
        elif kind == DEADLINE:
            if len(content) != 4:
                raise ProtocolError(f"a deadline of {len(content)} bytes, not of 4")
            timeout = int.from_bytes(content, "big") / 1000
    return RequestMetadata(items, route, mime, accept, timeout)


_KEPT: Final = 256
_SMALL: Final = 256


class MetadataCache:
    """Reads metadata, and knows what it has read: most requests for a route say the same.

    At most 256 of up to 256 bytes are kept, and none with credentials.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], RequestMetadata] = {}

    def knows(self, setup: Setup, metadata: bytes | None) -> bool:
        """Whether that has been read, and is kept."""
        return not metadata or (setup.metadata_mime, metadata) in self._known

    def read(self, setup: Setup | None, metadata: bytes | None) -> RequestMetadata:
        if not metadata or setup is None:
            return _NONE
        key = setup.metadata_mime, metadata
        known = self._known.get(key)
        if known is not None:
            return known
        envelope = _read(read_items(setup, metadata))
        secret = any(mime == AUTHENTICATION for mime, _ in envelope.items)
        if len(metadata) <= _SMALL and not secret:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = envelope
        return envelope


_NONE: Final = RequestMetadata()
