"""The floods that end a connection, by what a correct peer may send.

- Frames that no correct peer sends: of an unknown kind, on streams that were never opened, a stream
  id used again, elements beyond demand. A peer with a defect sends some of them.
- Frames that arrive late: the peer sent them before it knew that their stream had ended. Elements
  are limited by the credit that was left; demand, cancellations and fragments by their rate.
- Requests that are cancelled by the bytes that bring them. A correct peer sends a few, but a peer
  that sends nothing else makes this side start handlers in vain.

Everything else is useful, however much of it arrives: a request beyond a limit is rejected by
itself, and a cancellation ends a stream.
"""

from typing import Final

from .errors import ProtocolError
from .frames import PayloadFrame
from .limits import UselessFrameLimit
from .streams import Stream, Streams

_MAX_EXPECTED: Final = 1 << 20
_RESETS: Final = 10
_LATE: Final = 100


class FloodGuard:
    """Counts what one peer sends; each method raises `ProtocolError` if it is a flood."""

    __slots__ = ("_expected", "_late", "_resets", "_streams", "last_id_before", "useless")

    def __init__(self, limit: int, streams: Streams) -> None:
        self._streams = streams
        self.last_id_before: int = 0
        """The highest id of the peer before the bytes that are being read: what those before have
        requested has begun."""
        self.useless: UselessFrameLimit = UselessFrameLimit(limit)
        self._resets = UselessFrameLimit(limit * _RESETS)
        self._late = UselessFrameLimit(limit * _LATE)
        self._expected = 0

    def count_useless(self, now: float) -> None:
        """Count a frame that no correct peer sends."""
        if self.useless.exceeded_by_one(now):
            raise ProtocolError("a flood of frames that lead to nothing")

    def count_late_payload(self, frame: PayloadFrame, now: float) -> None:
        """Count a PAYLOAD on a stream that does not receive."""
        if frame.follows:
            self.count_late(frame.stream_id, now)
        elif self._expected and self._streams.was_opened(frame.stream_id):
            self._expected -= 1
        else:
            self.count_useless(now)

    def count_late(self, stream_id: int, now: float) -> None:
        """Count another frame without effect on a stream, which has ended or never was."""
        if not self._streams.was_opened(stream_id):
            self.count_useless(now)
        elif self._late.exceeded_by_one(now):
            raise ProtocolError("a flood of frames on streams that have ended")

    def count_end(self, stream: Stream, now: float) -> None:
        """Count the cancellation of *stream*, if the same bytes have brought its request."""
        is_reset = stream.id > self.last_id_before and not stream.is_local
        if is_reset and self._resets.exceeded_by_one(now):
            raise ProtocolError("a flood of requests that are cancelled at once")

    def useful(self, count: int = 1) -> None:
        """Count useful frames, each of which makes up for a useless one."""
        self.useless.useful(count)

    def expect(self, count: int) -> None:
        """Excuse *count* elements that may be in flight on a stream that ends now."""
        self._expected = min(self._expected + count, _MAX_EXPECTED)
