"""ThreadMailbox: a bounded queue from any number of threads to the loop. Pure, except its lock."""

from collections import deque
from threading import Lock
from typing import Generic, TypeVar

from .bounded_queue import Emission

__all__ = ("ThreadMailbox",)

T = TypeVar("T")


class ThreadMailbox(Generic[T]):
    """Threads `put`; the loop reads and removes. If it was empty, `put` wakes the loop."""

    __slots__ = ("_closed", "_held", "_lock", "capacity")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._held: deque[T] = deque()
        self._lock = Lock()
        self._closed = False

    def __len__(self) -> int:
        return len(self._held)

    def put(self, element: T) -> tuple[Emission, bool]:
        """Return the outcome for *element*, and whether the loop must be woken."""
        with self._lock:
            if self._closed:
                return Emission.ENDED, False
            if len(self._held) >= self.capacity:
                return Emission.REFUSED, False
            self._held.append(element)
            return Emission.ACCEPTED, len(self._held) == 1

    def first(self) -> T:
        """The oldest element."""
        return self._held[0]

    def remove_first(self) -> None:
        """Remove the oldest element."""
        with self._lock:
            self._held.popleft()

    def close(self) -> None:
        """Accept no more elements."""
        with self._lock:
            self._closed = True

    def discard(self) -> int:
        """Drop the elements held and accept no more; return how many were dropped."""
        with self._lock:
            self._closed = True
            count = len(self._held)
            self._held.clear()
            return count
