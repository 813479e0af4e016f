"""The local ends of streams: what receives on them, and what sends.

An `InboundStream` is the subscription of a flow: its first demand sends the request. An
`OutboundStream` subscribes to a publisher, and requests what the peer requests. So the demand on
the wire is the application's own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ..._core.failures import as_failure, stop_program
from ..._core.flow_subscription import FlowSubscription
from ..._core.loop import TimerHandle
from ..._core.subscription.bulk_subscriber import BulkSubscriber
from ...errors import TimedOut
from ...spec import Publisher, Subscription
from ...stage import Downstream
from ..link.driver import Driver
from ..link.intake import IN_HANDLER
from ..payloads import PayloadError, error_text
from ..protocol.errors import RequestCanceled, StreamFailed, is_for_peer
from ..protocol.events import Elements
from ..protocol.frames import ErrorCode, Payload, PayloadTuple
from ..protocol.request_metadata import DEADLINE_PASSED

Encode = Callable[[Any], PayloadTuple]
EncodeData = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]


def error_frame(driver: Driver, error: BaseException, expose: bool) -> tuple[int, bytes]:
    """Code and data of the ERROR frame for *error*; its text only if that is meant for the peer."""
    if isinstance(error, StreamFailed) and is_for_peer(error, driver.streams.origin):
        return error.code, error.data
    expose = expose or isinstance(error, PayloadError)  # perhaps the peer chose the wrong codec
    text = (error_text(error) or type(error).__name__) if expose else ""
    return ErrorCode.APPLICATION_ERROR, text.encode()


def is_deadline_error(error: BaseException) -> bool:
    """Whether the responder failed the request because its deadline has passed."""
    return isinstance(error, RequestCanceled) and error.data == DEADLINE_PASSED


@dataclass(eq=False, repr=False)
class InboundStream(FlowSubscription):
    """The elements received on one stream, as the subscription of a flow."""

    driver: Driver
    _downstream: Downstream[Any]
    _decode: Decode
    _open: Callable[["InboundStream"], None]
    """Opens the stream, and calls `bind`, now or later. May raise `MustWait`, for a new request."""
    limit: float | None = None
    """The stream fails unless it ends within so many seconds from its first request."""
    wrap: Callable[[Any, bytes | None], Any] | None = None
    """Makes an element of decoded data and metadata; without it, metadata is discarded."""
    stream_id: int = 0
    """0 before its request has been made."""
    is_done: bool = False
    on_early_cancel: Callable[[], None] | None = None
    """Called when the stream is cancelled before it has its id."""
    early_demand: int = 0
    """Demand from before the stream has its id."""
    _is_nested: bool = False
    """Whether the handler of a request without a response awaits the stream."""
    _timer: TimerHandle | None = None

    def bind(self, stream_id: int) -> None:
        """The stream is open: register it for its elements."""
        self.stream_id = stream_id
        self.driver.streams.receivers[stream_id] = self
        self.driver.schedule_turn()

    # -- demand ------------------------------------------------------------------------------------
    def request(self, n: int, /) -> None:
        if self.is_done:
            return
        if self.stream_id:
            self.driver.connection.request(self.stream_id, n)
            self.driver.schedule_turn()
            return
        is_first = not self.early_demand
        self.early_demand += n
        if is_first:
            self._start()

    def _start(self) -> None:
        if self.limit is not None:
            self._timer = self.driver.loop_handle.call_later(self.limit, self._time_out)
        self._is_nested = IN_HANDLER.get()
        if self._is_nested:
            self.driver.intake.handler_waits(1)
        try:
            self.driver.ending.require_open()
            self._begin()
        except Exception as error:
            self.fail(error)

    def _begin(self) -> None:
        """Open the stream, now or as soon as its request does not have to wait."""
        self.driver.held_requests.send(self, lambda: self._open(self), self.fail)

    def cancel(self) -> None:
        if self.is_done:
            return
        self._end()
        self.driver.held_requests.discard(self)
        if self.stream_id:
            self.driver.streams.receivers.pop(self.stream_id, None)
            self.driver.connection.cancel(self.stream_id)
            self.driver.schedule_turn()
        elif self.on_early_cancel is not None:
            self.on_early_cancel()

    def _time_out(self) -> None:
        self.cancel()
        self._downstream.fail(self._timeout_error())

    def _timeout_error(self) -> TimedOut:
        return TimedOut(f"the stream did not end within {self.limit:g} s")

    # -- the stream --------------------------------------------------------------------------------
    def elements(self, event: Elements) -> None:
        if self.is_done:
            return
        decoded: list[Any] = []
        try:
            if self.wrap is not None:
                for data, metadata in event.payloads:
                    decoded.append(self.wrap(self._decode(data), metadata))
            elif self._decode is bytes:
                decoded = event.data
            else:
                decoded.extend(map(self._decode, event.data))
        except BaseException as error:
            self._downstream.push(decoded)
            self.cancel()
            self._downstream.fail(as_failure(error))
            stop_program(self.driver.loop_handle, error)
            return
        self._downstream.push(decoded)
        if event.complete:
            self.completed()

    def completed(self) -> None:
        if not self.is_done:
            self._end()
            self._downstream.complete()

    def failed(self, error: StreamFailed) -> None:
        is_deadline = self.limit is not None and is_deadline_error(error)
        self.fail(self._timeout_error() if is_deadline else error)

    def fail(self, error: BaseException) -> None:
        if not self.is_done:
            self._end()
            self.driver.streams.receivers.pop(self.stream_id, None)
            self._downstream.fail(error)

    def _end(self) -> None:
        self.is_done = True
        if self._is_nested:
            self.driver.intake.handler_waits(-1)
        if self._timer is not None:
            self._timer.cancel()


class IncomingStream(InboundStream):
    """The elements of a channel that the peer has opened: there is no request to be sent."""

    def _begin(self) -> None:
        self._open(self)


class ElementCounter:
    """Counts the elements that are sent."""

    __slots__ = ("elements",)

    def __init__(self) -> None:
        self.elements: int = 0


UNCOUNTED: Final = ElementCounter()
"""For streams that are not served: the sending half of a client's channel."""


class OutboundStream(BulkSubscriber):
    """Sends a publisher's elements on a stream, as its subscriber.

    The elements of one turn of the driver are sent together.
    """

    def __init__(
        self,
        driver: Driver,
        stream_id: int,
        encode: Encode,
        *,
        error_frame: Callable[[BaseException], tuple[int, bytes]],
        encode_data: EncodeData | None = None,
        single: bool = False,
        timer: TimerHandle | None = None,
        counters: ElementCounter = UNCOUNTED,
    ) -> None:
        """*encode_data* encodes elements that need no metadata; a `Payload` is sent as it is.

        *timer* is cancelled at the end.
        """
        self.driver: Driver = driver
        self.stream_id: int = stream_id
        self.is_done: bool = False
        self.is_notified: bool = False
        self.counters: ElementCounter = counters
        self._elements: list[Any] = []
        self.append: Callable[[Any], None] = self._elements.append
        self._encode = encode
        self._encode_data = encode_data
        self._error_frame = error_frame
        self._single = single
        self._timer = timer
        self._pending = 1 if single else 0
        self._has_sent = False
        self._subscription: Subscription | None = None

    @property
    def held(self) -> int:
        """The number of elements collected, and not encoded yet."""
        return len(self._elements)

    def attach(self, publisher: Publisher[Any]) -> None:
        if self.is_done:
            return
        publisher.subscribe(self)

    # -- the connection ----------------------------------------------------------------------------
    def demanded(self, n: int) -> None:
        if self._subscription is None:
            self._pending += n
        elif not self.is_done:
            self._subscription.request(n)

    def cancelled(self) -> None:
        if not self.is_done:
            subscription = self._subscription
            self._cancel()
            if not self._has_sent:
                self.driver.count_reset()
            self.driver.intake.await_cleanup(self.driver.loop_handle, subscription)

    def send(self) -> None:
        """Send the elements collected."""
        elements, self.is_notified = self._elements, False
        if self.is_done:
            elements.clear()
        elif elements:
            self._has_sent = True
            encoded: list[bytes] = []
            error = None
            try:
                if self._encode_data is None or Payload in map(type, elements):
                    self._send_each(elements)
                else:
                    encoded.extend(map(self._encode_data, elements))
            except BaseException as raised:
                error = raised
            elements.clear()
            if encoded:
                self.counters.elements += len(encoded)
                self.driver.connection.send_all(self.stream_id, encoded)
            if error is not None:
                self._cancel()
                self._fail(error)
                del error  # its traceback refers to this frame
            elif self._single:
                self._cancel()

    def _send_each(self, elements: list[Any]) -> None:
        for element in elements:
            payload = self._encode(element)
            self.counters.elements += 1
            self.driver.connection.send(self.stream_id, payload, complete=self._single)

    # -- the publisher -----------------------------------------------------------------------------
    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self.is_done:
            subscription.cancel()
            return
        self._subscription = subscription
        if self._pending:
            subscription.request(self._pending)

    def on_next(self, element: Any, /) -> None:
        self._elements.append(element)
        self.flush()

    @property
    def container(self) -> list[Any]:
        return self._elements

    def flush(self) -> None:
        if self._elements and not self.is_notified:
            self.is_notified = True
            self.driver.schedule_send(self)

    def on_error(self, error: BaseException, /) -> None:
        self.send()
        if not self.is_done:
            self.is_done = True
            self._fail(error)

    def on_complete(self) -> None:
        self.send()
        if not self.is_done:
            self.is_done = True
            self._unregister()
            self.driver.connection.complete(self.stream_id)
            self.driver.schedule_turn()

    def _cancel(self) -> None:
        subscription, self.is_done = self._subscription, True
        self._elements.clear()
        self._unregister()
        if subscription is not None:
            subscription.cancel()

    def _fail(self, error: BaseException) -> None:
        code, data = self._error_frame(error)
        self._unregister()
        self.driver.connection.fail_stream(self.stream_id, code, data)
        self.driver.schedule_turn()

    def _unregister(self) -> None:
        self.driver.streams.senders.pop(self.stream_id, None)
        self._subscription = None  # which refers to this: what has ended is freed at once
        if self._timer is not None:
            self._timer.cancel()


class ReadAheadStream(OutboundStream):
    """Sends the elements of an iterator, and holds one more than the peer has requested.

    Only the call after its last element shows that an iterator has ended, and the end of a stream
    needs no request (N.15).
    """

    is_done: bool
    is_notified: bool

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._credit = 0
        self._has_begun = False
        self._end: Callable[[], None] | None = None
        """Called once the element held has been sent."""

    def demanded(self, n: int) -> None:
        self._credit += n
        ahead = 0 if self._has_begun else 1
        self._has_begun = True
        super().demanded(n + ahead)
        self.flush()

    def send(self) -> None:
        held = self._elements[self._credit :]
        del self._elements[self._credit :]
        self._credit -= len(self._elements)
        super().send()
        if self.is_done:
            return
        self._elements += held
        if self._end is not None and not held:
            end, self._end = self._end, None
            end()

    def on_error(self, error: BaseException, /) -> None:
        self._end = partial(super().on_error, error)
        self.send()

    def on_complete(self) -> None:
        self._end = super().on_complete
        self.send()


class ChannelSender(OutboundStream):
    """The requester's direction of a channel: its first element opens the stream."""

    stream_id: int
    is_done: bool

    def __init__(
        self,
        inbound: InboundStream,
        encode: Encode,
        open: Callable[[PayloadTuple, int], int],
        error_frame: Callable[[BaseException], tuple[int, bytes]],
    ) -> None:
        super().__init__(inbound.driver, 0, encode, error_frame=error_frame)
        self._inbound = inbound
        self._open = open
        self._pending = 1
        self._first: PayloadTuple | None = None
        self._is_complete = False
        inbound.on_early_cancel = self.cancelled

    def flush(self) -> None:
        if self._elements and not self.stream_id and not self.is_done:
            self._begin(self._elements.pop(0))
        super().flush()

    def _begin(self, element: Any) -> None:
        """Open the channel with *element*, the only one requested so far, as soon as possible."""
        try:
            self._first = self._encode(element)
            self.driver.ending.require_open()
            self.driver.held_requests.send(self, self._send_request, self._cannot_begin)
        except BaseException as error:
            self._cannot_begin(as_failure(error))
            stop_program(self.driver.loop_handle, error)

    def _send_request(self) -> None:
        inbound, first = self._inbound, self._first
        if first is None or self.is_done:
            return
        self.stream_id = self._open(first, inbound.early_demand)
        self._pending, self._first = 0, None
        inbound.driver.streams.senders[self.stream_id] = self
        inbound.bind(self.stream_id)
        if self._is_complete:
            self.on_complete()

    def _cannot_begin(self, error: BaseException) -> None:
        self._cancel()
        self._inbound.fail(error)

    def _cancel(self) -> None:
        self._give_up()
        super()._cancel()

    def _give_up(self) -> None:
        """Do not open the channel any more, if it has not been opened."""
        if self._first is not None:
            self._first = None
            self.driver.held_requests.discard(self)

    def on_error(self, error: BaseException, /) -> None:
        """The elements sent have failed: so have those received, for the same reason."""
        if not self.is_done:
            self._give_up()
            self._inbound.fail(error)
            if self.stream_id:
                super().on_error(error)
            self.is_done = True

    def on_complete(self) -> None:
        if self._first is not None:
            self._is_complete = True
            return
        if not self.stream_id and not self.is_done:
            self.is_done = True
            self._inbound.completed()  # the channel was never opened
            return
        super().on_complete()
