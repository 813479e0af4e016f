"""Which partitions are computed next: as many as demand covers, in jobs that grow. No I/O.

A job takes some 14 ms however little it computes, so several partitions share one; but a job must
compute no partition without demand, and its rows wait in the driver's JVM until they are read. So
the first jobs have one partition each. They show how many elements a partition has, and how many
bytes; from then on a job is as large as demand, *largest* and the memory allow, and at most twice
as large as the one before. Under unbounded demand it is at most half of the remaining partitions,
since Spark has nothing to compute while the last rows are read. Record batches are small until the
size of a row is known.
"""

from dataclasses import dataclass
from math import ceil, inf
from typing import Final, NamedTuple

__all__ = ("MEMORY_LIMIT", "BatchSizes", "PartitionWindows", "Window")

MEMORY_LIMIT: Final = 32 << 20
"""Bytes that a job of more than one partition may leave waiting in the JVM, approximately."""
_BATCH_BYTES: Final = 1 << 20  # of a record batch that has more rows than the least, about
_SINGLE_JOBS: Final = 2  # jobs of one partition, before they grow
_SMALLEST_LAST: Final = 4  # partitions: near the end, smaller jobs cost more than they save
_UNMEASURED_JOBS: Final = 2  # jobs beside another one, before the size of a partition is known


class BatchSizes(NamedTuple):
    """How many rows a record batch has, at least and at most."""

    least: int
    most: int


@dataclass(eq=False, slots=True)
class Window:
    """The partitions of one job, the rows of its record batches, and what was read of it."""

    start: int
    stop: int
    batch: int
    elements: int = 0
    bytes: int = 0

    @property
    def partitions(self) -> int:
        return self.stop - self.start


class PartitionWindows:
    """Cuts *partitions* into windows, in their order."""

    __slots__ = ("_batch_sizes", "_bytes_per_element", "_bytes_per_partition",
                 "_elements_per_partition", "_in_flight", "_launched", "_next", "largest",
                 "partitions")  # fmt: skip

    def __init__(self, partitions: int, *, largest: int, batch_sizes: BatchSizes) -> None:
        self.partitions: int = partitions
        self.largest: int = largest
        self._batch_sizes = batch_sizes
        self._next = 0  # the first partition that is in no window
        self._launched = 0  # windows
        self._in_flight: dict[Window, None] = {}
        # The largest averages of a window that was read; estimates that are too low would launch
        # windows without demand.
        self._elements_per_partition: float | None = None
        self._bytes_per_partition = 0.0
        self._bytes_per_element = 0.0

    @property
    def is_exhausted(self) -> bool:
        """Whether every partition is in a window."""
        return self._next >= self.partitions

    def launch(self, outstanding: float, ahead: int) -> Window | None:
        """Return the next window, or None if demand does not reach it yet.

        *outstanding* is the undelivered demand, infinite if unbounded; *ahead* is the number of
        windows that may be in flight beside this one.
        """
        others = ahead if self._bytes_per_partition else min(ahead, _UNMEASURED_JOBS)
        if self.is_exhausted or len(self._in_flight) > others:
            return None
        uncovered = outstanding if outstanding == inf else outstanding - self._expected_elements()
        if uncovered <= 0:
            return None
        stop = min(self.partitions, self._next + self._size(uncovered))
        if self._in_flight and self._expected_bytes(stop - self._next) > (1 + ahead) * MEMORY_LIMIT:
            return None
        window = Window(self._next, stop, self._batch())
        self._next = stop
        self._launched += 1
        self._in_flight[window] = None
        return window

    def finish(self, window: Window) -> None:
        """Record that *window* has been read to its end, and measure it."""
        del self._in_flight[window]
        elements = window.elements / window.partitions
        self._elements_per_partition = max(self._elements_per_partition or 0.0, elements)
        self._bytes_per_partition = max(self._bytes_per_partition, window.bytes / window.partitions)
        if window.elements:
            self._bytes_per_element = max(self._bytes_per_element, window.bytes / window.elements)

    def _expected_elements(self) -> float:
        """Estimate how many elements the windows in flight will still bring."""
        each = self._elements_per_partition
        if each is None:
            return inf if self._in_flight else 0.0
        return sum(
            max(0.0, window.partitions * each - window.elements) for window in self._in_flight
        )

    def _expected_bytes(self, partitions: int) -> float:
        """Estimate how many bytes may wait in the JVM with *partitions* more in flight."""
        in_flight = sum(window.partitions for window in self._in_flight)
        return self._bytes_per_partition * (partitions + in_flight)

    def _batch(self) -> int:
        """Return the number of rows of a record batch of the next window."""
        least, most = self._batch_sizes
        if not self._bytes_per_element:
            return least
        return min(most, max(least, int(_BATCH_BYTES / self._bytes_per_element)))

    def _size(self, uncovered: float) -> int:
        """Return the number of partitions of the next window."""
        grown = 1 << max(0, self._launched + 1 - _SINGLE_JOBS)
        size = min(grown, self.largest)
        if self._elements_per_partition:
            size = ceil(min(uncovered / self._elements_per_partition, size))
        if self._bytes_per_partition:
            size = min(size, int(MEMORY_LIMIT / self._bytes_per_partition))
        if uncovered == inf:
            size = min(size, max(_SMALLEST_LAST, ceil((self.partitions - self._next) / 2)))
        return max(1, size)
