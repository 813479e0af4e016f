"""The execution of a request: its handler is called, and the result is sent to the peer.

There is one way for all interactions. A request for one element is a stream that sends one, and a
request without a response one that sends nothing. What is returned at once, with no need for an
`Execution`, is sent by `Batch` together with other responses.
"""

from collections.abc import AsyncIterable, Awaitable, Iterator, Sequence
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from ..._core.flow_subscription import FlowSubscription
from ..._core.loop import CancelledError, cancel_task
from ..._shared.coerce import to_flow
from ...errors import AlreadySubscribed
from ...stage import Downstream, from_push
from ..link.callbacks import ends_task
from ..link.driver import Driver
from ..link.intake import IN_HANDLER, UNREAD, EndingHandlers
from ..link.tasks import close_coroutines
from ..option_checks import require_bytes
from ..protocol.errors import ProtocolError, RequestRejected, is_refusal
from ..protocol.frames import ErrorCode, Payload, PayloadTuple
from ..protocol.request_metadata import DEADLINE_PASSED
from ..protocol.stream_states import InteractionModel
from ..requesting.interceptors import run
from ..requesting.requester import Requester
from ..requesting.stream_adapters import (
    InboundStream,
    IncomingStream,
    OutboundStream,
    ReadAheadStream,
)
from .plans import Plan, Plans
from .request import Interceptor, Request
from .routing import SINGLE_TYPES, answers_of, publisher_of

if TYPE_CHECKING:
    from ..._core.loop import Task, TimerHandle
    from ...flow import Flow
    from .route_stats import RouteCounters

AT_THE_END: Final = "the connection has ended"
_RESPONSE: Final = InteractionModel.RESPONSE
SILENT: Final = frozenset({InteractionModel.FNF, InteractionModel.PUSH})
"""The models of requests without a response."""


class Service(Protocol):
    """What an execution needs of the responder."""

    @property
    def plans(self) -> Plans: ...
    @property
    def interceptors(self) -> Sequence[Interceptor]: ...
    @property
    def ending_handlers(self) -> EndingHandlers: ...
    @property
    def is_guarded(self) -> bool:
        """Whether something is called, and perhaps awaited, before a handler."""
        ...

    async def check(self, request: Request, /) -> None:
        """Raise `RequestRejected` unless *request* is authorized."""
        ...

    def error_frame(self, driver: Driver, error: BaseException, /) -> tuple[int, bytes]:
        """The error frame for *error*, which is reported unless it is meant for the peer."""
        ...

    def refuse(self, driver: Driver, stream_id: int, error: BaseException, /) -> None:
        """Send *error* in answer to a request for which there is no plan."""
        ...

    def report(self, driver: Driver, error: BaseException, /) -> None: ...

    def drop(
        self, driver: Driver, model: InteractionModel, payload: Payload, reason: str, /
    ) -> None:
        """Account for a request without a response that no handler processes."""
        ...


class Execution:
    """Serves one request, and is the sender of its stream until there is a publisher."""

    held: int = 0
    """It holds no elements: there is no publisher yet."""
    task: "Task[Any] | None" = None
    """The task in which its handler runs, once it has begun."""
    coroutine: Awaitable[Any] | None = None
    _request: Request | None = None
    _timer: "TimerHandle | None" = None
    _pending: int = 0
    _has_sent: bool = False

    def __init__(
        self,
        service: Service,
        driver: Driver,
        plan: Plan,
        model: InteractionModel,
        stream_id: int,
        payload: PayloadTuple,
    ) -> None:
        self.service = service
        self.driver = driver
        self.plan = plan
        self.counters: RouteCounters = plan.counters
        self.counters.requests += 1
        self.model = model
        self.stream_id = stream_id
        self.payload = payload

    @property
    def is_silent(self) -> bool:
        """Whether nothing is sent: the request has no response."""
        return self.model in SILENT

    @property
    def request(self) -> Request:
        if self._request is None:
            driver, envelope, deadline = self.driver, self.plan.envelope, None
            if envelope.timeout is not None:
                deadline = driver.loop_handle.time() + envelope.timeout
            peer = partial(_peer, self.service, driver)
            self._request = Request(
                self.model, self.payload[0], driver.user, deadline, envelope, driver, peer
            )
        return self._request

    def begin(self) -> None:
        """Call the handler, and send what it returns, or raises."""
        if self.is_refused():
            return
        self._register()
        try:
            remaining = self.request.remaining
            if remaining is not None:
                self._timer = self.driver.loop_handle.call_later(remaining, self._on_deadline)
            self.go_on(self.call_when_authorized() if self.service.is_guarded else self.call())
        except BaseException as error:
            self.refuse(error)

    def is_refused(self, *awaited: object) -> bool:
        """Refuse the request if no more handlers that await something may begin; whether it is.

        Coroutines that would have been *awaited* are closed then. Requests without a response are
        limited by `FireAndForget`.
        """
        refusal = b"" if self.is_silent else self.service.ending_handlers.refusal(self.driver)
        if refusal:
            close_coroutines(awaited)
            self.refuse(RequestRejected(ErrorCode.REJECTED, refusal))
        return bool(refusal)

    def go_on(self, result: Any) -> None:
        """Send *result*, which a handler has returned and which may have to be awaited."""
        self._register()
        if isawaitable(result) or (self.is_silent and publisher_of(result) is not None):
            name = self.plan.task_name
            self.task = self.driver.tasks.create(self.run(result), name, result)
            if self.task is None and self.is_silent:
                self.drop(AT_THE_END)
        else:
            self.finish(result)

    def _register(self) -> None:
        if not self.is_silent:
            self.driver.streams.senders[self.stream_id] = self

    # -- the handler -------------------------------------------------------------------------------
    def call(self) -> Any:
        """Call the handler; what it returns."""
        request, handler = self.request, self.plan.handler
        if self.model is InteractionModel.CHANNEL:
            request._open = partial(_incoming, self.driver, self.stream_id)
            if handler is not None and not handler.takes_incoming:
                self.driver.connection.cancel(self.stream_id)
        else:
            request._open = _alone
        return self.plan.handle(request, self.driver.connection.limits.max_decoded)

    async def call_when_authorized(self) -> Any:
        """Call the interceptors, and the handler once the request is authorized."""
        return await run(self.service.interceptors, self.request, self._call_inmost)

    async def _call_inmost(self, request: Request) -> Any:
        """Authorize *request*, and call the handler.

        Interceptors receive a result of many elements, such as a generator, as a flow.
        """
        self._request = request
        await self.service.check(request)
        result = self.call()
        value = await result if isawaitable(result) else result
        publisher = publisher_of(value) if self.service.interceptors else None
        return value if publisher is None else publisher

    async def run(self, result: Any) -> None:
        """Await *result*, in a task of its own, and send what that returns or raises."""
        if self.is_silent:
            IN_HANDLER.set(True)
        try:
            value = await result if isawaitable(result) else result
            if self.is_silent and (publisher := publisher_of(value)) is not None:
                await publisher.run()
        except BaseException as error:
            is_end = ends_task(self.driver.loop_handle, error)
            if not (is_end and (self.is_silent or isinstance(error, GeneratorExit))):
                self.finish(None, error)
            self._stop_timer()
            if is_end:
                raise
        else:
            self.finish(value)
        finally:
            self.task = self.coroutine = None  # which refer to this: it is freed at once

    # -- as the sender of the stream ---------------------------------------------------------------
    def demanded(self, n: int) -> None:
        self._pending += n

    def cancelled(self) -> None:
        """The requester has cancelled, or the connection has ended."""
        self._stop_timer()
        if self.task is not None:
            cancel_task(self.task)
            self.driver.count_reset()
            self.driver.intake.await_end(self.task)
        elif self.coroutine is not None:
            cast("Any", self.coroutine).close()  # it waits for its turn in a shared task

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_deadline(self) -> None:
        """The requester has stopped waiting."""
        sender = self.driver.streams.senders.get(self.stream_id)
        if self.is_silent:
            self.drop("its deadline has passed")
            if self.task is not None:
                cancel_task(self.task)
        elif sender is not None:  # else it has ended, with this timer
            self.counters.failed += 1
            self._fail(ErrorCode.CANCELED, DEADLINE_PASSED)
            sender.cancelled()

    def drop(self, reason: str) -> None:
        """No handler processes this request, which has no response."""
        self.counters.lost += 1
        self.service.drop(self.driver, self.model, Payload(*self.payload), reason)

    def refuse(self, error: BaseException) -> None:
        """Send *error* as the response."""
        self._stop_timer()
        if not self.is_silent:
            self._fail(*self._error_frame(error))
            return
        self.counters.count_error(error)
        if is_refusal(error) or isinstance(error, ProtocolError):
            self.drop(str(error))
        else:  # any other exception is one of the handler
            self.service.report(self.driver, error)

    def _error_frame(self, error: BaseException) -> tuple[int, bytes]:
        if not isinstance(error, CancelledError):
            self.counters.count_error(error)
        return self.service.error_frame(self.driver, error)

    def _fail(self, code: int, data: bytes) -> None:
        self.driver.streams.senders.pop(self.stream_id, None)
        self.driver.connection.fail_stream(self.stream_id, code, data)
        self.driver.schedule_turn()

    # -- what it returned --------------------------------------------------------------------------
    def finish(self, value: Any, error: BaseException | None = None) -> None:
        """Send what the handler, or its coroutine, has returned or raised."""
        if self.driver.streams.senders.get(self.stream_id) is not self and not self.is_silent:
            return  # cancelled, perhaps before it began: a closed coroutine raises at once
        if error is not None:
            self.refuse(error)
            return
        try:
            if self.model is _RESPONSE and type(value) in SINGLE_TYPES:
                self._respond(self._encode(value))
            else:
                self._send(value)
        except BaseException as unwritable:
            self.refuse(unwritable)

    def _send(self, value: Any) -> None:
        if self.is_silent:
            self._stop_timer()
            return
        is_single = self.model is _RESPONSE
        publisher = publisher_of(value) if is_single else answers_of(value)
        if publisher is None:
            self._respond(None if value is None else self._encode(value))
        else:
            self._subscribe(value, publisher)

    def _respond(self, payload: PayloadTuple | None) -> None:
        """Send the one element of the response, or that there is none."""
        driver, stream_id = self.driver, self.stream_id
        if payload is not None and not driver.intake.may_answer(len(payload[0])):
            raise RequestRejected(ErrorCode.REJECTED, UNREAD)
        if self._timer is not None:
            self._timer.cancel()
        driver.streams.senders.pop(stream_id, None)
        if payload is None:
            driver.connection.complete(stream_id)
        else:
            self.counters.elements += 1
            if payload[1] is None:
                driver.connection.respond_all([(stream_id, payload[0])])
            else:
                driver.connection.send(stream_id, payload, complete=True)
            if driver.connection.queued_bytes > driver.connection.limits.watermark:
                driver.count_held()
        driver.schedule_turn()

    def _subscribe(self, value: Any, publisher: "Flow[Any]") -> None:
        """Send the elements of *publisher*, made of *value*."""
        single, has_metadata = self.model is _RESPONSE, self.plan.first_metadata is not None
        stream = _sender_kind(value, single)(
            self.driver,
            self.stream_id,
            self._encode,
            encode_data=None if has_metadata or single else self.plan.encode,
            error_frame=self._error_frame,
            single=single,
            timer=self._timer,
            counters=self.counters,
        )
        self.driver.streams.senders[self.stream_id] = stream
        if self._pending:
            stream.demanded(self._pending)
        stream.attach(publisher)

    def _encode(self, value: Any) -> PayloadTuple:
        if type(value) is Payload:
            require_bytes("the data of a Payload", value.data)
            if value.metadata is not None:
                require_bytes("the metadata of a Payload", value.metadata)
            return value
        metadata = self.plan.first_metadata
        if metadata is not None:
            metadata = None if self._has_sent else metadata
            self._has_sent = True
        return self.plan.encode(value), metadata


def _sender_kind(value: Any, single: bool) -> type[OutboundStream]:
    """What sends *value*, the result of a handler."""
    is_publisher = callable(getattr(value, "subscribe", None))
    if single or is_publisher or not isinstance(value, AsyncIterable | Iterator):
        return OutboundStream
    return ReadAheadStream


def _peer(service: Service, driver: Driver) -> Requester[Any]:
    return Requester(driver, service.plans.codec(driver.connection.setup))


def _incoming(driver: Driver, stream_id: int, request: Request) -> "Flow[Any]":
    """The elements of a channel, for one subscriber."""
    has_subscriber = False

    def begin(stream: InboundStream) -> None:
        nonlocal has_subscriber
        if has_subscriber:
            raise AlreadySubscribed("rule 1.11: incoming serves one subscription, and has")
        has_subscriber = True
        stream.bind(stream_id)
        driver.connection.request(stream_id, stream.early_demand)

    def open(downstream: Downstream[Any]) -> FlowSubscription:
        return IncomingStream(driver, downstream, request._decode, begin)

    return from_push(open, name="incoming", holds=None)


def _alone(request: Request) -> "Flow[Any]":
    return to_flow([] if request.payload is None else [request.payload])
