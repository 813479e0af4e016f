"""MergeAccounting: whose elements are next, and which upstream may send more. Pure: it counts."""

from collections import deque
from typing import Generic, TypeVar

K = TypeVar("K")


class MergeAccounting(Generic[K]):
    """The accounts of several upstreams (*keys*) that are merged into one.

    An element is *waiting* from its arrival until it is taken, *taken* until downstream has
    processed it, and *freed* until its upstream is asked to replace it. What was requested from an
    upstream and is none of these is still in flight. So an upstream that receives a request for
    *prefetch* elements first, and afterwards only what `refill` returns, never has more than
    *prefetch* elements waiting and taken.

    Elements are taken in the order of their arrival. No upstream has more than *prefetch* of them
    in that order, and its next ones join at the end, so every upstream makes progress.
    """

    __slots__ = ("_freed", "_held", "_mark", "_processed", "_taken", "_waiting", "taken", "waiting")

    def __init__(self, prefetch: int) -> None:
        self._mark = max(1, prefetch * 3 // 4)
        self._waiting: deque[tuple[K, int]] = deque()
        self._taken: deque[tuple[K, int]] = deque()
        self._held: dict[K, int] = {}
        self._freed: dict[K, int] = {}
        self.waiting: int = 0
        """How many elements wait, over all upstreams."""
        self._processed = 0
        self.taken: int = 0
        """How many elements were taken in total."""

    def add(self, key: K, count: int) -> None:
        """*count* elements of *key* have arrived, after all that wait."""
        self._waiting.append((key, count))
        self._held[key] = self._held.get(key, 0) + count
        self.waiting += count

    def add_taken(self, key: K, count: int) -> None:
        """*count* elements of *key* were taken without having waited."""
        self._held[key] = self._held.get(key, 0) + count
        self._take(key, count)

    def take(self, at_most: int) -> list[tuple[K, int]]:
        """Take up to *at_most* elements; return the upstreams and their counts, in order."""
        portions: list[tuple[K, int]] = []
        before = self.taken
        while self._waiting and at_most > 0:
            key, count = self._waiting.popleft()
            if count > at_most:
                self._waiting.appendleft((key, count - at_most))
                count = at_most
            at_most -= count
            portions.append((key, count))
            self._take(key, count)
        self.waiting -= self.taken - before
        return portions

    def _take(self, key: K, count: int) -> None:
        self.taken += count
        self._taken.append((key, self.taken))

    def mark_processed(self, processed: int) -> list[K]:
        """The first *processed* of all elements taken are processed; return their upstreams."""
        touched: dict[K, None] = {}
        while self._taken and self._taken[0][1] <= processed:
            key, up_to = self._taken.popleft()
            count, self._processed = up_to - self._processed, up_to
            self._held[key] -= count
            self._freed[key] = self._freed.get(key, 0) + count
            touched[key] = None
        return list(touched)

    def refill(self, key: K) -> int:
        """How many elements to request from *key* now: those freed, once a request pays."""
        freed = self._freed.get(key, 0)
        if freed < self._mark:
            return 0
        self._freed[key] = 0
        return freed

    def held_by(self, key: K) -> int:
        """How many elements of *key* are waiting or taken."""
        return self._held.get(key, 0)

    def forget(self, key: K) -> None:
        """Close the account of *key*, which holds nothing."""
        self._held.pop(key, None)
        self._freed.pop(key, None)
