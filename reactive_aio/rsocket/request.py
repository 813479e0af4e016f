"""A request of the peer, as a handler may want to see it."""

from typing import TYPE_CHECKING, Any

from .protocol.errors import ProtocolError, RequestInvalid
from .protocol.frames import ErrorCode
from .protocol.mime import TRACING_ZIPKIN
from .request_metadata import RequestMetadata, find_credentials

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..flow import Flow
    from .driver import Driver
    from .protocol.metadata import Credentials, MetadataItem
    from .protocol.stream_states import InteractionModel
    from .requester import Requester

__all__ = ("Request",)


class Request:
    """One request. What costs something to make is made when it is looked at."""

    __slots__ = (
        "_decode",
        "_driver",
        "_envelope",
        "_open",
        "_payload",
        "_peer",
        "data",
        "deadline",
        "model",
        "user",
    )

    def __init__(
        self,
        model: "InteractionModel",
        data: bytes,
        envelope: RequestMetadata,
        driver: "Driver",
        peer: "Callable[[], Requester[Any]]",
        deadline: float | None,
    ) -> None:
        self.model: InteractionModel = model
        self.data: bytes = data
        """The data of the request, as it came; of a channel, that of its first element."""
        self.user: Any = driver.user
        """What the authentication of the connection returned, or of this request."""
        self.deadline: float | None = deadline
        """When the peer stops waiting, by the loop's clock; None if it did not say."""
        self._driver = driver
        self._envelope = envelope
        self._peer = peer
        self._decode: Callable[[bytes], Any] = bytes
        self._open: Callable[[], Flow[Any]] | None = None
        self._payload: Any = _UNREAD

    def __repr__(self) -> str:
        return f"<Request {self.model.name} {self.route!r} {len(self.data)} bytes>"

    @property
    def route(self) -> str:
        return self._envelope.route

    @property
    def metadata(self) -> "tuple[MetadataItem, ...]":
        """All items that came with the request."""
        return self._envelope.items

    def item(self, mime: str) -> bytes | None:
        """The content of the first item of metadata of type *mime*."""
        return next((content for kind, content in self.metadata if kind == mime), None)

    @property
    def tracing(self) -> "tuple[MetadataItem, ...]":
        """The items that say of which trace this is a part, to be passed on as they are::

        await other.request_response(…, metadata=request.tracing)
        """
        return tuple(each for each in self.metadata if each.mime == TRACING_ZIPKIN)

    @property
    def credentials(self) -> "Credentials | None":
        """What came with this request, beside those of the connection."""
        try:
            return find_credentials(self.metadata)
        except ProtocolError as error:
            raise RequestInvalid(ErrorCode.INVALID, f"{error}".encode()) from None

    @property
    def remaining(self) -> float | None:
        """How many seconds are left until the deadline, if there is one, and never none at all.

        ::

            await other.request_response(…, timeout=request.remaining)
        """
        if self.deadline is None:
            return None
        return max(0.001, self.deadline - self._driver.loop_handle.time())

    @property
    def payload(self) -> Any:
        """Its data, decoded; of a channel, the first element."""
        if self._payload is _UNREAD:
            self._payload = self._decode(self.data)
        return self._payload

    @property
    def incoming(self) -> "Flow[Any]":
        """The elements of a channel, for one subscriber; else its payload alone."""
        if self._open is None:
            raise RuntimeError("incoming is there for handlers, not yet for an authorization")
        return self._open()

    @property
    def peer(self) -> "Requester[Any]":
        """For requests to the one who asked."""
        return self._peer()


_UNREAD: Any = object()
