"""The streams of one connection: the account of each, and the ids of new ones."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from ..._core.demand import Demand
from .codec import split_messages
from .errors import NoStreamLeft
from .fragmentation import Reassembly, fragment_follows
from .frames import MAX_31, Payload
from .stream_states import RESPONDER_STATES, InteractionModel, State

StreamQueue: TypeAlias = "deque[Stream] | tuple[()]"
"""A queue of streams: a deque from its first stream on. An empty deque takes 760 bytes, and most
connections never need most of theirs."""


def queue_with(queue: StreamQueue, stream: "Stream") -> "deque[Stream]":
    """*queue* with *stream* at its end."""
    if not queue:
        queue = queue if isinstance(queue, deque) else deque()
    queue.append(stream)
    return queue


@dataclass(slots=True, eq=False)
class Lane:
    """Payloads that are being sent in fragments, up to *limit* bytes, and those that wait."""

    limit: int
    max_count: int
    size: int = 0
    count: int = 0
    waiting: StreamQueue = ()

    def has_room(self, size: int) -> bool:
        """Whether a payload of *size* bytes may start; a single one may always."""
        return not self.count or (self.count < self.max_count and self.size + size <= self.limit)

    def start(self, payload: "FragmentedPayload") -> None:
        payload.lane = self
        self.count += 1
        self.size += payload.size

    def end(self, payload: "FragmentedPayload") -> None:
        payload.lane = None
        self.count -= 1
        self.size -= payload.size


@dataclass(slots=True, eq=False)
class FragmentedPayload:
    """An outgoing payload in fragments, each made when it is sent."""

    fragments: Iterator[bytes]
    size: int
    """Its approximate size."""
    remaining: int
    """The part of it that has not been sent."""
    lane: Lane | None = None
    """Where it is counted once it may be sent."""


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
    is_measured: bool = False
    """Whether an element has been sent, so that the size is more than a guess."""
    frames: list[bytes | FragmentedPayload] | tuple[()] = ()
    """Its output; a list only while it has some. Each of its bytes are one or several frames."""

    # In.
    unsent_demand: Demand
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
    peer_demand: Demand
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
        self.unsent_demand = Demand()
        self.peer_demand = Demand()

    def __repr__(self) -> str:
        return f"<Stream {self.id} {self.model.name} {self.state.name}>"

    @property
    def head(self) -> FragmentedPayload | None:
        """The payload in fragments that is to be sent next, if there is one."""
        if not self.fragmented_payloads or not self.frames:
            return None
        head = self.frames[0]
        return None if isinstance(head, bytes) else head

    @property
    def fragmented_bytes(self) -> int:
        """What is queued of payloads in fragments."""
        return sum(each.remaining for each in self.frames if not isinstance(each, bytes))

    @property
    def queued_frames(self) -> int:
        """How many frames are queued; a payload in fragments counts as one."""
        pieces = (split_messages(each) for each in self.frames if isinstance(each, bytes))
        return sum(map(len, pieces)) + self.fragmented_payloads

    def take(self, out: list[bytes], quantum: int) -> int:
        """Move frames to *out* until they have *quantum* bytes, or up to a payload in fragments.

        Returns their size.
        """
        self.is_started = True
        taken = done = 0
        frames = self.frames
        while done < len(frames) and taken < quantum:
            frame = frames[done]
            if not isinstance(frame, bytes):
                break
            out.append(frame)
            taken += len(frame)
            done += 1
        self._remove(done)
        self.queued_bytes -= taken
        return taken

    def take_fragment(self, payload: FragmentedPayload, out: list[bytes]) -> int:
        """Move the next fragment of *payload*, the head, to *out*; by how much less is queued.

        The last one removes the payload.
        """
        self.is_started = True
        fragment = next(payload.fragments)
        out.append(fragment)
        # The size was an estimate, without the headers of all fragments: the last one settles it,
        # and until then at least one byte is queued.
        is_last = not fragment_follows(fragment)
        size = payload.remaining if is_last else min(len(fragment), payload.remaining - 1)
        payload.remaining -= size
        self.queued_bytes -= size
        if is_last:
            self.fragmented_payloads -= 1
            self._remove(1)
        return size

    def _remove(self, count: int) -> None:
        if count and self.frames:
            del self.frames[:count]
        if not self.frames:
            self.frames = ()

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


_NONE: Final = Demand()
"""Of a request for one element: no other request follows it."""


class ExpectedResponse(Stream):
    """A request of this side for one element that is a single frame."""

    model = InteractionModel.RESPONSE
    unsent_demand: Demand = _NONE
    peer_demand: Demand = _NONE
    state: State = State.REQUESTER_RESPONSE
    inbound_credit = 1
    is_started = True

    def __init__(self, stream_id: int) -> None:
        self.id = stream_id


class OwedResponse(ExpectedResponse):
    """A complete request of the peer for one element."""

    state: State = RESPONDER_STATES[InteractionModel.RESPONSE]
    inbound_credit = 0
    outbound_credit = 1
    is_local = False


class QueuedResponse(OwedResponse):
    """The same, when its response is queued as a single frame."""

    state: State = State.FLUSHING
    outbound_credit = 0


EXPECTED: Final = ExpectedResponse(0)
"""Stands for all requests of this side that have nothing of their own but their id. With an object
for each, here and at the peer, 64 requests in flight take 12 % longer
(`benchmarks.rsocket.requests`)."""
OWED: Final = OwedResponse(0)
"""The same for requests of the peer that the application has not answered."""
QUEUED: Final = QueuedResponse(0)
"""The same for those whose response is queued."""


STREAM_ID_STEP: Final = 2
"""Each side has every other id."""
_WRAPPED: Final = MAX_31 // 2
"""An id that is lower by more than this is the first of those that begin again."""


class Streams:
    """The open streams by their ids."""

    __slots__ = ("_first_id", "_has_wrapped", "by_id", "highest_remote_id", "last_id", "next",
                 "remote_count", "remote_side")  # fmt: skip

    def __init__(self, *, client: bool, last: int = MAX_31) -> None:
        self._first_id = 1 if client else 2
        self.remote_side: int = 0 if client else 1
        """The lowest bit of the ids of the peer."""
        self.next: int = self._first_id
        """The id to be tried next."""
        self.last_id: int = last
        """The highest id; after it, ids begin again, and those in use are left out."""
        self.by_id: dict[int, Stream] = {}
        """Some are `EXPECTED`, `OWED` or `QUEUED`: `get` gives them an object of their own."""
        self.remote_count: int = 0
        """The number of streams that the peer opened."""
        self.highest_remote_id: int = 0
        """The highest id that the peer has used; after it, the peer's ids begin again."""
        self._has_wrapped = False

    @property
    def local_count(self) -> int:
        """The number of streams that this side opened."""
        return len(self.by_id) - self.remote_count

    def use_remote_id(self, stream_id: int) -> bool:
        """Note an id of the peer's; whether it is a new one, as every id should be."""
        highest = self.highest_remote_id
        is_new = stream_id > highest or highest - stream_id > _WRAPPED
        if is_new:
            self.highest_remote_id = stream_id
        return is_new

    def was_opened(self, stream_id: int) -> bool:
        """Whether a stream with this id is open, or was."""
        if self.is_local_id(stream_id):
            return self._has_wrapped or 0 < stream_id < self.next
        return 0 < stream_id <= self.highest_remote_id

    def is_local_id(self, stream_id: int) -> bool:
        """Whether *stream_id* is one of this side's."""
        return stream_id & 1 != self.remote_side

    def next_id(self) -> int:
        """Use up an id."""
        for _ in range(len(self.by_id) + 1):
            stream_id = self.next
            self.next += STREAM_ID_STEP
            if self.next > self.last_id:
                self.next, self._has_wrapped = self._first_id, True
            if stream_id not in self.by_id:
                return stream_id
        raise NoStreamLeft(f"all {len(self.by_id)} stream ids are in use: open another connection")

    def get(self, stream_id: int) -> Stream | None:
        """The open stream with this id, which may be changed."""
        stream = self.by_id.get(stream_id)
        if isinstance(stream, ExpectedResponse) and not stream.id:
            stream = self.by_id[stream_id] = type(stream)(stream_id)
        return stream

    def add(self, stream: Stream) -> None:
        self.by_id[stream.id] = stream
        self.remote_count += not stream.is_local

    def remove(self, stream: Stream) -> bool:
        """Remove *stream*; whether it was open."""
        if self.by_id.pop(stream.id, None) is None:
            return False
        self.remote_count -= not stream.is_local
        return True
