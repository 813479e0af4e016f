"""Frames without effect: a few are normal, a flood of them is an attack."""

from typing import Final

__all__ = ("UselessFrameLimit",)

_MAX_EXPECTED: Final = 1 << 20


class UselessFrameLimit:
    """A bucket that holds *limit* useless frames and drains within a second.

    Each useful frame takes one out. Frames in flight when this side cancels a stream are not the
    peer's fault: `expect` excuses them in advance.
    """

    __slots__ = ("_expected", "_level", "_limit", "_updated_at")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._level = 0.0
        self._updated_at = 0.0
        self._expected = 0

    def exceeded_by_one(self, now: float) -> bool:
        """Count one useless frame; whether the limit is exceeded."""
        if self._expected:
            self._expected -= 1
            return False
        self._level = max(0.0, self._level - (now - self._updated_at) * self._limit) + 1
        self._updated_at = now
        return self._level > self._limit

    def useful(self, count: int = 1) -> None:
        """Count useful frames."""
        if self._level:  # rarely
            self._level = max(0.0, self._level - count)

    def expect(self, count: int) -> None:
        """Excuse *count* useless frames that are in flight."""
        self._expected = min(self._expected + count, _MAX_EXPECTED)
