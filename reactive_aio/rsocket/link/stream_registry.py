"""The local ends of streams: which object receives, and which one sends, on each."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ..._core.loop import Future, resume_now
from ...errors import EmptyFlow
from ..protocol.errors import error_of
from ..protocol.events import (
    Cancelled,
    Completed,
    DemandReceived,
    Elements,
    Failed,
    Responses,
)

if TYPE_CHECKING:
    from ..requesting.stream_adapters import InboundStream, OutboundStream
    from ..serving.direct_responses import CoroutineResponse
    from ..serving.request_execution import RequestExecution


_NO_RESPONSE: Final = (
    "the response completed without an element, as it does when a handler returns None: return a "
    "value, or request it by fire_and_forget or request_stream"
)


class StreamRegistry:
    """Passes the events of each stream to its receiver and its sender, until its end.

    A request for one element has neither: its response completes a future.
    """

    def __init__(self) -> None:
        self.origin: object = object()
        """Marks the errors that the peer has sent."""
        self.receivers: dict[int, InboundStream] = {}
        self.senders: dict[int, CoroutineResponse | RequestExecution | OutboundStream] = {}
        self.responses: dict[int, Future[bytes]] = {}
        self.response_metadata: dict[int, bytes | None] = {}
        """The metadata of responses, of those requests that have an entry here."""

    def _on_responses(self, event: Responses) -> None:
        resume_now(self.responses, event.responses)

    def _on_elements(self, event: Elements) -> None:
        receiver = self.receivers.get(event.stream_id)
        if receiver is not None:
            if event.complete:
                del self.receivers[event.stream_id]
            receiver.elements(event)
        elif (response := self._pop_response(event.stream_id)) is not None:
            if event.metadata is not None and event.stream_id in self.response_metadata:
                self.response_metadata[event.stream_id] = event.metadata.get(0)
            response.set_result(event.data[0])

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

    def _pop_response(self, stream_id: int) -> Future[bytes] | None:
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
