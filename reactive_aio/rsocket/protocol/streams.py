"""The streams of one connection: the account of each, and the ids of new ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .errors import NoStreamLeft
from .fragmentation import Reassembly
from .frames import MAX_31, Payload
from .stream_states import RESPONDER_STATES, InteractionModel, State


@dataclass(slots=True)
class FragmentedPayload:
    """An outgoing payload in fragments, each made when it is sent."""

    fragments: Iterator[bytes]
    remaining: int


class Stream:
    """One stream, from one side: its state, its demand in both directions, its output.

    What most streams never need is an attribute of the class: a request and its response are a
    stream too, and should not cost more than they must.
    """

    id: int
    model: InteractionModel
    state: State
    mean_size: int = 0
    """The approximate size of its elements."""
    frames: list[bytes | FragmentedPayload] | tuple[()] = ()
    """Its output; a list only while it has some."""

    # In.
    unsent_demand: int = 0
    """Demand of the application that has not been sent yet."""
    inbound_credit: int = 0
    """The number of elements the peer may still send."""
    is_requesting: bool = False
    """Whether it is queued to send a REQUEST_N."""
    reassembly: Reassembly | None = None
    first_element: Payload | None = None
    """The first element of a channel, which came with the request, until it is requested."""
    is_first_last: bool = False
    """Whether that element is also the last."""

    # Out.
    peer_demand: int = 0
    """Demand of the peer that has not been passed on to the application yet."""
    outbound_credit: int = 0
    """The number of elements the application may still send."""
    is_awaiting_grant: bool = False
    """Whether it is queued to pass on demand of the peer."""
    queued_bytes: int = 0
    fragmented_payloads: int = 0
    is_ready: bool = False
    """Whether it is in the rotation of streams with output."""

    is_local: bool = True
    """Whether this side opened it."""
    is_started: bool = False
    """Whether its first frame has been sent or received."""

    def __init__(
        self, stream_id: int, model: InteractionModel, state: State, mean_size: int
    ) -> None:
        self.id = stream_id
        self.model = model
        self.state = state
        self.mean_size = mean_size

    def __repr__(self) -> str:
        return f"<Stream {self.id} {self.model.name} {self.state.name}>"

    def take(self, out: list[bytes], quantum: int) -> int:
        """Move frames to *out* until they have at least *quantum* bytes; their size."""
        self.is_started = True
        if not self.frames:
            return 0
        frames = self.frames
        taken = done = 0
        before = self.queued_bytes
        while done < len(frames) and taken < quantum:
            head = frames[done]
            if isinstance(head, bytes):
                frame: bytes | None = head
                self.queued_bytes -= len(head)
            else:
                frame = self._next_fragment(head)
            if frame is not None:
                out.append(frame)
                taken += len(frame)
            done += frame is None or frame is head
        del frames[:done]
        if not frames:
            self.frames = ()
        return before - self.queued_bytes

    def _next_fragment(self, payload: FragmentedPayload) -> bytes | None:
        """The next fragment; None if there are no more."""
        fragment = next(payload.fragments, None)
        # The size was an estimate, without the headers of all fragments: the last one settles it.
        size = payload.remaining if fragment is None else min(len(fragment), payload.remaining)
        payload.remaining -= size
        self.queued_bytes -= size
        self.fragmented_payloads -= fragment is None
        return fragment

    def clear(self) -> int:
        """Drop all frames that have not been sent; their size."""
        dropped = self.queued_bytes
        self.frames = ()
        self.queued_bytes = self.fragmented_payloads = 0
        return dropped


class RemoteStream(Stream):
    """A stream that the peer opened."""

    is_local = False
    is_started = True


class ExpectedResponse(Stream):
    """A request of this side for one element, made by the fast path."""

    model = InteractionModel.RESPONSE
    state = State.REQUESTER_RESPONSE
    inbound_credit = 1
    is_started = True

    def __init__(self, stream_id: int) -> None:
        self.id = stream_id


class OwedResponse(RemoteStream):
    """A complete request of the peer for one element, read by the fast path."""

    model = InteractionModel.RESPONSE
    state: State = RESPONDER_STATES[InteractionModel.RESPONSE]
    outbound_credit = 1

    def __init__(self, stream_id: int) -> None:
        self.id = stream_id


STREAM_ID_STEP: Final = 2
"""Each side has every other id."""


class Streams:
    """The open streams by their ids."""

    __slots__ = ("_first_id", "by_id", "last_id", "next", "remote_count")

    def __init__(self, *, client: bool, last: int = MAX_31) -> None:
        self._first_id = 1 if client else 2
        self.next: int = self._first_id
        """The id to be tried next."""
        self.last_id: int = last
        """The highest id; after it, ids begin again, and those in use are left out."""
        self.by_id: dict[int, Stream] = {}
        self.remote_count: int = 0
        """The number of streams that the peer opened."""

    def is_local_id(self, stream_id: int) -> bool:
        """Whether *stream_id* is one of this side's."""
        return stream_id & 1 == self._first_id & 1

    def next_id(self) -> int:
        """Use up an id."""
        for _ in range(len(self.by_id) + 1):
            stream_id = self.next
            self.next += STREAM_ID_STEP
            if self.next > self.last_id:
                self.next = self._first_id
            if stream_id not in self.by_id:
                return stream_id
        raise NoStreamLeft(f"all {len(self.by_id)} stream ids are in use: open another connection")

    def add(self, stream: Stream) -> None:
        self.by_id[stream.id] = stream
        self.remote_count += not stream.is_local

    def remove(self, stream: Stream) -> bool:
        """Remove *stream*; whether it was open."""
        if self.by_id.pop(stream.id, None) is None:
            return False
        self.remote_count -= not stream.is_local
        return True
