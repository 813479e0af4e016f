"""The record batches of a partition, read on the main thread of the worker."""

import select
from collections.abc import Iterator
from typing import Any

from ...errors import ReactiveError
from .._internals import worker_connection


class TaskAbandoned(ReactiveError, ConnectionError):
    """Spark has ended the task that this worker runs: it was cancelled, or needs no more rows."""


class PartitionInput:
    """Iterates the record batches that Spark sends, up to an end that Spark has confirmed."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
        self._connection = worker_connection()

    def next(self) -> Any:
        """Return the next record batch, or None at the end. Blocks."""
        batch = next(self._batches, None)
        if batch is None:
            # A connection that was closed ends the batches as well. A flow that completed there
            # would have seen a part of the partition only.
            self.require_open()
        return batch

    def __iter__(self) -> Iterator[Any]:
        return iter(self.next, None)

    def require_open(self) -> None:
        """Raise `TaskAbandoned` if Spark has closed the connection to this worker."""
        if self._connection is not None and is_connection_closed(self._connection):
            raise TaskAbandoned(
                "Spark has closed the connection to this worker: the task was cancelled, another "
                "attempt of it has succeeded, or the query needs no more rows"
            )


def is_connection_closed(connection: int) -> bool:
    """Whether the other end of a socket was closed, even if there is more to read from it."""
    if not hasattr(select, "poll"):  # Windows
        return False
    poll = select.poll()
    poll.register(connection, getattr(select, "POLLRDHUP", 0) | select.POLLHUP)
    return bool(poll.poll(0))
