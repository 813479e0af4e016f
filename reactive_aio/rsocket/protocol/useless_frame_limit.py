"""Frames that lead to nothing: a few are ordinary, a flood of them is an attack."""

from typing import Final

__all__ = ("UselessFrameLimit",)

_MOST_SPARE: Final = 1 << 20


class UselessFrameLimit:
    """A bucket that holds *limit* useless frames and runs empty within a second.

    A frame that led somewhere takes one out. What is under way when this side loses interest in a
    stream is not the peer's fault: `allow` makes room for it beforehand.
    """

    __slots__ = ("_at", "_level", "_limit", "_spare")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._level = 0.0
        self._at = 0.0
        self._spare = 0

    def useless(self, now: float) -> bool:
        """Count one; whether there are too many."""
        if self._spare:
            self._spare -= 1
            return False
        self._level = max(0.0, self._level - (now - self._at) * self._limit) + 1
        self._at = now
        return self._level > self._limit

    def useful(self, count: int = 1) -> None:
        if self._level:  # seldom
            self._level = max(0.0, self._level - count)

    def allow(self, count: int) -> None:
        self._spare = min(self._spare + count, _MOST_SPARE)
