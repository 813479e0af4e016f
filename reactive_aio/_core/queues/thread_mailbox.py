"""A mailbox: a bounded queue between any number of threads and the loop. Pure, but for its lock."""

from collections import deque
from threading import Lock
from typing import Generic, TypeVar

from .bounded_queue import Emission

__all__ = ("ThreadMailbox",)

T = TypeVar("T")


class ThreadMailbox(Generic[T]):
    """Threads put, the loop looks and takes. Who fills an empty one must wake the loop."""

    __slots__ = ("_closed", "_held", "_lock", "capacity")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._held: deque[T] = deque()
        self._lock = Lock()
        self._closed = False

    def __len__(self) -> int:
        return len(self._held)

    def put(self, element: T) -> tuple[Emission, bool]:
        """Return what became of *element*, and whether the loop must be woken."""
        with self._lock:
            if self._closed:
                return Emission.ENDED, False
            if len(self._held) >= self.capacity:
                return Emission.REFUSED, False
            self._held.append(element)
            return Emission.ACCEPTED, len(self._held) == 1

    def first(self) -> T:
        """The element to take next."""
        return self._held[0]

    def remove_first(self) -> None:
        """Take it."""
        with self._lock:
            self._held.popleft()

    def close(self) -> None:
        """Take no more in."""
        with self._lock:
            self._closed = True

    def discard(self) -> int:
        """Drop what is here, and take no more in; return how many were dropped."""
        with self._lock:
            self._closed = True
            count = len(self._held)
            self._held.clear()
            return count
