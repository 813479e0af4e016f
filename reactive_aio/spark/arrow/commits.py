"""Deliveries of rows: a partition is committed when it was read, and all its rows are acknowledged.

Every method runs on the loop's thread; commits are made on threads.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from ..._core.loop import Future, LoopHandle
from ...delivery import Delivery
from ...errors import WrongLoop
from ..call_threads import CallThreads

Commit = Callable[[int], object]
"""Commits a partition, by its position among those of this subscription. Blocks."""
Number = Callable[[int], int]
"""Returns the number of a partition in the query, by the same position."""
_REMEDY: Final = "call it there, from a thread with loop.call_soon_threadsafe(delivery.ack)"


class PartitionCommits:
    """The partitions of one subscription that are not committed."""

    def __init__(
        self,
        loop_handle: LoopHandle,
        commit: Commit,
        number: Number,
        on_change: Callable[[], object],
    ) -> None:
        """*on_change* is called when a commit has ended."""
        self.loop_handle = loop_handle
        self._commit = commit
        self._number = number
        self._on_change = on_change
        self._threads = CallThreads(loop_handle, "from_dataframe-commit", interrupt=_nothing)
        self._partitions: dict[int, Partition] = {}
        self.pending: int = 0
        """How many commits run."""
        self.error: BaseException | None = None
        """What a commit has failed with that no acknowledgement awaits."""

    def deliver(self, position: int, elements: Iterator[Any], count: int) -> Iterator[Any]:
        """Return deliveries of *elements*, of which there are *count*, of a partition."""
        partition = self._partition(position)
        partition.delivered += count
        return map(partial(RowDelivery, partition), elements)

    def on_read(self, position: int) -> None:
        """A partition was read to its end."""
        partition = self._partition(position)
        partition.is_read = True
        if partition.is_done:
            self.commit(partition, is_awaited=False)

    def _partition(self, position: int) -> "Partition":
        found = self._partitions.get(position)
        if found is None:
            found = Partition(self, position, self._number(position))
            self._partitions[position] = found
        return found

    def commit(self, partition: "Partition", *, is_awaited: bool) -> Future[None]:
        """Commit *partition*; the result raises what that raises."""
        del self._partitions[partition.position]
        future: Future[None] = self.loop_handle.create_future()
        self.pending += 1
        work = partial(self._commit, partition.position)
        self._threads.call(work, partial(self._on_committed, future, is_awaited))
        return future

    def _on_committed(
        self, future: Future[None], is_awaited: bool, _: object, error: BaseException | None
    ) -> None:
        self.pending -= 1
        if error is not None and not is_awaited:
            self.error = self.error or error
            error = None
        if not future.done():  # the wait was cancelled
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
        self._on_change()


class Partition:
    """How many rows of a partition were delivered, and how many were acknowledged."""

    __slots__ = ("_commits", "acknowledged", "delivered", "is_read", "number", "position")

    def __init__(self, commits: PartitionCommits, position: int, number: int) -> None:
        self._commits = commits
        self.position: int = position
        self.number: int = number
        self.delivered: int = 0
        self.acknowledged: int = 0
        self.is_read: bool = False

    @property
    def is_done(self) -> bool:
        return self.is_read and self.acknowledged == self.delivered

    def acknowledge(self, *, is_awaited: bool = True) -> Future[None] | None:
        """A row was processed. If it was the last one, return what is to be awaited."""
        handle = self._commits.loop_handle
        if not handle.is_running_here:
            raise WrongLoop("ack()", _REMEDY, is_closed=handle.is_closed)
        self.acknowledged += 1
        return self._commits.commit(self, is_awaited=is_awaited) if self.is_done else None


class RowDelivery(Delivery[Any]):
    """A row, or a batch of rows. It is not taken back: what is not acknowledged is read again.

    In a flow of `deliveries`, the acknowledgement of a partition's last row awaits the commit.
    Without one, ``ack()`` begins it, and the flow of rows completes when it has ended.
    """

    __slots__ = ("_partition",)

    def __init__(self, partition: Partition, value: Any) -> None:
        super().__init__(value, partition.acknowledge)
        self._partition = partition

    @property
    def origin(self) -> int:
        """The number of the partition."""
        return self._partition.number

    def ack(self) -> None:
        self._settle("ack()", "was acknowledged")
        self._call(partial(self._partition.acknowledge, is_awaited=False))


def _nothing() -> None:
    """A commit is not interrupted."""
