"""The streams of one connection: what is known of each, and which id the next one gets."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from .errors import NoStreamLeft
from .frames import MAX_31, Payload
from .stream_states import RESPONDER_STATES, InteractionModel, State

if TYPE_CHECKING:
    from .fragmentation import Reassembly

__all__ = (
    "STREAM_ID_STEP",
    "ExpectedResponse",
    "FragmentedPayload",
    "OwedResponse",
    "RemoteStream",
    "Stream",
    "Streams",
)


class FragmentedPayload:
    """A payload on its way out in fragments, which are cut when their turn comes."""

    __slots__ = ("left", "pieces")

    def __init__(self, pieces: Iterator[bytes], size: int) -> None:
        self.pieces: Iterator[bytes] = pieces
        self.left: int = size


class Stream:
    """One stream, from one side: its state, its demand in both directions, its frames to send.

    What most streams never need is a default of the class, for a request and its answer are a
    stream too, and should not cost more than they must.
    """

    id: int
    model: InteractionModel
    state: State
    mean: int = 0
    """How large its elements are, about."""
    frames: list[bytes | FragmentedPayload] | tuple[()] = ()
    """What it has to say; a list only while that is something."""

    # What comes in.
    wanted: int = 0
    """Demand of the application that has not been sent yet."""
    wire: int = 0
    """How many elements the peer may still send: credit, in the words of the wire."""
    asking: bool = False
    partial: "Reassembly | None" = None
    first: Payload | None = None
    """The first element of a channel, which came with the request, until it is asked for."""
    last: bool = False
    """Whether that element is also the last."""
    # What goes out.
    credit: int = 0
    """How many elements the peer wants that the application has not been asked for yet."""
    granted: int = 0
    """How many elements the application may still send."""
    waiting: bool = False
    size: int = 0
    larges: int = 0
    ready: bool = False

    mine: bool = True
    """Whether this side asked for it."""
    started: bool = False
    """Whether the peer knows of it."""

    def __init__(self, stream_id: int, model: InteractionModel, state: State, mean: int) -> None:
        self.id = stream_id
        self.model = model
        self.state = state
        self.mean = mean

    def __repr__(self) -> str:
        return f"<Stream {self.id} {self.model.name} {self.state.name}>"

    def take(self, out: list[bytes], quantum: int) -> int:
        """Move frames to *out* until they are at least *quantum* bytes; how many they are."""
        self.started = True
        if not self.frames:
            return 0
        frames = self.frames
        taken = done = 0
        before = self.size
        while done < len(frames) and taken < quantum:
            head = frames[done]
            if isinstance(head, bytes):
                piece: bytes | None = head
                self.size -= len(head)
            else:
                piece = self._cut(head)
            if piece is not None:
                out.append(piece)
                taken += len(piece)
            done += piece is None or piece is head
        del frames[:done]
        if not frames:
            self.frames = ()
        return before - self.size

    def _cut(self, large: FragmentedPayload) -> bytes | None:
        """The next fragment; None if there is no more."""
        piece = next(large.pieces, None)
        # The last piece takes with it what the headers of the others made the estimate miss.
        gone = large.left if piece is None else min(len(piece), large.left)
        large.left -= gone
        self.size -= gone
        self.larges -= piece is None
        return piece

    def clear(self) -> int:
        """Drop all frames that have not been sent; how many bytes they were."""
        dropped = self.size
        self.frames = ()
        self.size = self.larges = 0
        return dropped


class RemoteStream(Stream):
    """One that the peer asked for."""

    mine = False
    started = True


class ExpectedResponse(Stream):
    """A request of this side for one element, which waits in `Outbound.asks`, or has been sent."""

    model = InteractionModel.RESPONSE
    state = State.REQUESTER_RESPONSE
    wire = 1
    started = True

    def __init__(self, stream_id: int) -> None:
        self.id = stream_id


class OwedResponse(RemoteStream):
    """A request of the peer for one element, which is whole."""

    model = InteractionModel.RESPONSE
    state: State = RESPONDER_STATES[InteractionModel.RESPONSE]
    granted = 1

    def __init__(self, stream_id: int) -> None:
        self.id = stream_id


STREAM_ID_STEP: Final = 2
"""From one id of a side to its next one."""


class Streams:
    """Those that live, by their id."""

    __slots__ = ("_first", "last", "live", "next", "theirs")

    def __init__(self, *, client: bool, last: int = MAX_31) -> None:
        self._first = 1 if client else 2
        self.next: int = self._first
        """The id to be tried next."""
        self.last: int = last
        """The highest id; then ids begin again, those in use being passed over."""
        self.live: dict[int, Stream] = {}
        self.theirs: int = 0
        """How many of them the peer asked for."""

    def mine(self, stream_id: int) -> bool:
        """Whether *stream_id* is one that this side gives out."""
        return stream_id & 1 == self._first & 1

    def next_id(self) -> int:
        """Give out an id."""
        for _ in range(len(self.live) + 1):
            stream_id = self.next
            self.next += STREAM_ID_STEP
            if self.next > self.last:
                self.next = self._first
            if stream_id not in self.live:
                return stream_id
        raise NoStreamLeft(f"all {len(self.live)} stream ids are in use: open another connection")

    def add(self, stream: Stream) -> None:
        self.live[stream.id] = stream
        self.theirs += not stream.mine

    def remove(self, stream: Stream) -> bool:
        """Forget *stream*; whether it was known."""
        if self.live.pop(stream.id, None) is None:
            return False
        self.theirs -= not stream.mine
        return True
