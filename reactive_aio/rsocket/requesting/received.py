"""What a requester receives if it requests elements with their metadata."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from ..payloads import PayloadError
from ..protocol.errors import ProtocolError
from ..protocol.request_metadata import read_items

if TYPE_CHECKING:
    from ..protocol.frames import Setup
    from ..protocol.metadata import MetadataItem

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Received(Generic[T]):
    """An element of the peer, decoded, and its metadata."""

    data: T
    raw_metadata: bytes | None = None
    """The metadata as it was received; None if there was none."""
    _setup: "Setup | None" = field(default=None, repr=False, compare=False)

    @property
    def metadata(self) -> "tuple[MetadataItem, ...]":
        """All items of metadata. Raises `PayloadError` if they are malformed."""
        try:
            return read_items(self._setup, self.raw_metadata)
        except ProtocolError as error:
            raise PayloadError(f"the metadata of the element cannot be read: {error}") from None

    def item(self, mime: str) -> bytes | None:
        """The content of the first item of metadata of type *mime*."""
        return next((content for kind, content in self.metadata if kind == mime), None)
