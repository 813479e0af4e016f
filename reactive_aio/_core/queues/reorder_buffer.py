"""ReorderBuffer: results of concurrent work, in order, and how far the work may run ahead. Pure."""

from collections import deque
from typing import Generic, TypeVar

R = TypeVar("R")


class ReorderBuffer(Generic[R]):
    """Tickets for work in progress, and its results until they are taken.

    Work in progress and waiting results are at most *limit* together. Results that may be emitted
    at once (`open_demand` of them) do not count. If *ordered*, results are ready in the order of
    their tickets; a result that waits for an earlier one counts.
    """

    __slots__ = ("_early", "_most_ready", "_next", "_open_demand", "_tickets", "is_ordered",
                 "limit", "ready", "running")  # fmt: skip

    def __init__(self, limit: int, *, ordered: bool) -> None:
        self.limit: int = limit
        self.is_ordered: bool = ordered
        self._tickets = 0  # issued in total
        self._next = 0  # the ticket whose result is ready next
        self._early: dict[int, R | None] = {}
        self._open_demand = 0
        self._most_ready = limit
        """With how many ready results a ticket that ends may be followed by another."""
        self.running: int = 0
        """How many tickets have no result yet."""
        self.ready: deque[R] = deque()
        """Results that can be taken."""

    @property
    def issued(self) -> int:
        """How many tickets were issued in total."""
        return self._tickets

    @property
    def held(self) -> int:
        """How many results were not taken."""
        return len(self.ready) + len(self._early)

    @property
    def open_demand(self) -> int:
        """How many results may be emitted at once; set by the owner."""
        return self._open_demand

    @open_demand.setter
    def open_demand(self, count: int) -> None:
        self._open_demand = count
        self._count()

    def _count(self) -> None:
        """Derive what `exchange` looks at, which runs for each element."""
        self._most_ready = self._open_demand + self.limit - self.running - len(self._early)

    @property
    def room(self) -> int:
        """How many more tickets may be issued now."""
        excess = len(self.ready) - self._open_demand
        return self.limit - self.running - len(self._early) - (excess if excess > 0 else 0)

    def start(self) -> int:
        """Start one piece of work; return its ticket."""
        self.running += 1
        self._most_ready -= 1
        ticket = self._tickets
        self._tickets = ticket + 1
        return ticket

    def finish(self, ticket: int, result: R | None) -> bool:
        """The work of *ticket* has ended; with a *result* of None, nothing is emitted for it.

        Return whether another ticket may be issued now.
        """
        self.running -= 1
        ready = self.ready
        if self.is_ordered and ticket != self._next:
            self._early[ticket] = result
        else:
            self._next = ticket + 1
            if result is not None:
                ready.append(result)
            early = self._early
            while early and self._next in early:
                following = early.pop(self._next)
                self._next += 1
                if following is not None:
                    ready.append(following)
        self._count()
        return self.room > 0

    def exchange(self, ticket: int, result: R | None) -> int:
        """The same as `finish` and, if there is room, `start`: a new ticket, or -1."""
        if ticket != self._next or self._early:
            return self.start() if self.finish(ticket, result) else -1
        self._next = ticket + 1
        ready = self.ready
        if result is not None:
            ready.append(result)
        if len(ready) <= self._most_ready:
            ticket = self._tickets
            self._tickets = ticket + 1
            return ticket
        self.running -= 1
        self._most_ready += 1
        return -1

    def give_back(self, ticket: int) -> None:
        """Nothing is left to do with *ticket*, the last one issued."""
        self.running -= 1
        self._most_ready += 1
        self._tickets = ticket

    def abandon(self, ticket: int) -> list[R]:
        """The work of *ticket* failed or was cancelled; no later result will be ready.

        Return the later results, which are removed.
        """
        self.running -= 1
        early = self._early
        later = [each for each in early if each > ticket] if self.is_ordered else []
        removed = [early.pop(each) for each in later]
        self._count()
        return [each for each in removed if each is not None]

    def clear(self) -> list[R]:
        """Remove and return every result."""
        results = [*self.ready, *(each for each in self._early.values() if each is not None)]
        self.ready.clear()
        self._early.clear()
        self._count()
        return results

    def take(self, at_most: int) -> list[R]:
        """Take up to *at_most* results."""
        ready = self.ready
        if at_most >= len(ready):
            taken = list(ready)
            ready.clear()
            return taken
        return [ready.popleft() for _ in range(at_most)]
