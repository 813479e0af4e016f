"""The requester: the four interaction models, for either side of a connection."""

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from anyio.abc import AsyncResource

from ..._core.arguments import Duration, to_seconds
from ..._core.failures import stop_program
from ..._core.foreign_text import printable
from ..._core.loop import yield_to_loop
from ..._shared.coerce import WINDOW, Source, to_flow
from ..._shared.foreign_options import explain_foreign_options
from ...errors import TimedOut
from ...stage import Downstream, from_push
from ..link.driver import Driver
from ..link.intake import IN_HANDLER
from ..link.shutdown import wait_closed
from ..option_checks import require_codec, require_route
from ..payloads import bounded
from ..protocol.errors import StreamFailed
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
from ..protocol.stream_states import InteractionModel
from .interceptors import ClientInterceptor, OutgoingRequest, intercepted
from .received import Received
from .requests import CHANNEL, FLOWS, FNF, RESPONSE, Metadata, Requests
from .stream_adapters import ChannelSender, InboundStream, error_frame, is_deadline_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..._core.loop import Future
    from ...flow import Flow
    from ..payloads import Codec
    from ..protocol.frames import Setup

T = TypeVar("T")
_NO_METADATA: Final = ()
_MAX_CACHED_ROUTES: Final = 256


class Requester(Requests[T], AsyncResource):
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
        *,
        interceptors: tuple[ClientInterceptor, ...] = (),
    ) -> None:
        self._driver = driver
        self._codec = codec
        self._decode = bounded(codec, driver.connection.limits.max_decoded)
        self._route = route
        self._prefetch = prefetch
        self._interceptors = interceptors
        self._route_metadata: dict[str | None, bytes | None] = {}
        """The encoded metadata of requests with a route alone, for up to 256 routes."""

    def __repr__(self) -> str:
        return f"<Requester {self._driver.connection!r}>"

    # -- requests ----------------------------------------------------------------------------------
    def _ask(self, model: InteractionModel, payload: Any, options: dict[str, Any]) -> Any:
        if not self._interceptors:
            return self._send(model, payload, options)
        request = OutgoingRequest.of(model, payload, self._route, options)
        return intercepted(
            self._interceptors,
            request,
            lambda each: self._send(each.model, each.payload, each.options()),
        )

    def _send(self, model: InteractionModel, payload: Any, options: dict[str, Any]) -> Any:
        send = self._flow if model in FLOWS else self._one
        return send(model, payload, **options)

    async def _one(
        self, model: InteractionModel, payload: Any, *, with_metadata: bool = False, **options: Any
    ) -> Any:
        """Send a request, and return its one answer; None, once it is sent, if it has none."""
        driver = self._driver
        if driver.ending.reason is not None:
            driver.ending.require_open()
        request, limit = self._encode(payload, **options)
        answer: Future[Any] = driver.loop_handle.event_loop.create_future()
        is_nested, timer, stream_id = IN_HANDLER.get(), None, 0

        def send() -> None:
            nonlocal stream_id
            stream_id = _begin(driver, model, request, answer)

        if is_nested:
            driver.intake.handler_waits(1)
        if limit is not None:
            timer = driver.loop_handle.call_later(limit, _time_out, answer, limit)
        try:
            if model is FNF:
                await driver.drain()
                driver.ending.require_open()
            is_sent = driver.held_requests.send(answer, send, partial(_fail, answer))
            data = await answer
            if model is FNF:
                if not is_sent:
                    # A cancel scope of anyio does not reach a task whose future is done. Without
                    # this turn, a loop of requests could wait for one such future after the other.
                    await yield_to_loop()
                return None
        except BaseException as error:
            _give_up(driver, answer, stream_id)
            if limit is not None and is_deadline_error(error):
                raise _no_answer(limit) from None
            raise
        finally:
            if is_nested:
                driver.intake.handler_waits(-1)
            if timer is not None:
                timer.cancel()
        return self._decoded(data, options.get("codec"), with_metadata)

    def _decoded(self, data: Any, codec: "Codec[Any] | None", with_metadata: bool) -> Any:
        """The one element of a response, from its *data* or, with metadata, its `Payload`."""
        found = None
        if type(data) is Payload:
            data, found = data
        decode = self._decoder(codec)
        decoded = data if decode is bytes else decode(data)
        if not with_metadata:
            return decoded
        return Received(decoded, found, self._driver.connection.setup)

    def _flow(
        self, model: InteractionModel, source: Any, *, with_metadata: bool = False, **options: Any
    ) -> "Flow[Any]":
        """A flow of the answers; a request, or a channel with *source*, for each subscription."""
        is_channel, codec = model is CHANNEL, options.get("codec")
        request, limit = self._encode(None if is_channel else source, **options)
        if is_channel:
            begin = partial(_open_channel, source, (codec or self._codec).encode, request[1])
        else:
            begin = partial(_open_stream, request)
        decode = self._decoder(codec)

        def subscribe(downstream: Downstream[Any]) -> InboundStream:
            stream = InboundStream(self._driver, downstream, decode, begin, limit)
            if with_metadata:
                stream.wrap = partial(_received, self._driver.connection.setup)
            return stream

        # A gateway's route may be a stranger's.
        route = printable(options.get("route") or self._route or "")
        prefetch = None if is_channel else self._prefetch
        # What a boundary requests, it has room for: nothing waits in front of it.
        window = WINDOW if prefetch is None else 0
        name = f"request_{model.name.lower()}({route})"
        flow: Flow[Any] = from_push(subscribe, name=name, holds=window, window=window)
        return flow if prefetch is None else flow.boundary(prefetch)

    def metadata_push(self, *metadata: MetadataItem | tuple[str, bytes]) -> None:
        """Send metadata about the whole connection."""
        driver = self._driver
        driver.ending.require_open()
        items = checked_items(metadata)
        driver.connection.metadata_push(write_items(self._metadata_mime, items) or b"")
        driver.schedule_turn()

    # -- closing -----------------------------------------------------------------------------------
    @property
    def is_closed(self) -> bool:
        return self._driver.ending.reason is not None

    @property
    def address(self) -> Any:
        """The network address of the other side, as its transport knows it; None if it does not."""
        return self._driver.get_extra_info("peername")

    @property
    def may_request(self) -> bool:
        """Whether requests are sent now: it is connected, and neither side is closing."""
        connection = self._driver.connection
        is_connected = self._driver.ending.reason is None and not connection.is_suspended
        return is_connected and connection.may_request

    async def closed(self) -> StreamFailed:
        """Wait until the connection has ended; return the reason."""
        return await wait_closed(self._driver)

    async def aclose(self) -> None:
        """Close the connection; open streams fail."""
        await self._driver.aclose()

    # -- internals ---------------------------------------------------------------------------------
    def _decoder(self, codec: "Codec[Any] | None") -> "Callable[[bytes], Any]":
        """What decodes elements in *codec*, no more of each than the limits allow."""
        if codec is None:
            return self._decode
        return bounded(codec, self._driver.connection.limits.max_decoded)

    def _encode(
        self,
        payload: Any,
        *,
        codec: "Codec[Any] | None" = None,
        route: str | None = None,
        metadata: Metadata = _NO_METADATA,
        timeout: Duration | None = None,
    ) -> tuple[PayloadTuple, float | None]:
        """The payload of a request with these options, and its time limit."""
        limit = None if timeout is None else to_seconds(timeout, "timeout")
        if codec is None and not metadata and limit is None and route in self._route_metadata:
            encoded = self._route_metadata[route]
        else:
            encoded = self._encode_metadata(codec, route, metadata, limit)
        data = b"" if payload is None else (codec or self._codec).encode(payload)
        return (data, encoded), limit

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


# -- streams ---------------------------------------------------------------------------------------
def _open_stream(request: PayloadTuple, stream: InboundStream) -> None:
    stream.bind(stream.driver.connection.request_stream(request, stream.early_demand))


def _open_channel(
    source: Source[Any],
    encode: "Callable[[Any], bytes]",
    metadata: bytes | None,
    stream: InboundStream,
) -> None:
    """Subscribe to *source*, whose first element opens the channel."""
    connection = stream.driver.connection
    connection.require_room()
    sender = ChannelSender(
        stream,
        lambda element: (encode(element), None),
        lambda payload, n: connection.request_channel((payload[0], metadata), n),
        partial(_source_error, stream.driver),
    )
    sender.attach(to_flow(source))


def _source_error(driver: Driver, error: BaseException) -> tuple[int, bytes]:
    """The error frame for *error* of the source of a channel, or of the codec of its elements."""
    stop_program(driver.loop_handle, error)
    return error_frame(driver, error, False)


def _received(setup: "Setup | None", data: Any, metadata: bytes | None) -> Received[Any]:
    return Received(data, metadata, setup)


# -- requests with one answer, or none -------------------------------------------------------------
def _begin(
    driver: Driver, model: InteractionModel, request: PayloadTuple, answer: "Future[Any]"
) -> int:
    """Send *request*, which completes *answer*; its stream id. May raise `MustWait`."""
    if model is RESPONSE:
        stream_id = driver.connection.request_response(request)
        driver.streams.responses[stream_id] = answer
        driver.send_request()
        return stream_id
    driver.connection.fire_and_forget(request)
    driver.schedule_turn()
    if not answer.done():
        answer.set_result(None)
    return 0


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


explain_foreign_options(Requester, [name for name in vars(Requester) if name[0] != "_"])
