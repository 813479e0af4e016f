"""How many rows the next Arrow batch of a worker's output has. No I/O."""

from dataclasses import dataclass
from typing import Final

_GROWTH: Final = 8
_BYTES: Final = 4 * 2**20
_SECONDS: Final = 0.5


@dataclass(eq=False, slots=True)
class BatchSize:
    """Grows from one row to *most*, as long as a batch is small and quickly made.

    A batch should be large, since each costs some fixed time. But its rows are objects of Python
    until it is full, so it has some 4 MB at most, by the size of the rows before (an element may
    be a whole record batch); and a query that needs few rows (``limit``) should not wait for
    thousands, so it takes half a second at most, by the time that the rows before took.
    """

    most: int
    rows: int = 1
    """The rows of the next batch."""

    def measure(self, rows: int, size: int, seconds: float) -> None:
        """A batch of *rows* rows had *size* bytes, and took *seconds*."""
        if not rows:
            return
        limits = [self.most, self.rows * _GROWTH]
        if size:
            limits.append(rows * _BYTES // size)
        if seconds > 0:
            limits.append(int(rows * _SECONDS / seconds))
        self.rows = max(1, min(limits))
