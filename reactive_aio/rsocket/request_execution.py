"""One request while it is served: its handler is called, and what that returns goes to the peer."""

from collections.abc import AsyncIterable, Awaitable, Iterator
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, cast

from anyio import move_on_after

from .._core.flow_subscription import FlowSubscription
from .._core.loop import CancelledError
from ..coerce import to_flow
from ..errors import AlreadySubscribed
from ..stage import Downstream, from_push
from .protocol.errors import ProtocolError, RequestInvalid
from .protocol.events import RequestReceived
from .protocol.frames import ErrorCode, Payload
from .protocol.metadata import write_mime_types
from .protocol.mime import MIME_TYPE
from .protocol.stream_states import InteractionModel
from .request import Request
from .request_metadata import DEADLINE_PASSED, RequestMetadata, write_items
from .requester import Requester
from .stream_adapters import InboundStream, OutboundStream

if TYPE_CHECKING:
    from .._core.loop import TimerHandle
    from ..flow import Flow
    from .driver import Driver
    from .payloads import Codec
    from .responder import RouterResponder

__all__ = ("ONE", "RequestExecution")

ONE: Final = frozenset({bytes, str, int, float, bool, dict, list, tuple})
"""What is one element, without a closer look."""


class RequestExecution:
    """The sender of a request's stream, until there is a publisher."""

    def __init__(
        self, responder: "RouterResponder", driver: "Driver", requested: RequestReceived
    ) -> None:
        self.responder = responder
        self.driver = driver
        self.requested = requested
        self.stream_id: int = requested.stream_id
        self._pending = 0
        self._taken = False  # somebody has subscribed to the elements of the channel
        self._task: Any = None
        self._timer: TimerHandle | None = None
        self._sender: Any = self
        try:
            setup = driver.connection.setup
            envelope = responder.metadata_cache.read(setup, requested.payload.metadata)
            reads, writes = responder.choose_codecs(setup, envelope)
        except ProtocolError as error:
            raise RequestInvalid(ErrorCode.INVALID, f"{error}".encode()) from None
        self.data_codec: Codec[Any] = reads
        self.codec: Codec[Any] = writes
        self._type_of_first = self._told_type(envelope)
        deadline = None
        if envelope.timeout is not None:
            deadline = driver.loop_handle.time() + envelope.timeout
        data = requested.payload.data
        self.request: Request = Request(
            requested.model, data, envelope, driver, self._peer, deadline
        )

    def begin(self) -> None:
        request, driver = self.request, self.driver
        if request.model is InteractionModel.FNF:
            self._forget()
            return
        driver.streams.set_sender(self.stream_id, self)
        if request.deadline is not None:
            left = request.deadline - driver.loop_handle.time()
            self._timer = driver.loop_handle.call_later(left, self._too_late)
        if self.responder.auth.authorize is not None:
            self._task = driver.create_task(self._permitted(), f"rsocket: serves {request.route}")
            return
        self._take(self._call())

    def go_on(self, result: Any) -> None:
        """The handler has been called: see what it returned."""
        self.driver.streams.set_sender(self.stream_id, self)
        self._take(result)

    def _take(self, result: Any) -> None:
        request, driver = self.request, self.driver
        if isawaitable(result):
            self._task = driver.create_task(self._await(result), f"rsocket: serves {request.route}")
        else:
            self._send(result)

    # -- the handler -------------------------------------------------------------------------------
    def _call(self) -> Any:
        request = self.request
        found = self.responder.router.find(request.route)
        if found is None:
            raise RequestInvalid(ErrorCode.INVALID, b"there is no such route")
        handler, texts = found
        values = handler.route_arguments(texts)
        decode = handler.decoder(self.data_codec)
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

        def begin(inflow: InboundStream, n: int) -> None:
            if self._taken:
                raise AlreadySubscribed("rule 1.11: incoming serves one subscription, and has")
            self._taken = True
            inflow.bind(self.stream_id)
            self.driver.connection.request(self.stream_id, n)

        def open(downstream: Downstream[Any]) -> FlowSubscription:
            return InboundStream(self.driver, downstream, decode, begin)

        return from_push(open, name="incoming", holds=None)

    async def _permitted(self) -> None:
        """Ask first whether it may be served."""
        await self._await(self._after_permission())

    async def _after_permission(self) -> Any:
        await self.responder.auth.check(self.request)
        result = self._call()
        return await result if isawaitable(result) else result

    async def _await(self, result: Awaitable[Any]) -> None:
        driver, stream_id = self.driver, self.stream_id
        try:
            value = await result
            self._task = None
            if driver.streams.is_sender(stream_id, self):
                self._send(value)
        except CancelledError:
            if driver.streams.is_sender(stream_id, self):
                driver.connection.fail_stream(stream_id, ErrorCode.CANCELED, b"")
                driver.streams.remove_sender(stream_id)
                driver.schedule_turn()
            self.ended()
            raise
        except Exception as error:
            self.refuse(error)

    # -- as the sender of the stream ---------------------------------------------------------------
    def demanded(self, n: int) -> None:
        self._pending += n

    def cancelled(self) -> None:
        self.ended()
        if self._task is not None:
            self._task.cancel()

    def ended(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self) -> None:
        """The requester has stopped waiting."""
        driver, stream_id = self.driver, self.stream_id
        sender = self._sender
        if driver.streams.is_sender(stream_id, sender):
            driver.streams.remove_sender(stream_id)
            driver.connection.fail_stream(stream_id, ErrorCode.CANCELED, DEADLINE_PASSED)
            driver.schedule_turn()
            sender.cancelled()

    def refuse(self, error: BaseException) -> None:
        """Answer with *error*."""
        self.ended()
        code, data = self.responder.error_frame(self.driver, error)
        if self.requested.model is not InteractionModel.FNF:
            self.driver.streams.remove_sender(self.stream_id)
            self.driver.connection.fail_stream(self.stream_id, code, data)
            self.driver.schedule_turn()

    # -- what it returned --------------------------------------------------------------------------
    def _send(self, value: Any) -> None:
        driver, stream_id = self.driver, self.stream_id
        publisher = _publisher(value)
        single = self.requested.model is InteractionModel.RESPONSE
        if publisher is None and single:
            self.ended()
            payload = None if value is None else self._encode(value)
            driver.streams.remove_sender(stream_id)
            if payload is None:
                driver.connection.complete(stream_id)
            else:
                driver.connection.send(stream_id, payload, complete=True)
            driver.schedule_turn()
            return
        if publisher is None:
            publisher = to_flow([] if value is None else [value])
        outflow = _ExecutionStream(
            driver,
            stream_id,
            self._encode,
            plainly=self.codec.encode if self._type_of_first is None and not single else None,
            failed=self._failed,
            single=single,
        )
        if self._timer is not None:
            outflow.clock = self._timer
        self._sender = outflow
        driver.streams.set_sender(stream_id, outflow)
        if self._pending:
            outflow.demanded(self._pending)
        outflow.attach(publisher)

    def _encode(self, value: Any) -> Payload:
        if type(value) is Payload:
            return value
        if self._type_of_first is None:
            return Payload(self.codec.encode(value))
        told, self._type_of_first = self._type_of_first, None
        return Payload(self.codec.encode(value), told)

    def _told_type(self, envelope: RequestMetadata) -> bytes | None:
        """What tells the peer which of the types it accepts was chosen, if it left a choice."""
        setup = self.driver.connection.setup
        if len(envelope.accept) < 2 or setup is None:
            return None
        try:
            return write_items(
                setup.metadata_mime, [(MIME_TYPE, write_mime_types(self.codec.mime))]
            )
        except ValueError:
            return None  # this connection's metadata cannot say it

    def _failed(self, error: BaseException) -> tuple[int, bytes]:
        return self.responder.error_frame(self.driver, error)

    # -- fire and forget ---------------------------------------------------------------------------
    def _forget(self) -> None:
        name = f"rsocket: {self.request.route}"
        self.responder.start_without_response(self.driver, self._run(), name)

    async def _run(self) -> None:
        try:
            with move_on_after(self.request.remaining):
                result = await self._after_permission()
                publisher = _publisher(result)
                if publisher is not None:
                    await publisher.for_each(_ignore)
        except Exception as error:
            self.responder.error_frame(self.driver, error)


class _ExecutionStream(OutboundStream):
    """One whose end stops the clock, if there is one."""

    clock: "TimerHandle | None" = None

    def _leave(self) -> None:
        super()._leave()
        self._stop()

    def on_complete(self) -> None:
        super().on_complete()
        self._stop()

    def on_error(self, error: BaseException, /) -> None:
        super().on_error(error)
        self._stop()

    def _stop(self) -> None:
        if self.clock is not None:
            self.clock.cancel()


def _ignore(element: object) -> None:
    """Nobody waits for it."""


def _publisher(value: Any) -> "Flow[Any] | None":
    """*value* as a flow if it is many elements; None if it is one."""
    if value is None or type(cast("object", value)) in ONE or type(value) is Payload:
        return None
    many = isinstance(value, AsyncIterable | Iterator) or callable(
        getattr(cast("object", value), "subscribe", None)
    )
    return to_flow(cast("AsyncIterable[Any]", value)) if many else None


def _alone(request: Request) -> "Flow[Any]":
    return to_flow([] if request.payload is None else [request.payload])
