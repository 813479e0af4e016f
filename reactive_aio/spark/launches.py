"""Which partitions are computed next: as many as demand covers, in jobs that grow. Pure.

A job costs some 14 ms whatever it computes, so several partitions share one; but what a job
computes must have been asked for, and waits in the driver's JVM until it is read. So the first jobs
are of one partition each. They show how many elements a partition has, and how many bytes; from
then on a job is as large as demand, *largest* and the memory allow, and at most twice the one
before. If all is wanted, it is at most half of what is left, as Spark has nothing to compute while
the last rows are read. Record batches are small as long as nobody knows how large a row is.
"""

from dataclasses import dataclass
from math import ceil, inf
from typing import Final, NamedTuple

__all__ = ("Launches", "Sizes", "Window")

ROOM: Final = 32 << 20
"""Bytes that a job of more than one partition should leave waiting in the JVM, at most."""
_BATCH: Final = 1 << 20  # bytes of a record batch that may have more rows than the least, about
_SINGLE: Final = 2  # jobs of one partition, before they grow
_LAST: Final = 4  # partitions: a job of fewer is not worth its while
_BLIND: Final = 2  # jobs that may join another one before it is known how large a partition is


class Sizes(NamedTuple):
    """How many rows a record batch has: the least that are worth their while, and the most."""

    least: int
    most: int


@dataclass(eq=False, slots=True)
class Window:
    """The partitions of one job, in batches of so many rows, and what was read of them."""

    start: int
    stop: int
    batch: int
    elements: int = 0
    size: int = 0

    @property
    def partitions(self) -> int:
        return self.stop - self.start


class Launches:
    """Cuts *partitions* into windows, in their order."""

    __slots__ = ("_batches", "_flying", "_launched", "_next", "_row", "_weight", "_wide",
                 "largest", "partitions")  # fmt: skip

    def __init__(self, partitions: int, *, largest: int, batches: Sizes) -> None:
        self.partitions: int = partitions
        self.largest: int = largest
        self._batches = batches
        self._next = 0
        self._launched = 0  # jobs
        self._flying: dict[Window, None] = {}
        self._wide: float | None = None  # elements of a partition, as far as is known
        self._weight = 0.0  # bytes of a partition
        self._row = 0.0  # bytes of an element, where they were largest

    @property
    def exhausted(self) -> bool:
        """Whether every partition has been launched."""
        return self._next >= self.partitions

    @property
    def flying(self) -> int:
        """How many windows were launched and have not been read to their end."""
        return len(self._flying)

    def launch(self, outstanding: float, ahead: int) -> Window | None:
        """Return the next window, or None if demand does not call for one yet.

        *outstanding* is what was requested and not delivered; *ahead* how many windows may be
        under way when this one is added to them. Unbounded demand is infinite.
        """
        if self.exhausted or self.flying > (ahead if self._weight else min(ahead, _BLIND)):
            return None
        uncovered = outstanding if outstanding == inf else outstanding - self._expected()
        if uncovered <= 0:
            return None
        stop = min(self.partitions, self._next + self._size(uncovered))
        if self._flying and self._waiting(stop - self._next) > (1 + ahead) * ROOM:
            return None
        window = Window(self._next, stop, self._batch())
        self._next = stop
        self._launched += 1
        self._flying[window] = None
        return window

    def finish(self, window: Window) -> None:
        """*window* has been read to its end: learn from it."""
        del self._flying[window]
        # The largest there was: an expectation that is too low would launch what nobody wants.
        self._wide = max(self._wide or 0.0, window.elements / window.partitions)
        self._weight = max(self._weight, window.size / window.partitions)
        if window.elements:
            self._row = max(self._row, window.size / window.elements)

    def _expected(self) -> float:
        """How many elements are still to come of the windows under way, at least as a guess."""
        if self._wide is None:
            return inf if self._flying else 0.0
        return sum(
            max(0.0, window.partitions * self._wide - window.elements) for window in self._flying
        )

    def _waiting(self, more: int) -> float:
        """How many bytes may wait in the JVM if *more* partitions are launched."""
        return self._weight * (more + sum(window.partitions for window in self._flying))

    def _batch(self) -> int:
        """How many rows the next record batches have."""
        least, most = self._batches
        return min(most, max(least, int(_BATCH / self._row))) if self._row else least

    def _size(self, uncovered: float) -> int:
        grown = 1 << max(0, self._launched + 1 - _SINGLE)
        size = min(grown, self.largest)
        if self._wide:
            size = ceil(min(uncovered / self._wide, size))
        if self._weight:
            size = min(size, int(ROOM / self._weight))
        if uncovered == inf:
            size = min(size, max(_LAST, ceil((self.partitions - self._next) / 2)))
        return max(1, size)
