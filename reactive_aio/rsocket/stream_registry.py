"""The parties of streams: who gets what comes in on each, and who sends."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import EmptyFlow
from .protocol.errors import error_of
from .protocol.events import Cancelled, Completed, DemandReceived, Elements, Failed, Responses

if TYPE_CHECKING:
    from .._core.loop import Future
    from .interfaces import StreamReceiver, StreamSender

__all__ = ("StreamRegistry",)


class StreamRegistry:
    """Tells them what concerns their stream; whoever has been told of the end is forgotten."""

    def __init__(self) -> None:
        self.receivers: dict[int, StreamReceiver] = {}
        self.responses: dict[int, Future[bytes]] = {}
        """Requests for one element, which are answered without more ado."""
        self.senders: dict[int, StreamSender] = {}

    def handlers(self) -> dict[type[Any], Callable[[Any], None]]:
        """What to do with the events of streams."""
        return {
            Responses: self._answers,
            Elements: self._elements,
            Completed: self._completed,
            Failed: self._failed,
            Cancelled: self._cancelled,
            DemandReceived: self._demanded,
        }

    def _answers(self, event: Responses) -> None:
        calls = self.responses
        for stream_id, data in event.responses:
            call = calls.pop(stream_id, None)
            if call is not None and not call.done():
                call.set_result(data)

    def _elements(self, event: Elements) -> None:
        receiver = self.receivers.get(event.stream_id)
        if receiver is not None:
            if event.complete:
                del self.receivers[event.stream_id]
            receiver.elements(event)
        elif (call := self._call(event.stream_id)) is not None:
            call.set_result(event.data[0])

    def _completed(self, event: Completed) -> None:
        receiver = self.receivers.pop(event.stream_id, None)
        if receiver is not None:
            receiver.completed()
        elif (call := self._call(event.stream_id)) is not None:
            call.set_exception(EmptyFlow("the response completed without an element"))

    def _failed(self, event: Failed) -> None:
        receiver = self.receivers.pop(event.stream_id, None)
        if receiver is not None:
            receiver.failed(error_of(event.code, event.data))
        elif (call := self._call(event.stream_id)) is not None:
            call.set_exception(error_of(event.code, event.data))

    def _call(self, stream_id: int) -> "Future[bytes] | None":
        """The request for one element that is now over, if it still waits."""
        call = self.responses.pop(stream_id, None)
        return None if call is None or call.done() else call

    def _cancelled(self, event: Cancelled) -> None:
        sender = self.senders.pop(event.stream_id, None)
        if sender is not None:
            sender.cancelled()

    def _demanded(self, event: DemandReceived) -> None:
        sender = self.senders.get(event.stream_id)
        if sender is not None:
            sender.demanded(event.n)
