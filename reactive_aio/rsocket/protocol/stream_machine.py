"""What happens to streams: the frames of the peer and the commands of this side, by the table.

`states.TABLE` decides; this acts: it changes the books (demand, fragments, leases), queues frames
and adds events. Nothing here looks at a clock or calls anybody.
"""

from struct import Struct
from typing import Final

from ..._core.demand import UNBOUNDED, require_demand
from ...errors import RuleViolation
from .books import TOP_UP_LEVEL, Books
from .codec import HEADER, encode
from .errors import ProtocolError
from .events import Cancelled, Completed, Elements, Failed, RequestReceived
from .frames import (
    EMPTY_PAYLOAD,
    Cancel,
    Error,
    ErrorCode,
    Payload,
    PayloadFrame,
    PayloadTuple,
    RequestN,
)
from .outbound_queue import COALESCE_LIMIT
from .stream_states import (
    RECEIVING_STATES,
    RESPONDER_STATES,
    SENDING_STATES,
    TABLE,
    Action,
    Input,
    InteractionModel,
    State,
)
from .streams import OwedResponse, Stream

__all__ = ("StreamMachine",)

# To look up a member of an enum takes five times as long as to look up a global.
_RESPONSE: Final = InteractionModel.RESPONSE
_CHANNEL: Final = InteractionModel.CHANNEL
_FNF: Final = InteractionModel.FNF
_ELEMENT_IN: Final = Input.NEXT
_LAST_ELEMENT: Final = Input.LAST
_SEND_COMPLETE: Final = Input.SEND_COMPLETE
_IGNORE: Final = Action.IGNORE
_FINISH: Final = Action.FINISH
_GATHER: Final = State.RESPONDER_REASSEMBLY
_FLUSH: Final = State.FLUSHING

_PREFIXED: Final = Struct(">xHIH").pack
_PLAIN: Final = Struct(">IH").pack
_NEXT: Final = 0x0A << 10 | 0x20
_LAST: Final = _NEXT | 0x40
_CUT_SHORT: Final = b"the requester cancelled the channel"


class StreamMachine(Books):
    """All streams of one connection, and what both sides do to them."""

    # -- this side's will --------------------------------------------------------------------------
    def request(self, stream_id: int, n: int) -> None:
        """Ask for *n* more elements; they are put on the wire when next something is sent."""
        require_demand(n)
        stream = self.streams.live.get(stream_id)
        if stream is None or stream.state not in RECEIVING_STATES or stream.model is _RESPONSE:
            return
        if stream.first is not None:
            first, stream.first = stream.first, None
            if stream.last:
                self.finish(stream, _LAST_ELEMENT, first)
                return
            self.run(stream_id).add(first)
            n -= 1
        stream.wanted = min(stream.wanted + n, UNBOUNDED)
        self.ask(stream)

    def send(self, stream_id: int, payload: PayloadTuple, *, complete: bool = False) -> bool:
        """Send an element; False if nobody wants it any more."""
        stream = self.streams.live.get(stream_id)
        if stream is None:
            return False
        if stream.granted < 1:
            return self._unasked(stream)
        stream.granted -= 1
        bits = _LAST if complete or stream.model is _RESPONSE else _NEXT
        data, metadata = payload
        size = len(data) + HEADER
        if metadata is not None or size > self.small:
            size = self.put(stream, bits, payload)
        elif self.out.prefixed:
            self.out.put(stream, _PREFIXED(size, stream_id, bits) + data)
        else:
            self.out.put(stream, _PLAIN(stream_id, bits) + data)
        if stream.model is _RESPONSE:  # no books to be settled: that was all
            stream.state = TABLE[stream.state, _SEND_COMPLETE].state
        elif bits == _LAST:
            self.flood.useful()
            self.move(stream, _SEND_COMPLETE)
        else:
            self._sent(stream, size)
        return True

    def answer(self, stream_id: int, data: bytes) -> bool:
        """Send the one element that is owed: what `send` does, but faster."""
        stream = self.streams.live.get(stream_id)
        out = self.out
        size = len(data) + HEADER
        slow = size > self.small or out.queued >= COALESCE_LIMIT or not out.prefixed
        if slow or type(stream) is not OwedResponse or not stream.granted:
            return self.send(stream_id, (data, None))
        stream.granted = 0
        stream.state = _FLUSH
        out.answers[stream_id] = _PREFIXED(size, stream_id, _LAST) + data
        out.queued += size + 3
        return True

    def _sent(self, stream: Stream, size: int) -> None:
        """Elements of up to *size* bytes have been queued: see what that means for demand."""
        if size > stream.mean:
            stream.mean = size
        if stream.granted <= self.low and stream.credit:
            self.wait(stream)

    def send_all(self, stream_id: int, elements: list[bytes]) -> bool:
        """Send elements that have no metadata: what `send` does for each, but faster."""
        stream = self.streams.live.get(stream_id)
        if stream is None:
            return False
        if stream.granted < len(elements):
            return self._unasked(stream)
        sizes = list(map(len, elements))
        most = max(sizes, default=0)
        if most + HEADER > self.small or stream.model is _RESPONSE:
            return all(self.send(stream_id, (each, None)) for each in elements)
        stream.granted -= len(elements)
        if self.out.prefixed:
            frames = [
                _PREFIXED(size + HEADER, stream_id, _NEXT) + data
                for size, data in zip(sizes, elements, strict=True)
            ]
        else:
            head = _PLAIN(stream_id, _NEXT)
            frames = [head + data for data in elements]
        self.out.put_all(stream, frames, sum(sizes) + self.overhead * len(sizes))
        self._sent(stream, most + HEADER)
        return True

    def _unasked(self, stream: Stream) -> bool:
        if stream.state not in SENDING_STATES:
            return False
        raise RuleViolation("1.1", f"an element on {stream!r} that was not requested")

    def complete(self, stream_id: int) -> bool:
        """What goes out on a stream is complete; False if nobody wants to know."""
        stream = self.streams.live.get(stream_id)
        if stream is None or TABLE[stream.state, _SEND_COMPLETE].action is _IGNORE:
            return False
        self.put(stream, _LAST & ~0x20, EMPTY_PAYLOAD)
        self.move(stream, _SEND_COMPLETE)
        return True

    def fail(self, stream_id: int, code: int, data: bytes) -> bool:
        """End a stream by an error, behind the elements before it."""
        stream = self.streams.live.get(stream_id)
        if stream is None or TABLE[stream.state, Input.SEND_ERROR].action is _IGNORE:
            return False
        receiving = stream.state in RECEIVING_STATES
        self.out.put(stream, self.out.wrap(encode(self.error(stream_id, code, data))))
        self.move(stream, Input.SEND_ERROR)
        if receiving:
            self.events.append(Failed(stream_id, code, data, local=True))
        return True

    def cancel(self, stream_id: int) -> bool:
        """Want no more. A requester ends the whole stream by that, its own elements included."""
        stream = self.streams.live.get(stream_id)
        if stream is None or TABLE[stream.state, Input.SEND_CANCEL].action is _IGNORE:
            return False
        sending = stream.mine and stream.state in SENDING_STATES
        self.flood.allow(stream.wire + 2)
        if stream.started and stream_id not in self.out.asks:
            self.out.signal(encode(Cancel(stream_id)))
        self.move(stream, Input.SEND_CANCEL)
        if sending:
            self.events.append(Cancelled(stream_id))
        return True

    # -- the peer's --------------------------------------------------------------------------------
    def on_payload(self, frame: PayloadFrame) -> None:
        stream = self.streams.live.get(frame.stream_id)
        if stream is None or TABLE[stream.state, _ELEMENT_IN].action is _IGNORE:
            self.useless()
            return
        payload, next_, complete = frame.payload, frame.next, frame.complete
        if (next_ or frame.follows) and not stream.wire and stream.partial is None:
            self._refuse(stream, b"more elements than were requested")
            return
        if frame.follows or stream.partial is not None:
            whole = self._gather(stream, frame)
            if whole is None:
                return
            payload, next_, complete = whole
            if stream.state is _GATHER:
                self.open(stream, payload, complete)
                return
        if not (next_ or complete):
            self.useless()
        elif stream.first is not None and not next_:
            stream.last = True  # when the first element has been asked for
        elif not next_:
            self.finish(stream, Input.COMPLETE, None)
        elif complete:
            self.finish(stream, _LAST_ELEMENT, payload)
        else:
            self.deliver(stream, payload)

    def gather(self, stream: Stream, payload: Payload, follows: bool) -> bool:
        """Add a fragment; False if that was too much, and the stream has been refused."""
        if stream.partial is None:
            stream.partial = self.partials.begin()
        try:
            self.partials.add(stream.partial, payload, follows)
        except ProtocolError as error:
            self._refuse(stream, str(error).encode())
            if self.refused_again():
                raise
            return False
        return True

    def _gather(self, stream: Stream, frame: PayloadFrame) -> tuple[Payload, bool, bool] | None:
        if not self.gather(stream, frame.payload, frame.follows):
            return None
        partial = stream.partial
        if partial is None:
            return None
        partial.next |= frame.next
        partial.complete |= frame.complete
        if frame.follows:
            return None
        self.let_go(stream)
        return partial.whole(), partial.next, partial.complete

    def deliver(self, stream: Stream, payload: Payload) -> None:
        """An element has come."""
        state, action = TABLE[stream.state, _ELEMENT_IN]
        if action is _FINISH:
            self.finish(stream, _LAST_ELEMENT, payload)
            return
        del state
        stream.wire -= 1
        self.flood.useful()
        self.run(stream.id).add(payload)
        if stream.wanted and stream.wire < TOP_UP_LEVEL:
            self.ask(stream)

    def run(self, stream_id: int) -> Elements:
        """Where the next elements of a stream go: together with those that came just before."""
        events = self.events
        if events:
            last = events[-1]
            if type(last) is Elements and last.stream_id == stream_id and not last.complete:
                return last
        started = Elements(stream_id, [])
        events.append(started)
        return started

    def finish(self, stream: Stream, input_: Input, payload: Payload | None) -> None:
        self.flood.useful()
        if payload is None:
            self.events.append(Completed(stream.id))
        else:
            elements = self.run(stream.id)
            elements.add(payload)
            elements.complete = True
        self.move(stream, input_)

    def on_request_n(self, frame: RequestN) -> None:
        stream = self.streams.live.get(frame.stream_id)
        if stream is None or not self.move(stream, Input.REQUEST_N):
            self.useless()
            return
        stream.credit = min(stream.credit + frame.n, UNBOUNDED)
        if stream.state in SENDING_STATES and stream.granted <= self.low:
            self.wait(stream)

    def on_cancel(self, frame: Cancel) -> None:
        stream = self.streams.live.get(frame.stream_id)
        if stream is None or not self._ended(stream, Input.CANCEL, ErrorCode.CANCELED, _CUT_SHORT):
            self.useless()

    def on_error(self, frame: Error) -> None:
        stream = self.streams.live.get(frame.stream_id)
        if stream is None or not self._ended(stream, Input.ERROR, frame.code, frame.data):
            self.useless()

    def _ended(self, stream: Stream, input_: Input, code: int, data: bytes) -> bool:
        """The peer ended the stream, or its half of it; False if that means nothing."""
        if not (stream.mine or stream.size or stream.id in self.out.answers):
            self.useless()  # opening and ending streams without end is no use either
        action = self.move(stream, input_)
        if action in (Action.FAIL_RECEIVING, Action.ABORT):
            self.events.append(Failed(stream.id, code, data))
        if action in (Action.STOP_SENDING, Action.ABORT):
            self.out.clear(stream)
            self.events.append(Cancelled(stream.id))
        return action is not _IGNORE

    def _refuse(self, stream: Stream, reason: bytes) -> None:
        """The peer broke a rule on this stream: it ends, and both sides are told."""
        receiving, sending = stream.state in RECEIVING_STATES, stream.state in SENDING_STATES
        action = self.move(stream, Input.VIOLATION)
        if action is Action.REFUSE_ERROR:
            self.refuse(stream.id, ErrorCode.INVALID, reason)
        else:
            self.flood.allow(1024)
            self.out.signal(encode(Cancel(stream.id)))
        if receiving:
            self.events.append(Failed(stream.id, ErrorCode.INVALID, reason, local=True))
        if sending:
            self.events.append(Cancelled(stream.id))

    def refuse(self, stream_id: int, code: int, reason: bytes) -> None:
        """Answer a request that is not served."""
        self.out.signal(encode(self.error(stream_id, code, reason)))

    def open(self, stream: Stream, payload: Payload, complete: bool) -> None:
        """A request of the peer is whole: the application is told."""
        model = stream.model
        complete = complete and model is _CHANNEL
        stream.state = RESPONDER_STATES[model]
        if model is _FNF:
            self.forget(stream)
        self.events.append(RequestReceived(stream.id, model, payload, complete))
        if model is _RESPONSE:
            stream.granted = 1
        elif model is _CHANNEL:
            stream.first = payload
            stream.last = complete
        self.wait(stream)
