"""Both ends of a stream as publishers and subscribers: demand out and in is the application's own.

`Inflow` is what a flow's subscriber gets: it sends the request with the first demand. `Outflow`
subscribes to what is sent, and asks for what the connection passes on of the peer's demand.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .._core.flow_subscription import FlowSubscription
from .._core.subscription.bulk_subscriber import BulkSubscriber
from .driver import Driver
from .payloads import PayloadError
from .protocol.errors import ConnectionLost, StreamFailed
from .protocol.events import Elements
from .protocol.frames import ErrorCode, Payload

if TYPE_CHECKING:
    from ..spec import Publisher, Subscription
    from ..stage import Downstream

__all__ = ("ChannelSender", "InboundStream", "OutboundStream", "answer")

T = TypeVar("T")

Encode = Callable[[Any], Payload]
Plainly = Callable[[Any], bytes]
Decode = Callable[[bytes], T]


def answer(error: BaseException, tell: bool) -> tuple[int, bytes]:
    """The ERROR frame for *error*; what it says is kept back unless it was meant for the peer."""
    if isinstance(error, StreamFailed) and not isinstance(error, ConnectionLost):
        return error.code, error.data
    tell = tell or isinstance(error, PayloadError)  # it may be the peer who chose the wrong codec
    return ErrorCode.APPLICATION_ERROR, f"{error}".encode() if tell else b""


class InboundStream(FlowSubscription):
    """What comes in on one stream, as the subscription of the flow that it feeds."""

    def __init__(
        self,
        driver: Driver,
        downstream: "Downstream[Any]",
        decode: "Decode[Any]",
        begin: Callable[["InboundStream", int], None],
    ) -> None:
        self.driver: Driver = driver
        self.stream_id: int = 0
        """0 before its request has been made."""
        self.over: bool = False
        self.begun: bool = False
        self.left: Callable[[], None] | None = None
        """Called on a cancellation before the stream has its id."""
        self.wanted: int = 0
        """Demand from before the stream has its id."""
        self._downstream = downstream
        self._decode = decode
        self._begin = begin

    def bind(self, stream_id: int) -> None:
        """The stream is open: elements will come."""
        self.stream_id = stream_id
        self.driver.streams.add_receiver(stream_id, self)
        self.driver.schedule_turn()

    # -- demand ------------------------------------------------------------------------------------
    def request(self, n: int, /) -> None:
        if self.over:
            return
        if self.stream_id:
            self.driver.connection.request(self.stream_id, n)
            self.driver.schedule_turn()
            return
        self.wanted += n
        if self.begun:
            return
        self.begun = True
        try:
            self.driver.require_open()
            self._begin(self, n)
        except Exception as error:
            self.fail(error)

    def cancel(self) -> None:
        if self.over:
            return
        self.over = True
        if self.stream_id:
            self.driver.streams.remove_receiver(self.stream_id)
            self.driver.connection.cancel(self.stream_id)
            self.driver.schedule_turn()
        elif self.left is not None:
            self.left()

    # -- the stream --------------------------------------------------------------------------------
    def elements(self, event: Elements) -> None:
        if self.over:
            return
        decoded: list[Any] = []
        try:
            if self._decode is bytes:
                decoded = event.data
            else:
                decoded.extend(map(self._decode, event.data))
        except Exception as error:
            self._downstream.push(decoded)
            self.cancel()
            self._downstream.fail(error)
            return
        self._downstream.push(decoded)
        if event.complete:
            self.completed()

    def completed(self) -> None:
        if not self.over:
            self.over = True
            self._downstream.complete()

    def failed(self, error: StreamFailed) -> None:
        self.fail(error)

    def fail(self, error: BaseException) -> None:
        if not self.over:
            self.over = True
            self.driver.streams.remove_receiver(self.stream_id)
            self._downstream.fail(error)


class OutboundStream(BulkSubscriber):
    """Sends a publisher's elements on a stream, as its subscriber.

    They are gathered until the driver's turn, and sent together.
    """

    def __init__(
        self,
        driver: Driver,
        stream_id: int,
        encode: Encode,
        *,
        failed: Callable[[BaseException], tuple[int, bytes]],
        plainly: "Plainly | None" = None,
        single: bool = False,
    ) -> None:
        """*plainly* makes the data of elements that are no `Payload`, where that is all."""
        self.driver: Driver = driver
        self.stream_id: int = stream_id
        self.over: bool = False
        self.is_notified: bool = False
        self._elements: list[Any] = []
        self.append: Callable[[Any], None] = self._elements.append
        self._encode = encode
        self._plainly = plainly
        self._failed = failed
        self._single = single
        self._pending = 1 if single else 0
        self._subscription: Subscription | None = None

    def attach(self, publisher: "Publisher[Any]") -> None:
        if self.over:
            return
        publisher.subscribe(self)

    # -- the connection ----------------------------------------------------------------------------
    def demanded(self, n: int) -> None:
        if self._subscription is None:
            self._pending += n
        elif not self.over:
            self._subscription.request(n)

    def cancelled(self) -> None:
        if not self.over:
            self._leave()

    def send(self) -> None:
        """Send what has been gathered."""
        elements, self.is_notified = self._elements, False
        if self.over:
            elements.clear()
        elif elements:
            encoded: list[bytes] = []
            error = None
            try:
                if self._plainly is None or Payload in map(type, elements):
                    self._send_each(elements)
                else:
                    encoded.extend(map(self._plainly, elements))
            except Exception as raised:
                error = raised
            elements.clear()
            if encoded:
                self.driver.connection.send_all(self.stream_id, encoded)
            if error is not None:
                self._leave()
                self._end(error)
            elif self._single:
                self._leave()

    def _send_each(self, elements: list[Any]) -> None:
        for element in elements:
            payload = self._encode(element)
            self.driver.connection.send(self.stream_id, payload, complete=self._single)

    # -- the publisher -----------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription", /) -> None:
        self._subscription = subscription
        if self.over:
            subscription.cancel()
        elif self._pending:
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
        if not self.over:
            self.over = True
            self._end(error)

    def on_complete(self) -> None:
        self.send()
        if not self.over:
            self.over = True
            self.driver.streams.remove_sender(self.stream_id)
            self.driver.connection.complete(self.stream_id)
            self.driver.schedule_turn()

    def _leave(self) -> None:
        self.over = True
        self._elements.clear()
        self.driver.streams.remove_sender(self.stream_id)
        if self._subscription is not None:
            self._subscription.cancel()

    def _end(self, error: BaseException) -> None:
        code, data = self._failed(error)
        self.driver.streams.remove_sender(self.stream_id)
        self.driver.connection.fail_stream(self.stream_id, code, data)
        self.driver.schedule_turn()


class ChannelSender(OutboundStream):
    """The requester's half of a channel: its first element opens the stream."""

    stream_id: int
    over: bool

    def __init__(
        self,
        inflow: InboundStream,
        encode: Encode,
        open: Callable[[Payload, int], int],
        failed: Callable[[BaseException], tuple[int, bytes]],
    ) -> None:
        super().__init__(inflow.driver, 0, encode, failed=failed)
        self._inflow = inflow
        self._open = open
        self._pending = 1
        inflow.left = self.cancelled

    @property
    def container(self) -> list[Any]:
        return self._elements

    def flush(self) -> None:
        if self._elements and not self.stream_id and not self.over:
            self._begin(self._elements.pop(0))
        super().flush()

    def _begin(self, element: Any) -> None:
        inflow = self._inflow
        try:
            payload = self._encode(element)
            inflow.driver.require_open()
            self.stream_id = self._open(payload, inflow.wanted)
        except Exception as error:
            self._leave()
            inflow.fail(error)
            return
        self._pending = 0
        inflow.driver.streams.set_sender(self.stream_id, self)
        inflow.bind(self.stream_id)

    def on_error(self, error: BaseException, /) -> None:
        """What goes out has failed: so has what comes in, for the same reason."""
        if not self.over:
            self._inflow.fail(error)
            if self.stream_id:
                super().on_error(error)
            self.over = True

    def on_complete(self) -> None:
        if not self.stream_id and not self.over:
            self.over = True
            self._inflow.completed()  # nothing was ever said
            return
        super().on_complete()
