"""AgeMarks: how old the oldest element of a queue is, without a time for each element. Pure.

The elements of a queue are numbered as they arrive. A look notes the time and the number of the
next element to arrive. While the oldest element held has a lower number, it had arrived by then: so
it is at least as old as the earliest such look (docs/decisions/0019).
"""

from collections import deque
from typing import Final

_MOST: Final = 64
"""The most looks that are kept; beyond, one is forgotten that others are close to."""


class AgeMarks:
    """What earlier looks at one queue have noted."""

    __slots__ = ("_marks",)

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()

    def look(self, oldest: int, following: int, now: float) -> float | None:
        """For how many seconds, at least, the element with the number *oldest* is held.

        *following* is the number of the next element to arrive: None if that is *oldest*, since
        then the queue is empty. An element that has arrived since the last look is 0 seconds old.
        """
        marks = self._marks
        while marks and marks[0][1] <= oldest:
            marks.popleft()
        if oldest >= following:
            marks.clear()
            return None
        if not marks or marks[-1][1] < following:
            if len(marks) == _MOST:
                del marks[self._most_superfluous()]
            marks.append((now, following))
        return now - marks[0][0]

    def _most_superfluous(self) -> int:
        """Which look, but for the first and the last one, leaves the smallest gap."""
        times = [at for at, _ in self._marks]
        return min(range(1, _MOST - 1), key=lambda i: times[i + 1] - times[i - 1])
