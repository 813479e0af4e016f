"""Ledger: whose elements come next, and who may be asked for more. Pure; it sees counts only."""

from collections import deque
from typing import Generic, TypeVar

__all__ = ("MergeAccounting",)

K = TypeVar("K")


class MergeAccounting(Generic[K]):
    """The accounts of several upstreams (*keys*) that share one way down.

    An element is *waiting* from its arrival until it is taken, *lent* until downstream has
    processed it, and *freed* until its upstream is asked for another in its place. What was
    requested of an upstream and is none of these is still to come from it. So an upstream that is
    asked for *prefetch* at first, and then only for what `refill` says, never has more than
    *prefetch* elements waiting and lent.

    Elements are taken in the order of their arrival. As nobody has more than *prefetch* of them in
    that queue, and goes to its end with the next ones, nobody waits for others for ever.
    """

    __slots__ = ("_freed", "_holds", "_lent", "_mark", "_settled", "_waiting", "handed", "waiting")

    def __init__(self, prefetch: int) -> None:
        self._mark = max(1, prefetch * 3 // 4)
        self._waiting: deque[tuple[K, int]] = deque()
        self._lent: deque[tuple[K, int]] = deque()
        self._holds: dict[K, int] = {}
        self._freed: dict[K, int] = {}
        self.waiting = 0
        """How many elements wait, of all upstreams together."""
        self._settled = 0
        self.handed = 0
        """How many have been taken since the beginning."""

    def add(self, key: K, count: int) -> None:
        """*count* elements of *key* have come, behind all that wait."""
        self._waiting.append((key, count))
        self._holds[key] = self._holds.get(key, 0) + count
        self.waiting += count

    def take(self, at_most: int) -> list[tuple[K, int]]:
        """Hand over up to *at_most* elements: whose, and how many, in order."""
        portions: list[tuple[K, int]] = []
        before = self.handed
        while self._waiting and at_most > 0:
            key, count = self._waiting.popleft()
            if count > at_most:
                self._waiting.appendleft((key, count - at_most))
                count = at_most
            at_most -= count
            portions.append((key, count))
            self._lend(key, count)
        self.waiting -= self.handed - before
        return portions

    def passed(self, key: K, count: int) -> None:
        """*count* elements of *key* were handed over without having waited."""
        self._holds[key] = self._holds.get(key, 0) + count
        self._lend(key, count)

    def _lend(self, key: K, count: int) -> None:
        self.handed += count
        self._lent.append((key, self.handed))

    def settle(self, processed: int) -> list[K]:
        """The first *processed* of all elements taken have been processed; whose were they?"""
        touched: dict[K, None] = {}
        while self._lent and self._lent[0][1] <= processed:
            key, upto = self._lent.popleft()
            count, self._settled = upto - self._settled, upto
            self._holds[key] -= count
            self._freed[key] = self._freed.get(key, 0) + count
            touched[key] = None
        return list(touched)

    def refill(self, key: K) -> int:
        """How many to ask *key* for now: what was freed, once that is worth a request."""
        freed = self._freed.get(key, 0)
        if freed < self._mark:
            return 0
        self._freed[key] = 0
        return freed

    def holds(self, key: K) -> int:
        """How many elements of *key* wait or are lent."""
        return self._holds.get(key, 0)

    def forget(self, key: K) -> None:
        """Close the account of *key*, which holds nothing."""
        self._holds.pop(key, None)
        self._freed.pop(key, None)
