"""A request of the peer, as handlers, interceptors and `authorize` see it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ..._core.arguments import Absent
from ..link.driver import Driver
from ..protocol.errors import ProtocolError, RequestInvalid
from ..protocol.frames import ErrorCode
from ..protocol.metadata import TRACING_ZIPKIN, Credentials, MetadataItem
from ..protocol.request_metadata import RequestMetadata, find_credentials
from ..protocol.stream_states import InteractionModel
from ..requesting.requester import Requester

if TYPE_CHECKING:
    from ...flow import Flow

_UNREAD: Any = Absent("not read")


@dataclass(slots=True, eq=False, repr=False)
class Request:
    """One request. Its properties are decoded on first access."""

    model: InteractionModel
    """What the peer requests; ``PUSH`` is metadata for the connection, without a response."""
    data: bytes
    """The data of the request, not decoded; of a channel, that of its first element."""
    user: Any
    """The user returned by `authenticate`, or by `authorize` for this request."""
    deadline: float | None
    """The time, by the loop's clock, at which the peer stops waiting; None if there is none."""
    _metadata: RequestMetadata
    _driver: Driver
    _peer: Callable[[], Requester[Any]]
    _decode: Callable[[bytes], Any] = bytes
    _open: "Callable[[Request], Flow[Any]] | None" = None
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
        return self._open(self)

    @property
    def peer(self) -> Requester[Any]:
        """A requester for requests to the peer."""
        return self._peer()


Interceptor: TypeAlias = Callable[[Request, Callable[[Request], Awaitable[Any]]], Any]
"""Called with each `Request` that is served, and with ``proceed``: ``await proceed(request)`` calls
the handler and returns its result, a flow or one element. It returns the result for the peer."""
