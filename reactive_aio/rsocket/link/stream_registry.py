"""The local ends of streams: which object receives, and which one sends, on each."""

from collections.abc import Callable
from typing import Any, Final, Protocol

from ..._core.loop import Future
from ...errors import EmptyFlow
from ..protocol.errors import StreamFailed, error_of
from ..protocol.events import (
    Cancelled,
    Completed,
    DemandReceived,
    Elements,
    Failed,
    Responses,
)

_NO_RESPONSE: Final = (
    "the response completed without an element, as it does when a handler returns None: return a "
    "value, or request it by fire_and_forget or request_stream"
)


class Receiver(Protocol):
    """What receives on a stream. It is no longer registered when its last method is called."""

    def elements(self, event: Elements, /) -> object: ...
    def completed(self) -> object: ...
    def failed(self, error: StreamFailed, /) -> object: ...


class Sender(Protocol):
    """What sends on a stream."""

    @property
    def held(self) -> int:
        """The number of elements collected, and not encoded yet."""
        ...

    @property
    def counters(self) -> object:
        """Where its elements are counted."""
        ...

    def demanded(self, n: int, /) -> object: ...
    def cancelled(self) -> object: ...


class BatchSender(Protocol):
    """What sends together what it has collected in a turn."""

    def send(self) -> object: ...


class StreamRegistry:
    """Passes the events of each stream to its receiver and its sender, until its end.

    A request for one element has neither: its response completes a future.
    """

    __slots__ = ("answered", "origin", "receivers", "responses", "senders")

    def __init__(self, origin: object) -> None:
        self.origin: object = origin
        """Marks the errors that the peer has sent, and the loss of the connection."""
        self.receivers: dict[int, Receiver] = {}
        self.senders: dict[int, Sender] = {}
        self.responses: dict[int, Future[Any]] = {}
        """What the calls of requests for one element await: data, or a `Payload` with metadata."""
        self.answered: int = 0
        """How many requests for one element the bytes that are being read have answered."""

    def _on_responses(self, event: Responses) -> None:
        pop = self.responses.pop
        self.answered += len(event.responses)
        for stream_id, data in event.responses:
            response = pop(stream_id, None)
            if response is not None and not response.done():
                response.set_result(data)

    def _on_elements(self, event: Elements) -> None:
        receiver = self.receivers.get(event.stream_id)
        if receiver is not None:
            if event.complete:
                del self.receivers[event.stream_id]
            receiver.elements(event)
        elif (response := self._pop_response(event.stream_id)) is not None:
            (payload,) = event.payloads
            response.set_result(payload.data if payload.metadata is None else payload)

    def _on_completed(self, event: Completed) -> None:
        receiver = self.receivers.pop(event.stream_id, None)
        if receiver is not None:
            receiver.completed()
        elif (response := self._pop_response(event.stream_id)) is not None:
            response.set_exception(EmptyFlow(_NO_RESPONSE))

    def _on_failed(self, event: Failed) -> None:
        receiver = self.receivers.pop(event.stream_id, None)
        if receiver is not None:
            receiver.failed(error_of(event.code, event.data, self.origin))
        elif (response := self._pop_response(event.stream_id)) is not None:
            response.set_exception(error_of(event.code, event.data, self.origin))

    def _pop_response(self, stream_id: int) -> Future[Any] | None:
        """Remove the future of a response; None if it is done, or not registered."""
        response = self.responses.pop(stream_id, None)
        return None if response is None or response.done() else response

    def _on_cancelled(self, event: Cancelled) -> None:
        sender = self.senders.pop(event.stream_id, None)
        if sender is not None:
            sender.cancelled()

    def _on_demand(self, event: DemandReceived) -> None:
        sender = self.senders.get(event.stream_id)
        if sender is not None:
            sender.demanded(event.n)


ON_STREAM: Final[dict[type[Any], Callable[[StreamRegistry, Any], object]]] = {
    Responses: StreamRegistry._on_responses,
    Elements: StreamRegistry._on_elements,
    Completed: StreamRegistry._on_completed,
    Failed: StreamRegistry._on_failed,
    Cancelled: StreamRegistry._on_cancelled,
    DemandReceived: StreamRegistry._on_demand,
}
"""The handler of each event of a stream."""
