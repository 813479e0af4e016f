"""The requester: the four interaction models, for either side of a connection."""

from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from ..._core.arguments import Duration, to_seconds
from ..._core.failures import stop_program
from ..._core.foreign_text import printable
from ..._core.loop import yield_to_loop
from ..._shared.coerce import WINDOW, Source, to_flow
from ...errors import TimedOut
from ...stage import Downstream, from_push
from ..link.driver import Driver
from ..link.intake import IN_HANDLER
from ..link.shutdown import wait_closed
from ..option_checks import require_codec, require_route
from ..payloads import bounded
from ..protocol.errors import MustWait, StreamFailed
from ..protocol.frames import Payload, PayloadTuple
from ..protocol.metadata import (
    ACCEPT_MIME_TYPES,
    COMPOSITE_METADATA,
    MIME_TYPE,
    ROUTING,
    MetadataItem,
    write_mime_types,
    write_routing,
)
from ..protocol.request_metadata import checked_items, deadline_item, write_items
from .received import Received
from .stream_adapters import ChannelSender, InboundStream, error_frame, is_deadline_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core.loop import Future
    from ...flow import Flow
    from ..payloads import Codec
    from ..protocol.frames import Setup

T = TypeVar("T")
U = TypeVar("U")
Metadata: TypeAlias = "Sequence[MetadataItem | tuple[str, bytes]]"
_NO_METADATA: Final = ()
_MAX_CACHED_ROUTES: Final = 256


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


class Requester(Generic[T]):
    """One connection, for requests to the other side. Close it with ``async with``.

    A *codec* is for requests whose types differ from those of the connection. All other options of
    a request are in `RequestOptions`. If the other side grants leases, requests wait for one. They
    also wait while `Limits.max_requests` are open, and are sent in their order.
    """

    def __init__(
        self,
        driver: Driver,
        codec: "Codec[T]",
        route: str | None = None,
        prefetch: int | None = None,
    ) -> None:
        self._driver = driver
        self._codec = codec
        self._decode = bounded(codec, driver.connection.limits.max_decoded)
        self._route = route
        self._prefetch = prefetch
        self._route_metadata: dict[str | None, bytes | None] = {}
        """The encoded metadata of requests with a route alone, for up to 256 routes."""

    def __repr__(self) -> str:
        return f"<Requester {self._driver.connection!r}>"

    # -- interaction models ------------------------------------------------------------------------
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
    async def request_response(
        self,
        payload: Any = None,
        *,
        codec: "Codec[Any] | None" = None,
        route: str | None = None,
        metadata: Metadata = _NO_METADATA,
        timeout: Duration | None = None,
        with_metadata: bool = False,
    ) -> Any:
        """Request one element. Cancelling the call cancels the request.

        With *with_metadata*, the result is a `Received`, which has the metadata of the response.
        Fails with `TimedOut` after *timeout* seconds, including the wait until it can be sent.
        """
        driver = self._driver
        if driver.close_reason is not None:
            driver.require_open()
        limit = None if timeout is None else to_seconds(timeout, "timeout")
        request = self._encode(payload, codec, route, metadata, limit)
        response: Future[Any] = driver.loop_handle.event_loop.create_future()
        is_nested, timer, stream_id = IN_HANDLER.get(), None, 0
        if is_nested:
            driver.intake.handler_waits(1)
        if limit is not None:
            timer = driver.loop_handle.call_later(limit, _time_out, response, limit)
        try:
            try:
                if not driver.held_requests.waiting:
                    stream_id = driver.connection.fast_path.request_response(request)
                    driver.streams.responses[stream_id] = response
                    driver.send_request()
            except MustWait:
                pass
            if not stream_id:
                _ask_later(driver, request, response)
            data = await response
        except BaseException as error:
            _give_up(driver, response, stream_id)
            if limit is not None and is_deadline_error(error):
                raise _no_answer(limit) from None
            raise
        finally:
            if is_nested:
                driver.intake.handler_waits(-1)
            if timer is not None:
                timer.cancel()
        found = None
        if type(data) is Payload:
            data, found = data
        decode = self._decode if codec is None else self._decoder(codec)
        decoded = data if decode is bytes else decode(data)
        return Received(decoded, found, driver.connection.setup) if with_metadata else decoded

    async def fire_and_forget(
        self,
        payload: Any = None,
        *,
        codec: "Codec[Any] | None" = None,
        route: str | None = None,
        metadata: Metadata = _NO_METADATA,
    ) -> None:
        """Send a request without a response; wait while the output buffer is full."""
        driver = self._open_driver()
        request = self._encode(payload, codec, route, metadata, None)
        is_nested, sent = IN_HANDLER.get(), driver.loop_handle.create_future()

        def send() -> None:
            driver.connection.fire_and_forget(request)
            driver.schedule_turn()
            if not sent.done():
                sent.set_result(None)

        if is_nested:
            driver.intake.handler_waits(1)
        try:
            await driver.drain()
            driver.require_open()
            if not driver.held_requests.send(sent, send, partial(_fail, sent)):
                await sent
                # A cancel scope of anyio does not reach a task whose future is done. Without this
                # turn, a loop of requests could wait for one such future after the other.
                await yield_to_loop()
        finally:
            driver.held_requests.discard(sent)
            if is_nested:
                driver.intake.handler_waits(-1)

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
        route: str | None = None,
        metadata: Metadata = _NO_METADATA,
        timeout: Duration | None = None,
        with_metadata: bool = False,
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
        limit = None if timeout is None else to_seconds(timeout, "timeout")
        request = self._encode(payload, codec, route, metadata, limit)

        def begin(stream: InboundStream) -> None:
            stream.bind(stream.driver.connection.request_stream(request, stream.early_demand))

        prefetch = self._prefetch
        if prefetch is None:
            return self._flow("request_stream", route, codec, begin, limit, with_metadata)
        # What the boundary requests, it has room for: nothing waits in front of it.
        flow = self._flow("request_stream", route, codec, begin, limit, with_metadata, window=0)
        return flow.boundary(prefetch)

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
        route: str | None = None,
        metadata: Metadata = _NO_METADATA,
        timeout: Duration | None = None,
        with_metadata: bool = False,
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
        limit = None if timeout is None else to_seconds(timeout, "timeout")
        items = self._encode_metadata(codec, route, metadata, limit)
        encode = (codec or self._codec).encode

        def begin(stream: InboundStream) -> None:
            stream.driver.connection.require_room()

            def send_request(payload: PayloadTuple, n: int) -> int:
                return stream.driver.connection.request_channel((payload[0], items), n)

            sender = ChannelSender(
                stream,
                lambda element: (encode(element), None),
                send_request,
                partial(_source_error, stream.driver),
            )
            sender.attach(to_flow(source))

        return self._flow("request_channel", route, codec, begin, limit, with_metadata)

    def metadata_push(self, *metadata: MetadataItem | tuple[str, bytes]) -> None:
        """Send metadata about the whole connection."""
        driver = self._open_driver()
        items = checked_items(metadata)
        driver.connection.metadata_push(write_items(self._metadata_mime, items) or b"")
        driver.schedule_turn()

    # -- closing -----------------------------------------------------------------------------------
    @property
    def is_closed(self) -> bool:
        return self._driver.close_reason is not None

    @property
    def address(self) -> Any:
        """The network address of the other side, as its transport knows it; None if it does not."""
        return self._driver.get_extra_info("peername")

    @property
    def may_request(self) -> bool:
        """Whether requests are sent now: it is connected, and neither side is closing."""
        connection = self._driver.connection
        is_connected = self._driver.close_reason is None and not connection.is_suspended
        return is_connected and connection.may_request

    async def closed(self) -> StreamFailed:
        """Wait until the connection has ended; return the reason."""
        return await wait_closed(self._driver)

    async def aclose(self) -> None:
        """Close the connection; open streams fail."""
        await self._driver.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # -- internals ---------------------------------------------------------------------------------
    def _open_driver(self) -> Driver:
        self._driver.require_open()
        return self._driver

    def _flow(
        self,
        model: str,
        route: str | None,
        codec: "Codec[Any] | None",
        begin: "Callable[[InboundStream], None]",
        limit: float | None,
        with_metadata: bool = False,
        *,
        window: int = WINDOW,
    ) -> "Flow[Any]":
        decode = self._decoder(codec)

        def subscribe(downstream: Downstream[Any]) -> InboundStream:
            stream = InboundStream(self._driver, downstream, decode, begin, limit)
            if with_metadata:
                stream.wrap = partial(_received, self._driver.connection.setup)
            return stream

        name = (
            f"{model}({printable(route or self._route or '')})"  # a gateway's may be a stranger's
        )
        return from_push(subscribe, name=name, holds=window, window=window)

    def _decoder(self, codec: "Codec[Any] | None") -> "Callable[[bytes], Any]":
        """What decodes elements in *codec*, no more of each than the limits allow."""
        if codec is None:
            return self._decode
        return bounded(codec, self._driver.connection.limits.max_decoded)

    def _encode(
        self,
        payload: Any,
        codec: "Codec[Any] | None",
        route: str | None,
        metadata: Metadata,
        limit: float | None,
    ) -> PayloadTuple:
        if codec is None and not metadata and limit is None and route in self._route_metadata:
            encoded = self._route_metadata[route]
        else:
            encoded = self._encode_metadata(codec, route, metadata, limit)
        return b"" if payload is None else (codec or self._codec).encode(payload), encoded

    @property
    def _metadata_mime(self) -> str:
        setup = self._driver.connection.setup
        return COMPOSITE_METADATA if setup is None else setup.metadata_mime

    def _encode_metadata(
        self,
        codec: "Codec[Any] | None",
        route: str | None,
        metadata: Metadata,
        limit: float | None,
    ) -> bytes | None:
        is_route_alone = codec is None and not metadata and limit is None
        require_route(route)
        if codec is not None:
            require_codec("codec", codec)
        named = self._route if route is None else route
        items: list[MetadataItem | tuple[str, bytes]] = []
        if named is not None:
            items.append((ROUTING, write_routing(named)))
        if codec is not None and codec.mime != self._codec.mime:
            mime = write_mime_types(codec.mime)
            items += [(MIME_TYPE, mime), (ACCEPT_MIME_TYPES, mime)]
        if limit is not None:
            items.append(deadline_item(limit))
        if metadata:
            items += checked_items(metadata)
        encoded = write_items(self._metadata_mime, items)
        if is_route_alone:
            if len(self._route_metadata) >= _MAX_CACHED_ROUTES:
                self._route_metadata.clear()
            self._route_metadata[route] = encoded
        return encoded


def _source_error(driver: Driver, error: BaseException) -> tuple[int, bytes]:
    """The error frame for *error* of the source of a channel, or of the codec of its elements."""
    stop_program(driver.loop_handle, error)
    return error_frame(driver, error, False)


def _received(setup: "Setup | None", data: Any, metadata: bytes | None) -> Received[Any]:
    return Received(data, metadata, setup)


# -- requests for one element ----------------------------------------------------------------------
def _ask_later(driver: Driver, request: PayloadTuple, response: "Future[Any]") -> None:
    """Send *request*, whose response completes *response*, when it does not have to wait."""

    def ask() -> None:
        stream_id = driver.connection.request_response(request)
        driver.streams.responses[stream_id] = response
        driver.schedule_turn()

    driver.held_requests.send(response, ask, partial(_fail, response))


def _give_up(driver: Driver, response: "Future[Any]", stream_id: int) -> None:
    """Nothing awaits *response* any more: cancel its request, if it was sent and is still open."""
    driver.held_requests.discard(response)
    responses = driver.streams.responses
    if not stream_id:  # it had to wait
        stream_id = next((id for id, each in responses.items() if each is response), 0)
    if responses.get(stream_id) is response:
        del responses[stream_id]
        driver.connection.cancel(stream_id)
        driver.schedule_turn()


def _fail(response: "Future[Any]", error: BaseException) -> None:
    if not response.done():
        response.set_exception(error)


def _no_answer(limit: float) -> TimedOut:
    return TimedOut(f"no answer within {limit:g} s")


def _time_out(response: "Future[Any]", limit: float) -> None:
    _fail(response, _no_answer(limit))
