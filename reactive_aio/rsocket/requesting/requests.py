"""Requests in the four interaction models, whoever sends them: a connection, or one of several."""

from abc import ABC, abstractmethod
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from ..._core.arguments import Duration
from ..._shared.coerce import Source
from ..._shared.foreign_options import explain_foreign_options
from ..protocol.stream_states import InteractionModel
from .received import Received

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...flow import Flow
    from ..payloads import Codec
    from ..protocol.metadata import MetadataItem

T = TypeVar("T")
U = TypeVar("U")
Metadata: TypeAlias = "Sequence[MetadataItem | tuple[str, bytes]]"
RESPONSE: Final = InteractionModel.RESPONSE
FNF: Final = InteractionModel.FNF
STREAM: Final = InteractionModel.STREAM
CHANNEL: Final = InteractionModel.CHANNEL
FLOWS: Final = frozenset({STREAM, CHANNEL})
"""The models of which many elements may be received."""


class RequestOptions(TypedDict, total=False):
    """The options of a request.

    - route: the route; by default, that of the address.
    - metadata: additional items of metadata.
    - timeout: the time until the end of the response. The responder gets it and enforces it as
      well.
    """

    route: str | None
    metadata: Metadata
    timeout: Duration | None


class Requests(ABC, Generic[T]):
    """The interaction models, of which each request goes one way: that of `_ask`."""

    @abstractmethod
    def _ask(self, model: InteractionModel, payload: Any, options: dict[str, Any]) -> Any:
        """Send a request: return a coroutine, or a flow if many elements may come."""

    @overload
    async def request_response(
        self, payload: T | None = None, **options: Unpack[RequestOptions]
    ) -> T: ...
    @overload
    async def request_response(
        self, payload: Any = None, *, codec: "Codec[U]", **options: Unpack[RequestOptions]
    ) -> U: ...
    @overload
    async def request_response(
        self,
        payload: T | None = None,
        *,
        with_metadata: Literal[True],
        **options: Unpack[RequestOptions],
    ) -> Received[T]: ...
    @overload
    async def request_response(
        self,
        payload: Any = None,
        *,
        codec: "Codec[U]",
        with_metadata: Literal[True],
        **options: Unpack[RequestOptions],
    ) -> Received[U]: ...
    def request_response(
        self,
        payload: Any = None,
        *,
        codec: "Codec[Any] | None" = None,
        with_metadata: bool = False,
        route: str | None = None,
        metadata: Metadata = (),
        timeout: Duration | None = None,
    ) -> Any:
        """Request one element. Cancelling the call cancels the request.

        With *with_metadata*, the result is a `Received`, which has the metadata of the response.
        Fails with `TimedOut` after *timeout* seconds, including the wait until it can be sent.
        """
        options = _given(codec, with_metadata, route, metadata, timeout)
        return self._ask(RESPONSE, payload, options)

    async def fire_and_forget(
        self,
        payload: Any = None,
        *,
        codec: "Codec[Any] | None" = None,
        route: str | None = None,
        metadata: Metadata = (),
    ) -> None:
        """Send a request without a response; wait while the output buffer is full."""
        options = {"codec": codec, "route": route, "metadata": metadata}
        await self._ask(FNF, payload, options)

    @overload
    def request_stream(
        self, payload: T | None = None, **options: Unpack[RequestOptions]
    ) -> "Flow[T]": ...
    @overload
    def request_stream(
        self, payload: Any = None, *, codec: "Codec[U]", **options: Unpack[RequestOptions]
    ) -> "Flow[U]": ...
    @overload
    def request_stream(
        self,
        payload: T | None = None,
        *,
        with_metadata: Literal[True],
        **options: Unpack[RequestOptions],
    ) -> "Flow[Received[T]]": ...
    @overload
    def request_stream(
        self,
        payload: Any = None,
        *,
        codec: "Codec[U]",
        with_metadata: Literal[True],
        **options: Unpack[RequestOptions],
    ) -> "Flow[Received[U]]": ...
    def request_stream(
        self,
        payload: Any = None,
        *,
        codec: "Codec[Any] | None" = None,
        with_metadata: bool = False,
        route: str | None = None,
        metadata: Metadata = (),
        timeout: Duration | None = None,
    ) -> "Flow[Any]":
        """Request a stream, once for each subscription, with its first demand.

        With *with_metadata*, its elements are `Received`, with the metadata of each.

        Demand: that of the subscriber is the demand on the other side, at most 256 at a time. If
            the address has ``?n=64``, 64 from the first request on, whatever the subscriber needs.
        Completes: when the other side completes.
        Fails: with `ApplicationError` when the other side does; with `RequestRejected`,
            `RequestInvalid` or `RequestCanceled` when it does not serve the request to its end;
            with `ConnectionLost` when the connection ends, or has ended; with `TimedOut` unless the
            stream ends within *timeout* seconds from its first demand; when an element cannot be
            decoded.
        Cancels: the stream on the other side.
        Holds: 256 elements, which were requested and wait for a slow subscriber; *n* if the address
            has ``?n=``.
        """
        options = _given(codec, with_metadata, route, metadata, timeout)
        found: Flow[Any] = self._ask(STREAM, payload, options)
        return found

    @overload
    def request_channel(
        self, source: Source[T], **options: Unpack[RequestOptions]
    ) -> "Flow[T]": ...
    @overload
    def request_channel(
        self, source: Source[Any], *, codec: "Codec[U]", **options: Unpack[RequestOptions]
    ) -> "Flow[U]": ...
    @overload
    def request_channel(
        self,
        source: Source[T],
        *,
        with_metadata: Literal[True],
        **options: Unpack[RequestOptions],
    ) -> "Flow[Received[T]]": ...
    @overload
    def request_channel(
        self,
        source: Source[Any],
        *,
        codec: "Codec[U]",
        with_metadata: Literal[True],
        **options: Unpack[RequestOptions],
    ) -> "Flow[Received[U]]": ...
    def request_channel(
        self,
        source: Source[Any],
        *,
        codec: "Codec[Any] | None" = None,
        with_metadata: bool = False,
        route: str | None = None,
        metadata: Metadata = (),
        timeout: Duration | None = None,
    ) -> "Flow[Any]":
        """Send the elements of *source* under the demand of the other side; receive its elements.

        With *with_metadata*, the elements received are `Received`, with the metadata of each.
        The first element of *source* opens the channel; if *source* is empty, so is the result.

        Demand: that of the subscriber is the demand on the other side, at most 256 at a time; the
            demand of the other side is that on *source*.
        Completes: when the other side completes. *source* continues until it ends, or the other
            side cancels it.
        Fails: as `request_stream`, and *source* is cancelled; with the error of *source*, whose
            text is not sent to the other side.
        Cancels: both directions.
        Holds: 256 elements, which were requested and wait for a slow subscriber.
        """
        options = _given(codec, with_metadata, route, metadata, timeout)
        found: Flow[Any] = self._ask(CHANNEL, source, options)
        return found


def _given(
    codec: "Codec[Any] | None",
    with_metadata: bool,
    route: str | None,
    metadata: Metadata,
    timeout: Duration | None,
) -> dict[str, Any]:
    """The options of a request, as an interceptor finds them."""
    options = {"codec": codec, "route": route, "metadata": metadata, "timeout": timeout}
    return {**options, "with_metadata": True} if with_metadata else options


explain_foreign_options(Requests, [name for name in vars(Requests) if name[0] != "_"])
