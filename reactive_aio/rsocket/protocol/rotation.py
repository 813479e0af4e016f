"""The order in which the streams of a connection send whole frames, and fragments of payloads.

Streams with whole frames take turns, and so do payloads that are sent in fragments. Both groups get
half of the connection while both have output, so that small elements do not wait for each of many
large payloads.

Payloads that are being sent in fragments are bounded in bytes and in number: the peer has to hold
all of them. Others wait, in their order. Payloads of more than an eighth of the bound have a bound
of their own, so that those of medium size do not wait for them.

The first payload of a request never waits here, since requests are to be sent in the order of their
ids: `may_start` returns whether a request may be made at all.
"""

from typing import Final

from .limits import Limits
from .streams import FragmentedPayload, Lane, Stream, StreamQueue, queue_with

_MAX_STARTED: Final = 64
"""The number of payloads that may be sent in fragments at the same time, in each lane."""
_LARGE: Final = 8
_MIN_COMPACTED: Final = 256


class Rotation:
    """The streams with output, in the order of their turns."""

    def __init__(self, limits: Limits) -> None:
        self._quantum = limits.mtu
        self._large = limits.max_started // _LARGE
        self._lanes = Lane(limits.max_started, _MAX_STARTED), Lane(limits.max_started, _MAX_STARTED)
        self.ready: StreamQueue = ()
        """Streams whose next frame is whole, or the first of a payload that may have to wait."""
        self._sending: StreamQueue = ()
        """Streams whose next frame is a fragment."""
        self.fragmented_bytes: int = 0
        """What is queued of payloads in fragments."""
        self.fragmented_count: int = 0
        """The number of these payloads."""
        self._is_fragment_due = False
        self._cleared = 0

    def add(self, stream: Stream) -> None:
        """*stream* has output."""
        if not stream.is_ready:
            stream.is_ready = True
            self.ready = queue_with(self.ready, stream)

    def may_start(self, size: int) -> bool:
        """Whether a request of *size* bytes may be sent in fragments now."""
        return self._lane(size).has_room(size)

    def reserve(self, payload: FragmentedPayload) -> None:
        """*payload* is that of a request: it starts in its order, and does not wait."""
        self._lane(payload.size).start(payload)

    def clear(self, stream: Stream) -> int:
        """Drop the output of *stream*; how much was queued."""
        if (head := stream.head) is not None:
            self._end(head)
        if stream.fragmented_payloads:
            self.fragmented_bytes -= stream.fragmented_bytes
            self.fragmented_count -= stream.fragmented_payloads
        if stream.is_ready:
            self._cleared += 1
            if self._cleared > _MIN_COMPACTED:
                self._compact()
        return stream.clear()

    def drop_all(self) -> None:
        """Drop the output of all streams."""
        for queue in self._queues():
            for stream in queue:
                stream.clear()
                stream.is_ready = False
            if queue:
                queue.clear()
        for lane in self._lanes:
            lane.size = lane.count = 0
        self.fragmented_bytes = self.fragmented_count = 0

    def take(self, room: int, out: list[bytes], flushed: list[Stream]) -> int:
        """Move frames of at least *room* bytes to *out*, if there are as many; their size.

        Streams without output after that are added to *flushed*.
        """
        before = room
        while room > 0 and (self.ready or self._sending):
            if self._sending and (self._is_fragment_due or not self.ready):
                self._is_fragment_due = False
                room -= self._take_fragment(out, flushed)
            else:
                self._is_fragment_due = True
                room -= self._take_whole(min(room, self._quantum), out, flushed)
        return before - room

    def _take_whole(self, room: int, out: list[bytes], flushed: list[Stream]) -> int:
        ready, quantum, taken = self.ready, self._quantum, 0
        while ready and taken < room:
            stream = ready.popleft()
            size = stream.queued_bytes
            if size <= quantum and not stream.fragmented_payloads:
                stream.is_started = True
                stream.is_ready = False
                stream.queued_bytes = 0
                taken += size
                out += stream.frames  # type: ignore[arg-type]  # none of them is fragmented
                stream.frames = ()
                flushed.append(stream)
            elif (head := stream.head) is None:
                taken += stream.take(out, quantum)
                self._requeue(stream, flushed)
            elif head.lane is not None:
                self._sending = queue_with(self._sending, stream)
                self._sending.rotate()  # the request goes before all that were made later
                taken += self._take_fragment(out, flushed)
            else:
                self._wait(stream, head)
        return taken

    def _take_fragment(self, out: list[bytes], flushed: list[Stream]) -> int:
        assert self._sending
        stream = self._sending.popleft()
        head = stream.head
        if head is None:  # it was cleared meanwhile
            self._requeue(stream, flushed)
            return 0
        size = stream.take_fragment(head, out)
        self.fragmented_bytes -= size
        if stream.head is head:
            self._sending = queue_with(self._sending, stream)
        else:
            self.fragmented_count -= 1
            self._end(head)
            self._requeue(stream, flushed)
        return size

    def _requeue(self, stream: Stream, flushed: list[Stream]) -> None:
        if stream.frames:
            self.ready = queue_with(self.ready, stream)
        else:
            stream.is_ready = False
            flushed.append(stream)

    # -- lanes -------------------------------------------------------------------------------------
    def _lane(self, size: int) -> Lane:
        return self._lanes[size > self._large]

    def _wait(self, stream: Stream, head: FragmentedPayload) -> None:
        lane = self._lane(head.size)
        if lane.waiting or not lane.has_room(head.size):
            lane.waiting = queue_with(lane.waiting, stream)
        else:
            lane.start(head)
            self._sending = queue_with(self._sending, stream)

    def _end(self, payload: FragmentedPayload) -> None:
        """*payload* has been sent, or is dropped: others may start."""
        lane = payload.lane
        if lane is None:
            return
        lane.end(payload)
        waiting = lane.waiting
        while waiting:
            head = waiting[0].head
            if head is None:  # it was cleared meanwhile
                self.ready = queue_with(self.ready, waiting.popleft())
            elif lane.has_room(head.size):
                lane.start(head)
                self._sending = queue_with(self._sending, waiting.popleft())
            else:
                break

    # -- streams that were cleared -----------------------------------------------------------------
    def _queues(self) -> tuple[StreamQueue, ...]:
        return (self.ready, self._sending, *(lane.waiting for lane in self._lanes))

    def _compact(self) -> None:
        """Remove streams without output, which a peer could make faster than it reads."""
        self._cleared = 0
        for queue in self._queues():
            if not queue:
                continue
            streams = list(queue)
            queue.clear()
            for stream in streams:
                if stream.frames:
                    queue.append(stream)
                else:
                    stream.is_ready = False
