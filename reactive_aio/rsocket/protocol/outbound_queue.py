"""The output of a connection, and the order in which it is sent.

Frames of the connection go first, then signals of streams (REQUEST_N, CANCEL, ERROR), then requests
and responses that are single frames, then everything else in a `Rotation` of the streams: a large
payload delays neither a keepalive nor another stream.
"""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from .codec import LENGTH_SIZE, add_length, encode_demand
from .limits import Limits
from .rotation import Rotation
from .streams import FragmentedPayload, Stream

if TYPE_CHECKING:
    from .resume import ResumeBuffer

COALESCE_LIMIT: Final = 32 * 1024
"""Requests and responses that are single frames are all sent at once, ahead of the rotation of
streams, only while less than this is queued."""


class OutboundQueue:
    """The queues of one connection: frames ready to be sent, each after its length."""

    def __init__(self, limits: Limits) -> None:
        self.resume_buffer: ResumeBuffer | None = None
        """Keeps what has been sent, in case it must be sent again."""
        self.queued_bytes: int = 0
        self.backlog: int = 0
        """The part of it that answers the peer and is not an element."""
        self.requests: dict[int, bytes] = {}
        """Requests for one element that are single frames, by their streams."""
        self.responses: dict[int, bytes] = {}
        """Responses that are single frames, by their streams."""
        self.rotation: Rotation = Rotation(limits)
        """The streams with output of their own."""
        self.control: list[bytes] = []
        """Frames of the connection itself."""
        self._signals: list[bytes] = []
        self._replay: deque[bytes] | tuple[()] = ()

    def __bool__(self) -> bool:
        return self.queued_bytes > 0

    @property
    def is_plain(self) -> bool:
        """Whether nothing else is queued than what is in `requests` and `responses`."""
        others = self.control or self._signals or self._replay or self.resume_buffer
        return not others and not (self.rotation.ready or self.rotation.fragmented_bytes)

    def put_control(self, frame: bytes) -> None:
        """Queue *frame*, of stream 0, before everything else."""
        self._add(self.control, add_length(frame))

    def put_signal(self, frame: bytes) -> None:
        """Queue *frame*, a signal of a stream, before all elements."""
        self._add(self._signals, add_length(frame))

    def put_demand(self, stream_id: int, n: int) -> None:
        """Queue a REQUEST_N before all elements."""
        self._add(self._signals, encode_demand(stream_id, n))

    def _add(self, queue: list[bytes], frame: bytes) -> None:
        queue.append(frame)
        self.queued_bytes += len(frame)
        self.backlog += len(frame)

    @property
    def overdue(self) -> int:
        """The backlog without the answer that was queued last.

        One answer, however large, is still to be read by a peer that has only just asked for it.
        """
        return self.backlog - (len(self.control[-1]) if self.control else 0)

    def put(self, stream: Stream, frame: bytes) -> None:
        """Queue *frame*, of *stream*, which has its length."""
        if stream.frames:
            stream.frames.append(frame)
        else:
            stream.frames = [frame]
        self._queued(stream, len(frame))

    def put_all(self, stream: Stream, frames: list[bytes], size: int) -> None:
        """Queue *frames* of *stream*, of *size* bytes together, which have their lengths.

        With a resume buffer, each of *frames* is one frame; else it may be several.
        """
        if stream.frames:
            stream.frames += frames
        else:
            stream.frames = [*frames]
        self._queued(stream, size)

    def put_fragments(self, stream: Stream, fragments: Iterator[bytes], size: int) -> None:
        """Queue frames that *fragments* makes when they are sent; *size* is about their sum."""
        payload = FragmentedPayload(fragments, size, size)
        if not (stream.is_started or stream.frames):
            self.rotation.reserve(payload)
        stream.frames = [*stream.frames, payload]
        stream.fragmented_payloads += 1
        self.rotation.fragmented_bytes += size
        self.rotation.fragmented_count += 1
        self._queued(stream, size)

    def _queued(self, stream: Stream, size: int) -> None:
        stream.queued_bytes += size
        self.queued_bytes += size
        self.rotation.add(stream)

    def clear(self, stream: Stream) -> None:
        """Drop the output of *stream*."""
        if stream.queued_bytes or stream.frames:
            self.queued_bytes -= self.rotation.clear(stream)
        self.drop_request(stream.id)
        self.queued_bytes -= len(self.responses.pop(stream.id, b""))

    def drop_request(self, stream_id: int) -> None:
        """Drop a request that is in `requests`."""
        self.queued_bytes -= len(self.requests.pop(stream_id, b""))

    def replay(self, frames: list[bytes]) -> None:
        """Send *frames* again: they were sent, and stored, before."""
        self._replay = deque([*self._replay, *frames])
        self.queued_bytes += sum(map(len, frames))

    def drop_transport_frames(self) -> None:
        """The transport has ended: drop frames that concern only it, and frames to be replayed."""
        control = sum(map(len, self.control))
        self.queued_bytes -= control + sum(map(len, self._replay))
        self.backlog -= control
        self.control.clear()
        self._replay = ()

    def drop_all(self) -> None:
        self.rotation.drop_all()
        self.control.clear()
        self._signals.clear()
        self._replay = ()
        self.requests.clear()
        self.responses.clear()
        self.queued_bytes = self.backlog = 0

    def take_control(self) -> list[bytes]:
        """Take the frames of the connection, and no others."""
        out, self.control = self.control, []
        taken = sum(map(len, out))
        self.queued_bytes -= taken
        self.backlog -= taken
        return out

    def take(self, at_most: int, flushed: list[Stream], responded: list[int]) -> list[bytes]:
        """Take frames until they have at least *at_most* bytes.

        Streams whose output is empty by that are added to *flushed*; streams that ended with a
        response of `responses` to *responded*.
        """
        if self.is_plain:
            out = [*self.requests.values(), *self.responses.values()]
            responded += self.responses
            self.requests, self.responses, self.queued_bytes = {}, {}, 0
            return out
        out, self.control = self.control, []
        taken = sum(map(len, out)) if out else 0
        if self._replay:
            while self._replay and taken < at_most:
                out.append(self._replay.popleft())
                taken += len(out[-1])
            if self._replay:  # new frames follow the old ones
                self.queued_bytes -= taken
                self.backlog = sum(map(len, self._signals))
                return out
        untracked = len(out)
        if self._signals:
            out += self._signals
            taken += sum(map(len, self._signals))
            self._signals = []
        self.backlog = 0
        if self.requests:
            out += self.requests.values()
            taken += sum(map(len, self.requests.values()))
            self.requests = {}
        if self.responses:
            out += self.responses.values()
            taken += sum(map(len, self.responses.values()))
            responded += self.responses
            self.responses = {}
        self.queued_bytes -= taken
        if self.queued_bytes > 0 or self.rotation.ready:
            self.queued_bytes -= self.rotation.take(at_most - taken, out, flushed)
        if self.resume_buffer is not None:
            for frame in out[untracked:]:
                self.resume_buffer.add(frame, len(frame) - LENGTH_SIZE)
        return out
