"""The execution of one request: its handler is called, and the result is sent to the peer."""

from collections.abc import AsyncIterable, Awaitable, Iterator
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, cast

from ..._core.flow_subscription import FlowSubscription
from ..._core.loop import CancelledError
from ..._shared.coerce import to_flow
from ...errors import AlreadySubscribed
from ...stage import Downstream, from_push
from ..link.callbacks import ends_task
from ..option_checks import require_bytes
from ..protocol.errors import ProtocolError, RequestInvalid
from ..protocol.events import RequestReceived
from ..protocol.frames import ErrorCode, Payload
from ..protocol.metadata import MIME_TYPE, write_mime_types
from ..protocol.stream_states import InteractionModel
from ..requesting.requester import Requester
from ..requesting.stream_adapters import InboundStream, OutboundStream, ReadAheadStream
from .direct_responses import SINGLE_TYPES
from .interceptors import run
from .request import DEADLINE_PASSED, Request, write_items
from .routing import DEFAULT, no_such_route

if TYPE_CHECKING:
    from ..._core.loop import TimerHandle
    from ...flow import Flow
    from ..link.driver import Driver
    from ..payloads import Codec
    from .request import RequestMetadata
    from .responder import RouterResponder
    from .route_stats import RouteCounters


class RequestExecution:
    """Serves one request, and is the sender of its stream until there is a publisher."""

    held: Final = 0
    """It holds no elements: there is no publisher yet."""

    def __init__(
        self, responder: "RouterResponder", driver: "Driver", requested: RequestReceived
    ) -> None:
        self.responder = responder
        self.driver = driver
        self.requested = requested
        self.stream_id: int = requested.stream_id
        self._pending = 0
        self._has_incoming = False  # there is a subscriber for the elements of the channel
        self._task: Any = None
        self._timer: TimerHandle | None = None
        self._sender: RequestExecution | OutboundStream = self
        try:
            setup, most = driver.connection.setup, driver.connection.limits.max_items
            envelope = responder.metadata_cache.read(setup, requested.payload.metadata, most)
            self._match = responder.router.find(envelope.route)
            request_codec, response_codec = responder.choose_codecs(setup, envelope)
        except ProtocolError as error:
            raise RequestInvalid(ErrorCode.INVALID, f"{error}".encode()) from None
        pattern = DEFAULT if self._match is None else self._match[0].pattern
        self.counters: RouteCounters = responder.counters.of(pattern)
        self.counters.requests += 1
        self.data_codec: Codec[Any] = request_codec
        self.codec: Codec[Any] = response_codec
        self._first_metadata = self._chosen_mime_type(envelope)
        deadline = None
        if envelope.timeout is not None:
            deadline = driver.loop_handle.time() + envelope.timeout
        data = requested.payload.data
        self.request: Request = Request(
            requested.model, data, driver.user, deadline, envelope, driver, self._peer
        )

    def begin(self) -> None:
        request, driver = self.request, self.driver
        driver.streams.senders[self.stream_id] = self
        if request.deadline is not None:
            remaining = request.deadline - driver.loop_handle.time()
            self._timer = driver.loop_handle.call_later(remaining, self._on_deadline)
        if self.responder.is_guarded:
            self._start(self.call_when_authorized())
            return
        self.handle_result(self.call())

    def handle_result(self, result: Any) -> None:
        """Send the result of a handler that has been called."""
        self.driver.streams.senders[self.stream_id] = self
        if isawaitable(result):
            self._start(result)
        else:
            self.send(result)

    def _start(self, result: Awaitable[Any]) -> None:
        name = f"rsocket: serves {self.request.route}"
        self._task = self.driver.create_task(self._await(result), name, result)

    # -- the handler -------------------------------------------------------------------------------
    def call(self) -> Any:
        """Call the handler; what it returns."""
        request = self.request
        if self._match is None:
            raise no_such_route(request.route)
        handler, texts = self._match
        values = handler.route_arguments(texts)
        decode = handler.decoder(self.data_codec, self.driver.connection.limits.max_decoded)
        request._decode = decode
        if request.model is InteractionModel.CHANNEL:
            request._open = partial(self._incoming, decode)
            if not handler.takes_incoming:
                self.driver.connection.cancel(self.stream_id)
        else:
            request._open = partial(_alone, request)
        return handler(request, values)

    def _peer(self) -> Requester[Any]:
        return Requester(self.driver, self.responder.codec(self.driver.connection.setup))

    def _incoming(self, decode: Any) -> "Flow[Any]":
        """The elements of a channel, for one subscriber."""

        def begin(stream: InboundStream, n: int) -> None:
            if self._has_incoming:
                raise AlreadySubscribed("rule 1.11: incoming serves one subscription, and has")
            self._has_incoming = True
            stream.bind(self.stream_id)
            self.driver.connection.request(self.stream_id, n)

        def open(downstream: Downstream[Any]) -> FlowSubscription:
            return InboundStream(self.driver, downstream, decode, begin)

        return from_push(open, name="incoming", holds=None)

    async def call_when_authorized(self) -> Any:
        """Call the interceptors, and the handler once the request is authorized."""
        return await run(self.responder.interceptors, self.request, self._call_inmost)

    async def _call_inmost(self, request: Request) -> Any:
        """Authorize *request*, and call the handler.

        Interceptors receive a result of many elements, such as a generator, as a flow.
        """
        self.request = request
        await self.responder.check(request)
        result = self.call()
        value = await result if isawaitable(result) else result
        publisher = publisher_of(value) if self.responder.interceptors else None
        return value if publisher is None else publisher

    async def _await(self, result: Awaitable[Any]) -> None:
        driver, stream_id = self.driver, self.stream_id
        try:
            value = await result
            self._task = None
            if driver.streams.senders.get(stream_id) is self:
                self.send(value)
        except CancelledError:
            if driver.streams.senders.get(stream_id) is self:
                self._fail(ErrorCode.CANCELED, b"")
            self._stop_timer()
            raise
        except BaseException as error:
            if ends_task(driver.loop_handle, error):
                raise
            self.refuse(error)

    # -- as the sender of the stream ---------------------------------------------------------------
    def demanded(self, n: int) -> None:
        self._pending += n

    def cancelled(self) -> None:
        self._stop_timer()
        if self._task is not None:
            self._task.cancel()
            self.driver.await_handler(self._task)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_deadline(self) -> None:
        """The requester has stopped waiting."""
        if self.driver.streams.senders.get(self.stream_id) is self._sender:
            self.counters.failed += 1
            self._fail(ErrorCode.CANCELED, DEADLINE_PASSED)
            self._sender.cancelled()

    def refuse(self, error: BaseException) -> None:
        """Send *error* as the response."""
        self._stop_timer()
        code, data = self._error_frame(error)
        self._fail(code, data)

    def _error_frame(self, error: BaseException) -> tuple[int, bytes]:
        self.counters.count_error(error)
        return self.responder.error_frame(self.driver, error)

    def _fail(self, code: int, data: bytes) -> None:
        self.driver.streams.senders.pop(self.stream_id, None)
        self.driver.connection.fail_stream(self.stream_id, code, data)
        self.driver.schedule_turn()

    # -- what it returned --------------------------------------------------------------------------
    def send(self, value: Any) -> None:
        """Send what a handler has returned, or its coroutine."""
        driver, stream_id = self.driver, self.stream_id
        publisher = publisher_of(value)
        single = self.requested.model is InteractionModel.RESPONSE
        if publisher is None and single:
            self._stop_timer()
            payload = None if value is None else self._encode(value)
            driver.streams.senders.pop(stream_id, None)
            if payload is None:
                driver.connection.complete(stream_id)
            else:
                self.counters.elements += 1
                driver.connection.send(stream_id, payload, complete=True)
            driver.schedule_turn()
            return
        if publisher is None:
            publisher = to_flow([] if value is None else [value])
        stream = _sender_kind(value, single)(
            driver,
            stream_id,
            self._encode,
            encode_data=self.codec.encode if self._first_metadata is None and not single else None,
            error_frame=self._error_frame,
            single=single,
            timer=self._timer,
            counters=self.counters,
        )
        self._sender = stream
        driver.streams.senders[stream_id] = stream
        if self._pending:
            stream.demanded(self._pending)
        stream.attach(publisher)

    def _encode(self, value: Any) -> Payload:
        if type(value) is Payload:
            require_bytes("the data of a Payload", value.data)
            if value.metadata is not None:
                require_bytes("the metadata of a Payload", value.metadata)
            return value
        if self._first_metadata is None:
            return Payload(self.codec.encode(value))
        metadata, self._first_metadata = self._first_metadata, None
        return Payload(self.codec.encode(value), metadata)

    def _chosen_mime_type(self, envelope: "RequestMetadata") -> bytes | None:
        """Metadata with the MIME type chosen from those the peer accepts, if it accepts several."""
        setup = self.driver.connection.setup
        if len(envelope.accept) < 2 or setup is None:
            return None
        try:
            return write_items(
                setup.metadata_mime, [(MIME_TYPE, write_mime_types(self.codec.mime))]
            )
        except ValueError:
            return None  # this connection's metadata has no room for it


def _sender_kind(value: Any, single: bool) -> type[OutboundStream]:
    """What sends *value*, the result of a handler."""
    is_publisher = callable(getattr(value, "subscribe", None))
    if single or is_publisher or not isinstance(value, AsyncIterable | Iterator):
        return OutboundStream
    return ReadAheadStream


def publisher_of(value: Any) -> "Flow[Any] | None":
    """*value* as a flow if it is many elements; None if it is one."""
    if value is None or type(cast("object", value)) in SINGLE_TYPES or type(value) is Payload:
        return None
    many = isinstance(value, AsyncIterable | Iterator) or callable(
        getattr(cast("object", value), "subscribe", None)
    )
    return to_flow(cast("AsyncIterable[Any]", value)) if many else None


def _alone(request: Request) -> "Flow[Any]":
    return to_flow([] if request.payload is None else [request.payload])
