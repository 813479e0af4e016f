"""The rows that a streaming query may read again. No I/O.

Rows are numbered from the beginning of the flow. Spark asks how many rows there are after a number,
has its tasks read a range of them, as often as necessary, and commits the rows that it will not
read again.
"""

from typing import Any

from ...errors import ReactiveError


class RowsUnavailable(ReactiveError):
    """The requested rows have been dropped, or do not exist yet."""


class ReplayLog:
    """Holds at most *capacity* rows, and computes how many more are needed."""

    def __init__(self, first: int, capacity: int) -> None:
        self.first: int = first
        """The number of the oldest row that is held."""
        self.capacity: int = capacity
        self._rows: list[Any] = []
        self.is_done: bool = False
        """Whether the flow has ended."""

    @property
    def stop(self) -> int:
        """One more than the number of the newest row."""
        return self.first + len(self._rows)

    def missing(self, start: int, limit: int) -> int:
        """Return how many rows have yet to arrive for *limit* rows from *start* on."""
        self._require(start, start)
        return 0 if self.is_done else max(0, self._target(start, limit) - self.stop)

    def end_of(self, start: int, limit: int) -> int:
        """Return the end of the rows that are available for *limit* rows from *start* on."""
        return max(start, min(start + limit, self.stop))

    def _target(self, start: int, limit: int) -> int:
        # Half of the capacity: Spark commits a micro-batch when it knows the end of the next one.
        return min(start + min(limit, max(1, self.capacity // 2)), self.first + self.capacity)

    def add(self, rows: list[Any]) -> None:
        """Rows have arrived."""
        self._rows += rows

    def read(self, start: int, stop: int) -> list[Any]:
        self._require(start, stop)
        return self._rows[start - self.first : stop - self.first]

    def commit(self, stop: int) -> None:
        """Drop the rows before *stop*."""
        if stop > self.first:
            del self._rows[: stop - self.first]
            self.first = stop

    def _require(self, start: int, stop: int) -> None:
        if start < self.first:
            raise RowsUnavailable(
                f"rows from number {start} on were requested, and those before {self.first} have "
                "been committed and dropped: another query has read them, or the same one with "
                "another checkpoint. Serve the flow once for each query."
            )
        if stop > self.stop:
            raise RowsUnavailable(
                f"rows up to number {stop} were requested, and this flow has sent {self.stop}: the "
                "checkpoint is of a flow that has ended. Serve one that continues after the last "
                "row, with serve_flow(..., first=…), or begin with a new checkpoint."
            )
