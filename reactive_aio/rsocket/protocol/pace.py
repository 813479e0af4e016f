"""Pace: what a peer may let this side do for nothing, in seconds of its time.

A request that is cancelled before its first element, or whose deadline passes before, has made this
side begin a handler in vain. A keepalive asks for an answer. A correct peer may send both, and one
that sends more than a second's worth is not ended for it, but read more slowly: nothing is read
until the time that it has spent is over. So its own requests wait, and nobody else's.
"""

from typing import Final

RESET: Final = 1 / 1000
"""What a request costs that was in vain: a thousand of them a second are read."""
KEEPALIVE: Final = 1 / 50
"""What the answer to a keepalive costs: the interval of a peer cannot be shorter for long."""
_BURST: Final = 1.0
"""How much may be spent at once: a thousand requests, fifty keepalives."""
_LONGEST: Final = 1.0
"""How long nothing is read at most: a peer would take a longer silence for the end."""
_SHORTEST: Final = 0.001


class Pace:
    """What one peer has spent; it gets a second of it back in each second."""

    __slots__ = ("_spent", "_updated_at")

    def __init__(self) -> None:
        self._spent = self._updated_at = 0.0

    def spend(self, cost: float, now: float) -> None:
        """Count *cost*."""
        left = max(0.0, self._spent - (now - self._updated_at))
        self._spent = min(left + cost, _BURST + _LONGEST)
        self._updated_at = now

    @property
    def may_be_owed(self) -> bool:
        """Whether `owed` has to be asked."""
        return self._spent > _BURST

    def owed(self, now: float) -> float:
        """For how many seconds nothing is to be read."""
        owed = self._spent - (now - self._updated_at) - _BURST
        if owed < _SHORTEST:
            self.spend(0.0, now)
            return 0.0
        return owed
