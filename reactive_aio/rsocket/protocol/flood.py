"""What a peer may let this side do for nothing, and what happens to one that lets it do more.

Some frames end the connection, since a correct peer sends few of them:

- Frames that no correct peer sends: of an unknown kind, on streams that were never opened, a stream
  id used again, elements beyond demand. A peer with a defect sends some of them.
- Frames that arrive late: the peer sent them before it knew that their stream had ended. Elements
  are limited by the credit that was left; demand, cancellations and fragments by their rate.
- Requests that are cancelled by the bytes that bring them. A correct peer sends a few, but a peer
  that sends nothing else makes this side start handlers in vain.

Others a correct peer may send as often as it likes. A request that is cancelled before its first
element, or whose deadline passes before, has made this side begin a handler in vain. A keepalive
asks for an answer. A peer that sends more than a second's worth of these is read more slowly:
nothing is read until the time that it has spent is over. So its own requests wait, and nobody
else's.

Everything else is useful, however much of it arrives: a request beyond a limit is rejected by
itself, and a cancellation ends a stream.
"""

from typing import Final

from .errors import ProtocolError
from .frames import PayloadFrame
from .limits import Limits
from .streams import Stream, Streams

RESET: Final = 1 / 1000
"""What a request costs that was in vain: a thousand of them a second are read."""
KEEPALIVE: Final = 1 / 50
"""What the answer to a keepalive costs: the interval of a peer cannot be shorter for long."""
_BURST: Final = 1.0
"""How much may be spent at once: a thousand requests, fifty keepalives."""
_LONGEST: Final = 1.0
"""How long nothing is read at most: a peer would take a longer silence for the end."""
_SHORTEST: Final = 0.001
_MAX_EXPECTED: Final = 1 << 20
_RESETS: Final = 10
_LATE: Final = 100


class Bucket:
    """Fills with what a peer does for nothing, and drains by *rate* in each second."""

    __slots__ = ("_rate", "_updated_at", "level")

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._updated_at = 0.0
        self.level: float = 0.0
        """How full it was when it was last filled."""

    def left(self, now: float) -> float:
        """How full it is."""
        return max(0.0, self.level - (now - self._updated_at) * self._rate)

    def fill(self, amount: float, now: float) -> None:
        self.level = self.left(now) + amount
        self._updated_at = now

    def exceeded_by_one(self, now: float) -> bool:
        """Count one frame; whether there were more of them than drain in a second."""
        self.fill(1, now)
        return self.level > self._rate

    def useful(self, count: int = 1) -> None:
        """Count useful frames, each of which makes up for a useless one."""
        if self.level:  # rarely
            self.level = max(0.0, self.level - count)


class FloodGuard:
    """Counts what one peer sends; the methods that count raise `ProtocolError` if it is a flood."""

    __slots__ = (
        "_expected", "_late", "_oversized", "_resets", "_spent", "_streams", "_zero_requests_left",
        "last_id_before", "useless",
    )  # fmt: skip

    def __init__(self, limits: Limits, streams: Streams) -> None:
        limit = limits.max_useless
        self._streams = streams
        self.last_id_before: int = 0
        """The highest id of the peer before the bytes that are being read: what those before have
        requested has begun."""
        self.useless: Bucket = Bucket(limit)
        self._resets = Bucket(limit * _RESETS)
        self._late = Bucket(limit * _LATE)
        self._spent = Bucket(1.0)
        self._expected = self._oversized = 0
        self._zero_requests_left = limits.max_zero_requests

    # -- what ends the connection ------------------------------------------------------------------
    def count_useless(self, now: float) -> None:
        """Count a frame that no correct peer sends."""
        if self.useless.exceeded_by_one(now):
            raise ProtocolError("a flood of frames that lead to nothing")

    def count_zero_request(self, now: float) -> None:
        """Count a request for no element."""
        self.count_useless(now)
        self._zero_requests_left -= 1
        if self._zero_requests_left < 0:
            raise ProtocolError("requests for 0 elements, again and again")

    def count_oversized(self, error: ProtocolError) -> None:
        """Count a payload that is too large, by which its stream has ended with *error*."""
        self._oversized += 1
        if self._oversized > 1:
            raise error

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

    def expect(self, count: int) -> None:
        """Excuse *count* elements that may be in flight on a stream that ends now."""
        self._expected = min(self._expected + count, _MAX_EXPECTED)

    # -- what slows the reading --------------------------------------------------------------------
    def spend(self, cost: float, now: float) -> None:
        """Count *cost* seconds of the peer's time; it gets one of them back in each second."""
        self._spent.fill(cost, now)
        self._spent.level = min(self._spent.level, _BURST + _LONGEST)

    @property
    def may_be_owed(self) -> bool:
        """Whether `owed` has to be asked."""
        return self._spent.level > _BURST

    def owed(self, now: float) -> float:
        """For how many seconds nothing is to be read."""
        owed = self._spent.left(now) - _BURST
        if owed < _SHORTEST:
            self.spend(0.0, now)
            self._spent.level = min(self._spent.level, _BURST)  # what is left is not waited for
            return 0.0
        return owed
