"""What waits to be sent, and in which order it goes.

Frames of the connection first, then what this side has to say of streams (more, no more, never),
then requests and answers of one element, while they are few, then the others and elements: stream
after stream, a frame's worth each, so that a large payload holds up neither a keepalive nor another
stream.
"""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from .codec import add_length
from .limits import Limits
from .streams import FragmentedPayload, Stream

if TYPE_CHECKING:
    from .resume import ResumeBuffer

__all__ = ("COALESCE_LIMIT", "OutboundQueue")

COALESCE_LIMIT: Final = 32 * 1024
"""How many bytes may wait when a request or answer of one element is added to those that all go at
once, so that streams keep their turn."""


class OutboundQueue:
    """The queues of one connection; `queued` is what is in them, in bytes."""

    __slots__ = (
        "_control",
        "_quantum",
        "_replay",
        "_signals",
        "answers",
        "asks",
        "backlog",
        "prefixed",
        "queued",
        "ready",
        "store",
    )

    def __init__(self, limits: Limits, *, prefixed: bool) -> None:
        self.prefixed: bool = prefixed
        """Whether every frame stands behind its length."""
        self.store: ResumeBuffer | None = None
        """Where what has been sent is kept, in case it must be sent again."""
        self.queued: int = 0
        self.backlog: int = 0
        """The part of it that answers the peer, or asks for more, and is no element."""
        self.asks: dict[int, bytes] = {}
        """Requests for one element, by their stream."""
        self.answers: dict[int, bytes] = {}
        """The same of what answers such requests of the peer."""
        self._quantum = limits.mtu
        self._control: list[bytes] = []
        self._signals: list[bytes] = []
        self._replay: deque[bytes] = deque()
        self.ready: deque[Stream] = deque()
        """Streams that wait for their turn."""

    def __bool__(self) -> bool:
        return self.queued > 0

    @property
    def talks(self) -> bool:
        """Whether a frame of the connection itself waits to be sent."""
        return bool(self._control)

    def wrap(self, frame: bytes) -> bytes:
        return add_length(frame) if self.prefixed else frame

    def control(self, frame: bytes) -> None:
        """Send *frame*, of stream 0, before everything else."""
        self._add(self._control, self.wrap(frame))

    def signal(self, frame: bytes) -> None:
        """Send *frame*, of a stream, before all elements."""
        self._add(self._signals, self.wrap(frame))

    def _add(self, queue: list[bytes], frame: bytes) -> None:
        queue.append(frame)
        self.queued += len(frame)
        self.backlog += len(frame)

    def put(self, stream: Stream, frame: bytes) -> None:
        """Send *frame*, wrapped, in its turn."""
        if stream.frames:
            stream.frames.append(frame)
        else:
            stream.frames = [frame]
        size = len(frame)
        stream.size += size
        self.queued += size
        if not stream.ready:
            stream.ready = True
            self.ready.append(stream)

    def put_all(self, stream: Stream, frames: list[bytes], size: int) -> None:
        """Send *frames*, wrapped, *size* bytes in all, in their turn."""
        if stream.frames:
            stream.frames += frames
        else:
            stream.frames = [*frames]
        stream.size += size
        self.queued += size
        if not stream.ready:
            stream.ready = True
            self.ready.append(stream)

    def put_large(self, stream: Stream, pieces: Iterator[bytes], size: int) -> None:
        """Send the frames that *pieces* makes, each in its turn; *size* is about their sum."""
        stream.frames = [*stream.frames, FragmentedPayload(map(self.wrap, pieces), size)]
        stream.larges += 1
        stream.size += size
        self.queued += size
        if not stream.ready:
            stream.ready = True
            self.ready.append(stream)

    def clear(self, stream: Stream) -> None:
        """Drop what *stream* has not sent yet."""
        if stream.size or stream.frames:
            self.queued -= stream.clear()
        self.queued -= len(self.asks.pop(stream.id, b""))
        self.queued -= len(self.answers.pop(stream.id, b""))

    def replay(self, frames: list[bytes]) -> None:
        """Send *frames* again: they have been sent, and stored, before."""
        self._replay += frames
        self.queued += sum(map(len, frames))

    def lose(self) -> None:
        """The transport is gone: forget frames that concern only it, and those to be replayed."""
        lost = sum(map(len, self._control)) + sum(map(len, self._replay))
        self.queued -= lost
        self.backlog -= sum(map(len, self._control))
        self._control.clear()
        self._replay.clear()

    def forget(self) -> None:
        """Drop everything."""
        for stream in self.ready:
            stream.clear()
            stream.ready = False
        self._control.clear()
        self._signals.clear()
        self._replay.clear()
        self.ready.clear()
        self.asks.clear()
        self.answers.clear()
        self.queued = self.backlog = 0

    def take_control(self) -> list[bytes]:
        """Take the frames of the connection, and no others."""
        out, self._control = self._control, []
        taken = sum(map(len, out))
        self.queued -= taken
        self.backlog -= taken
        return out

    def drain(self, at_most: int, flushed: list[Stream], answered: list[int]) -> list[bytes]:
        """Take frames until they are at least *at_most* bytes.

        Streams of which nothing is left to send are added to *flushed*; those of `answers`, which
        are over with it, to *answered*.
        """
        out = self._control
        self._control = []
        taken = sum(map(len, out)) if out else 0
        if self._replay:
            while self._replay and taken < at_most:
                out.append(self._replay.popleft())
                taken += len(out[-1])
            if self._replay:  # what is new goes behind what is old
                self.queued -= taken
                self.backlog = sum(map(len, self._signals))
                return out
        tracked = len(out)
        if self._signals:
            out += self._signals
            taken += sum(map(len, self._signals))
            self._signals = []
        self.backlog = 0
        if self.asks:
            taken += self._all(self.asks, out)
            self.asks = {}
        if self.answers:
            taken += self._all(self.answers, out)
            answered += self.answers
            self.answers = {}
        self.queued -= taken
        if self.ready:
            self._turns(at_most - taken, out, flushed)
        if self.store is not None:
            for frame in out[tracked:]:
                self.store.add(frame, len(frame) - 3 if self.prefixed else len(frame))
        return out

    @staticmethod
    def _all(frames: dict[int, bytes], out: list[bytes]) -> int:
        """Add all *frames* to *out*; how many bytes they are."""
        out += frames.values()
        return sum(map(len, frames.values()))

    def _turns(self, room: int, out: list[bytes], flushed: list[Stream]) -> None:
        ready, quantum, before = self.ready, self._quantum, room
        while ready and room > 0:
            stream = ready.popleft()
            size = stream.size
            if size <= quantum and not stream.larges:
                stream.started = True
                stream.ready = False
                stream.size = 0
                room -= size
                out += stream.frames  # type: ignore[arg-type]  # none of them is Large
                stream.frames = ()
                flushed.append(stream)
                continue
            room -= stream.take(out, quantum)
            if stream.frames:
                ready.append(stream)
            else:
                stream.ready = False
                flushed.append(stream)
        self.queued -= before - room
