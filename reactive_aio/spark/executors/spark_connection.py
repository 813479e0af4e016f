"""The connection between Spark and the main thread of a worker."""

import select
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ...errors import ReactiveError
from .._internals import worker_output


class TaskAbandoned(ReactiveError, ConnectionError):
    """Spark has ended the task that this worker runs: it was cancelled, or needs no more rows."""


class SparkConnection:
    """Iterates the record batches of a partition, up to an end that Spark has confirmed.

    Where PySpark's file of the connection is not found, as outside of a worker, nothing is known of
    the other end, and results are sent when PySpark's buffer is full.
    """

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
        self._output = worker_output()

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

    def flush(self) -> None:
        """Send what PySpark has buffered: small batches would wait for 64 KB of others."""
        if self._output is not None:
            self._output.flush()

    def require_open(self) -> None:
        """Raise `TaskAbandoned` if Spark has closed the connection."""
        with suppress(OSError, ValueError):  # it has no descriptor, or is closed at this end
            if self._output is None or not is_closed(self._output.fileno()):
                return
        raise TaskAbandoned(
            "Spark has closed the connection to this worker: the task was cancelled, another "
            "attempt of it has succeeded, or the query needs no more rows"
        )


def is_closed(connection: int) -> bool:
    """Whether the other end of a socket was closed, even if there is more to read from it."""
    if not hasattr(select, "poll"):  # Windows
        return False
    poll = select.poll()
    poll.register(connection, getattr(select, "POLLRDHUP", 0) | select.POLLHUP)
    return bool(poll.poll(0))
