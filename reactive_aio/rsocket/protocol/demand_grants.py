"""The demand of the peer, and when it is passed on to the application.

It is passed on in small portions, and only while little output is queued: a peer that requests
everything and reads nothing costs little. Payloads that are sent in fragments count for streams of
such elements alone. They may be megabytes, and small elements do not wait for them. Of how many
bytes the elements of a stream are, its first one shows: so few streams have a first one at a time,
and one, while the process holds as much for its peers as it may.
"""

from typing import Final

from .events import DemandReceived, Event
from .limits import Limits
from .outbound_queue import OutboundQueue
from .stream_states import State
from .streams import Stream, StreamQueue, queue_with

_FEW_LARGE: Final = 8
"""While more payloads in fragments than this are queued, no stream has its first element."""
_MOST_FIRST: Final = 64
"""How many streams have their first element in one turn."""


class DemandGrants:
    """The streams of one connection that have demand of the peer to pass on."""

    def __init__(self, limits: Limits, output: OutboundQueue) -> None:
        self._limits = limits
        self._output = output
        self._waiting: StreamQueue = ()
        self._waiting_with_large: StreamQueue = ()
        """Those whose elements are sent in fragments, while much of that is queued."""

    def __bool__(self) -> bool:
        return bool(self._waiting or self._waiting_with_large)

    def schedule(self, stream: Stream) -> None:
        """Pass on the demand for *stream* as soon as there is room."""
        if not stream.is_awaiting_grant and stream.peer_demand:
            stream.is_awaiting_grant = True
            self._waiting = queue_with(self._waiting, stream)

    def clear(self) -> None:
        self._waiting = self._waiting_with_large = ()

    def grant(self, events: list[Event]) -> None:
        """Add a `DemandReceived` to *events* for each stream for which there is room."""
        output, watermark = self._output, self._limits.watermark
        room = watermark - output.queued_bytes
        while room > 0 and self._waiting_with_large:
            room -= self._grant(self._waiting_with_large.popleft(), room, events)
        is_exceeded = self._limits.budget.is_exceeded
        small_room = room if is_exceeded else room + output.rotation.fragmented_bytes
        first = _MOST_FIRST if output.rotation.fragmented_count <= _FEW_LARGE else 0
        first = min(first, 1) if is_exceeded else first
        for _ in range(len(self._waiting)):
            if small_room <= 0:
                return
            assert self._waiting
            stream = self._waiting.popleft()
            if not stream.is_measured:
                if not first:
                    self._waiting.append(stream)
                    continue
                first -= 1
            if room > 0:
                used = self._grant(stream, room, events)
            elif not stream.is_measured:
                used = self._grant(stream, 1, events)  # one element, to know their size
            elif stream.mean_size <= self._limits.mtu:
                used = self._grant(stream, small_room, events)
            else:
                self._waiting_with_large = queue_with(self._waiting_with_large, stream)
                continue
            room -= used
            small_room -= used

    def _grant(self, stream: Stream, room: int, events: list[Event]) -> int:
        """Pass on a portion of the demand for *stream*; the room that its elements may take."""
        stream.is_awaiting_grant = False
        if not stream.peer_demand or stream.state is State.CLOSED:
            return 0
        mean_size = stream.mean_size
        most = min(self._limits.chunk - stream.outbound_credit, max(1, room // mean_size))
        n = stream.peer_demand.take(most)
        stream.outbound_credit += n
        stream.mean_size = max(mean_size >> 1, 32)
        events.append(DemandReceived(stream.id, n))
        return n * mean_size
