"""A request of the peer and its metadata: route, credentials, MIME types, deadline, other items.

The deadline is an item of our own: the number of milliseconds that the requester waits for the
response, as a 32-bit number. It is a duration because the clocks of two machines differ.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from ..._core.arguments import Absent
from ..protocol.errors import ProtocolError, RequestInvalid
from ..protocol.frames import ErrorCode, Setup
from ..protocol.limits import MAX_ITEMS
from ..protocol.metadata import (
    ACCEPT_MIME_TYPES,
    AUTHENTICATION,
    COMPOSITE_METADATA,
    MIME_TYPE,
    ROUTING,
    TRACING_ZIPKIN,
    Credentials,
    MetadataItem,
    read_auth,
    read_composite,
    read_mime_types,
    read_routing,
    write_composite,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...flow import Flow
    from ..link.driver import Driver
    from ..protocol.stream_states import InteractionModel
    from ..requesting.requester import Requester

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
) -> "Sequence[MetadataItem | tuple[str, bytes]]":
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


_NO_METADATA: Final = RequestMetadata()
_MAX_ENTRIES: Final = 256
_MAX_ENTRY_SIZE: Final = 256


class MetadataCache:
    """Decodes metadata and caches the results: most requests for a route carry the same bytes.

    It keeps up to 256 entries of up to 256 bytes each, and none with credentials.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[tuple[str, bytes], RequestMetadata] = {}

    def holds(self, setup: Setup, metadata: bytes | None) -> bool:
        """Whether *metadata* is empty or cached."""
        return not metadata or (setup.metadata_mime, metadata) in self._entries

    def read(
        self, setup: Setup | None, metadata: bytes | None, most: int = MAX_ITEMS
    ) -> RequestMetadata:
        """Decode *metadata*; raise `ProtocolError` if it is malformed, or has too many items."""
        if not metadata or setup is None:
            return _NO_METADATA
        key = setup.metadata_mime, metadata
        cached = self._entries.get(key)
        if cached is not None:
            return cached
        decoded = read_metadata(setup, metadata, most)
        is_secret = any(mime == AUTHENTICATION for mime, _ in decoded.items)
        if len(metadata) <= _MAX_ENTRY_SIZE and not is_secret:
            if len(self._entries) >= _MAX_ENTRIES:
                self._entries.clear()
            self._entries[key] = decoded
        return decoded


_UNREAD: Any = Absent("not read")


@dataclass(slots=True, eq=False, repr=False)
class Request:
    """One request. Its properties are decoded on first access."""

    model: "InteractionModel"
    """What the peer requests; ``PUSH`` is metadata for the connection, without a response."""
    data: bytes
    """The data of the request, not decoded; of a channel, that of its first element."""
    user: Any
    """The user returned by `authenticate`, or by `authorize` for this request."""
    deadline: float | None
    """The time, by the loop's clock, at which the peer stops waiting; None if there is none."""
    _metadata: RequestMetadata
    _driver: "Driver"
    _peer: "Callable[[], Requester[Any]]"
    _decode: "Callable[[bytes], Any]" = bytes
    _open: "Callable[[], Flow[Any]] | None" = None
    _payload: Any = _UNREAD

    def __repr__(self) -> str:
        return f"<Request {self.model.name} {self.route!r} {len(self.data)} bytes>"

    @property
    def route(self) -> str:
        return self._metadata.route

    @property
    def metadata(self) -> tuple[MetadataItem, ...]:
        """All items of metadata of the request."""
        return self._metadata.items

    @property
    def address(self) -> Any:
        """The network address of the peer, as the transport knows it; None if it does not."""
        return self._driver.get_extra_info("peername")

    def item(self, mime: str) -> bytes | None:
        """The content of the first item of metadata of type *mime*."""
        return next((content for kind, content in self.metadata if kind == mime), None)

    @property
    def tracing(self) -> tuple[MetadataItem, ...]:
        """The items of distributed tracing, to be forwarded unchanged::

        await other.request_response(…, metadata=request.tracing)
        """
        return tuple(each for each in self.metadata if each.mime == TRACING_ZIPKIN)

    @property
    def credentials(self) -> Credentials | None:
        """The credentials in the metadata of this request, apart from those of the connection."""
        try:
            return find_credentials(self.metadata)
        except ProtocolError as error:
            raise RequestInvalid(ErrorCode.INVALID, f"{error}".encode()) from None

    @property
    def remaining(self) -> float | None:
        """The number of seconds until the deadline, at least 0.001; None if there is no deadline.

        ::

            await other.request_response(…, timeout=request.remaining)
        """
        if self.deadline is None:
            return None
        return max(0.001, self.deadline - self._driver.loop_handle.time())

    @property
    def payload(self) -> Any:
        """The decoded data; of a channel, the first element."""
        if self._payload is _UNREAD:
            self._payload = self._decode(self.data)
        return self._payload

    @property
    def incoming(self) -> "Flow[Any]":
        """The elements of a channel, for one subscriber; for other models, the payload alone."""
        if self._open is None:
            raise RuntimeError("incoming is available to handlers, not to authorize")
        return self._open()

    @property
    def peer(self) -> "Requester[Any]":
        """A requester for requests to the peer."""
        return self._peer()
