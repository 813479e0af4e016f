"""CommitTracker: acknowledgements in any order become commits in order, by partition. Pure.

A log keeps one position for each partition: everything up to it is done. So an element that is
acknowledged waits until all elements before it in its partition are; then its position is ready to
be committed. Elements are added in the order of the log, so positions are never compared.

A partition may be taken from a reader and come back later, when somebody else has committed
further: its *generation* is another one then. What was read before still holds back what follows,
as nobody can tell whether it is done elsewhere; but its position is not committed any more, so that
no commit goes back.

=========================  =====================================================
state of an element        next
=========================  =====================================================
open                       done, when it is acknowledged
done, one before is open   passed, when that one is done
passed                     none: it no longer counts; its position may be taken
=========================  =====================================================
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

P = TypeVar("P")


@dataclass(slots=True, eq=False)
class Entry(Generic[P]):
    """An element of a log."""

    partition: Hashable
    position: P
    generation: Hashable = None
    is_done: bool = False


@dataclass(slots=True, eq=False)
class _Partition:
    entries: deque[Entry[Any]] = field(default_factory=deque[Entry[Any]])
    """The elements that are open, and those after them."""
    generation: Hashable = None
    """That of the last element."""
    passed: Entry[Any] | None = None
    """The last element of it that was passed and whose position was not taken."""


class CommitTracker(Generic[P]):
    """The elements of a log whose positions are not committed yet."""

    __slots__ = ("_partitions", "held", "uncommitted")

    def __init__(self) -> None:
        self._partitions: dict[Hashable, _Partition] = {}
        self.held: int = 0
        """How many elements are open or wait for one that is."""
        self.uncommitted: int = 0
        """How many elements were passed since positions were taken."""

    def add(self, partition: Hashable, position: P, generation: Hashable = None) -> Entry[P]:
        """The next element of a partition, read in *generation* of it."""
        entry = Entry(partition, position, generation)
        found = self._partitions.get(partition)
        if found is None:
            found = self._partitions[partition] = _Partition()
        if generation != found.generation:
            found.generation, found.passed = generation, None
        found.entries.append(entry)
        self.held += 1
        return entry

    def done(self, entry: Entry[P]) -> int:
        """An element is acknowledged. Return how many elements are passed by that."""
        entry.is_done = True
        partition = self._partitions[entry.partition]
        entries, before = partition.entries, self.held
        while entries and entries[0].is_done:
            first = entries.popleft()
            if first.generation == partition.generation:
                partition.passed = first
            self.held -= 1
        count = before - self.held
        self.uncommitted += count
        return count

    def take(self) -> dict[Any, P]:
        """The positions to commit, by partition: of those that have a new one."""
        positions = {
            name: each.passed.position
            for name, each in self._partitions.items()
            if each.passed is not None
        }
        self.uncommitted = 0
        # A partition without elements is forgotten, so that their number needs no bound.
        self._partitions = {name: each for name, each in self._partitions.items() if each.entries}
        for each in self._partitions.values():
            each.passed = None
        return positions
