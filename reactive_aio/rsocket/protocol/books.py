"""The books of a connection: each stream's state and demand, and the frames that follow from them.

Demand is counted twice: what the application wants of the peer (turned into one REQUEST_N for
each stream when something is sent), and what the peer wants of the application (passed on in small
portions, while little waits to be sent, so that a peer that wants everything and reads nothing
costs little).
"""

from collections import deque
from dataclasses import replace
from typing import Final

from ..._core.demand import UNBOUNDED
from .codec import HEADER, decode, encode, encode_payload
from .errors import ProtocolError
from .events import Cancelled, DemandReceived, Event, Failed
from .fragmentation import Fragmentable, Reassemblies, fragments
from .frames import EMPTY_PAYLOAD, MAX_31, Error, Payload, PayloadTuple, RequestN
from .limits import Limits
from .outbound_queue import OutboundQueue
from .stream_states import RECEIVING_STATES, SENDING_STATES, TABLE, Action, Input, State
from .streams import Stream, Streams
from .useless_frame_limit import UselessFrameLimit

__all__ = ("TOP_UP_LEVEL", "Books")

# To look up a member of an enum takes five times as long as to look up a global.
_GATHER: Final = State.RESPONDER_REASSEMBLY
_GONE: Final = State.CLOSED
_FLUSH: Final = State.FLUSHING

TOP_UP_LEVEL: Final = MAX_31 // 2
"""Demand beyond what the wire can say is topped up when no more than this is left of it."""


class Books:
    """All streams of one connection, what is owed on each, and what waits to be sent."""

    def __init__(self, limits: Limits, *, client: bool, prefixed: bool) -> None:
        self.limits: Limits = limits
        self.events: list[Event] = []
        self.streams: Streams = Streams(client=client)
        self.out: OutboundQueue = OutboundQueue(limits, prefixed=prefixed)
        self.partials: Reassemblies = Reassemblies(limits)
        self.flood: UselessFrameLimit = UselessFrameLimit(limits.max_useless)
        self.now: float = 0.0
        self.asking: list[Stream] = []
        """Streams of which more is wanted than the peer knows."""
        self.waiting: deque[Stream] = deque()
        """Streams of which the peer wants more than the application knows."""
        self._refusals = 0
        self.mtu: int = limits.mtu
        self.small: int = min(limits.mtu, 0xFFFF)
        """How long a frame may be that is written without ado."""
        self.overhead: int = HEADER + (3 if prefixed else 0)
        self.low: int = limits.chunk >> 2
        self.mean: int = max(limits.watermark // 16, 1)

    # -- the books ---------------------------------------------------------------------------------
    def useless(self) -> None:
        if self.flood.useless(self.now):
            raise ProtocolError("a flood of frames that lead to nothing")

    def refused_again(self) -> bool:
        """Whether the peer has been told before that its payloads are too much."""
        self._refusals += 1
        return self._refusals > 1

    def put(self, stream: Stream, bits: int, payload: PayloadTuple, n: int = 0) -> int:
        """Queue a request or an element in its stream's turn, in fragments if it is large.

        *bits*: its type and flags. Returns how many bytes it takes, about.
        """
        data, metadata = payload
        size = len(data) + HEADER + 4
        if metadata is not None:
            size += len(metadata) + 3
        if size <= self.mtu:
            self.out.put(
                stream, encode_payload(stream.id, bits, payload, n, prefixed=self.out.prefixed)
            )
            return size
        frame = decode(encode_payload(stream.id, bits, EMPTY_PAYLOAD, n))
        if isinstance(frame, Fragmentable):
            whole = replace(frame, payload=Payload(data, metadata))
            self.out.put_large(stream, fragments(whole, self.limits.mtu), size)
        return size

    def error(self, stream_id: int, code: int, data: bytes) -> Error:
        return Error(stream_id, code, data[: self.limits.mtu - HEADER - 4])

    def move(self, stream: Stream, input_: Input) -> Action:
        state, action = TABLE[stream.state, input_]
        if state is not stream.state:
            if state is _GONE:
                self.forget(stream)
            else:
                stream.state = state
                self.settle(stream)
        return action

    def settle(self, stream: Stream) -> None:
        """The stream's state is new: what no longer counts is let go."""
        state = stream.state
        if state is _FLUSH and not stream.frames:
            self.forget(stream)
            return
        if state not in RECEIVING_STATES and state is not _GATHER:
            stream.wire = stream.wanted = 0
            stream.first = None
            self.let_go(stream)
        if state not in SENDING_STATES:
            stream.credit = stream.granted = 0

    def forget(self, stream: Stream) -> None:
        """It is over: nothing of it counts any more."""
        stream.state = _GONE
        if stream.partial is not None:
            self.let_go(stream)
        if stream.frames or self.out.asks or self.out.answers:
            self.out.clear(stream)
        self.streams.remove(stream)

    def flushed(self, streams: list[Stream]) -> None:
        """All that *streams* had to send has been sent."""
        ended = 0
        for stream in streams:
            if stream.state is _FLUSH:
                self.forget(stream)
                ended += not stream.mine
        if ended:
            self.flood.useful(ended)
            self.flood.allow(2 * ended)  # what the peer says before it learns of the end

    def answered(self, ids: list[int]) -> None:
        """The one element that was owed on these streams has been sent."""
        live = self.streams.live
        for stream_id in ids:
            del live[stream_id]
        self.streams.theirs -= len(ids)
        self.flood.useful(len(ids))
        self.flood.allow(2 * len(ids))

    def end_all(self, code: int, data: bytes, *, local: bool) -> None:
        """The connection is over: every stream ends with it."""
        for stream in list(self.streams.live.values()):
            if stream.state in RECEIVING_STATES:
                self.events.append(Failed(stream.id, code, data, local))
            if stream.state in SENDING_STATES:
                self.events.append(Cancelled(stream.id))
            self.forget(stream)
        self.asking.clear()
        self.waiting.clear()
        self.out.forget()

    def let_go(self, stream: Stream) -> None:
        if stream.partial is not None:
            self.partials.end(stream.partial)
            stream.partial = None

    # -- demand ------------------------------------------------------------------------------------
    def ask(self, stream: Stream) -> None:
        if not stream.asking and stream.wanted:
            stream.asking = True
            self.asking.append(stream)

    def wait(self, stream: Stream) -> None:
        if not stream.waiting and stream.credit:
            stream.waiting = True
            self.waiting.append(stream)

    def ask_peer(self) -> None:
        """Turn what the application asked for into frames: one for each stream."""
        asking, self.asking = self.asking, []
        for stream in asking:
            stream.asking = False
            wanted, wire = stream.wanted, stream.wire
            if not wanted or stream.state is _GONE:
                continue
            if not stream.started:  # not before its request
                self.ask(stream)
            elif wire + wanted <= MAX_31 or wire < TOP_UP_LEVEL:
                n = min(wanted, MAX_31 - wire)
                stream.wire += n
                stream.wanted -= 0 if wanted == UNBOUNDED else n
                self.out.signal(encode(RequestN(stream.id, n)))

    def grant(self) -> None:
        """Ask the application for what the peer wants, while little waits to be sent."""
        room = self.limits.watermark - self.out.queued
        for _ in range(len(self.waiting)):
            if room <= 0:
                return
            stream = self.waiting.popleft()
            stream.waiting = False
            if not stream.credit or stream.state is _GONE:
                continue
            most = min(self.limits.chunk - stream.granted, max(1, room // stream.mean))
            n = min(stream.credit, most)
            stream.granted += n
            stream.credit -= 0 if stream.credit == UNBOUNDED else n
            room -= n * stream.mean
            stream.mean = max(stream.mean >> 1, 32)
            self.events.append(DemandReceived(stream.id, n))
