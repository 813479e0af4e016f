"""The rows that a streaming query may still ask for again. Pure.

Rows are numbered from the beginning of the flow. Spark asks for what there is behind a number, has
its tasks read a range of them, as often as it likes, and commits what it will not ask for again.
"""

from typing import Any

from ...errors import ReactiveError

__all__ = ("Replay", "ReplayLost")


class ReplayLost(ReactiveError):
    """Rows were asked for that are not kept any more, or that never were."""


class Replay:
    """Holds at most *bound* rows, and says how many more are to be requested of the flow."""

    def __init__(self, first: int, bound: int) -> None:
        self.first: int = first
        """The number of the oldest row that is held."""
        self.bound: int = bound
        self._rows: list[Any] = []
        self._requested = first
        self.ended: bool = False
        self.error: BaseException | None = None

    @property
    def stop(self) -> int:
        """One more than the number of the newest row."""
        return self.first + len(self._rows)

    def want(self, start: int, limit: int) -> int:
        """Return how many rows to request, so that *limit* of them come behind *start*."""
        self._check(start, start)
        more = self._reach(start, limit) - self._requested
        if more <= 0 or self.ended:
            return 0
        self._requested += more
        return more

    def enough(self, start: int, limit: int) -> bool:
        """Whether all is here that can be had at a time."""
        return self.ended or self.stop >= self._reach(start, limit)

    def until(self, start: int, limit: int) -> int:
        """Where the rows end that are given for *limit* behind *start*."""
        return max(start, min(start + limit, self.stop))

    def _reach(self, start: int, limit: int) -> int:
        # Half of the room at a time: Spark commits a batch when it knows of the next one.
        return min(start + min(limit, max(1, self.bound // 2)), self.first + self.bound)

    def add(self, row: Any) -> None:
        self._rows.append(row)

    def read(self, start: int, stop: int) -> list[Any]:
        self._check(start, stop)
        return self._rows[start - self.first : stop - self.first]

    def commit(self, stop: int) -> None:
        """Drop the rows before *stop*."""
        if stop > self.first:
            del self._rows[: stop - self.first]
            self.first = stop

    def _check(self, start: int, stop: int) -> None:
        if start < self.first:
            raise ReplayLost(
                f"rows from number {start} on were asked for, and those before {self.first} have "
                "been committed and dropped: another query has read them, or the same one with "
                "another checkpoint. Serve the flow once for each query."
            )
        if stop > self.stop:
            raise ReplayLost(
                f"rows up to number {stop} were asked for, and this flow has sent {self.stop}: the "
                "checkpoint is of a flow that has ended. Serve one that goes on behind the last "
                "row, with serve_flow(..., first=…), or begin with a new checkpoint."
            )
