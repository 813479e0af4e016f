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

    __slots__ = ("_early", "_is_closed", "_open_demand", "departed", "due", "is_ordered", "limit",
                 "most_ready", "most_ready_alone", "ready", "running", "tickets")  # fmt: skip

    def __init__(self, limit: int, *, ordered: bool) -> None:
        self.limit: int = limit
        self.is_ordered: bool = ordered
        self._early: dict[int, R | None] = {}
        self._open_demand = 0
        self._is_closed = False
        self.tickets: int = 0
        """How many tickets were issued in total."""
        self.due: int = 0
        """The ticket whose result is ready next."""
        self.departed: int = 0
        """How many results were taken or removed, or nothing is emitted for."""
        self.most_ready: int = limit
        """While fewer results are ready, the ticket that is `due` may be followed by another."""
        self.most_ready_alone: int = 0
        """The same while there is one ticket, which may then keep it for the next piece of work."""
        self.running: int = 0
        """How many tickets have no result yet."""
        self.ready: deque[R] = deque()
        """Results that can be taken."""

    @property
    def started(self) -> int:
        """How many pieces of work were started in total."""
        return self.departed + self.held + self.running

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
        """Derive what is looked at for each element."""
        most = 0
        if not self._early and not self._is_closed:
            most = self._open_demand + self.limit - self.running
        self.most_ready = most
        self.most_ready_alone = most if self.running == 1 else 0

    def close(self) -> None:
        """Issue no more tickets."""
        self._is_closed = True
        self._count()

    @property
    def room(self) -> int:
        """How many more tickets may be issued now."""
        if self._is_closed:
            return 0
        excess = len(self.ready) - self._open_demand
        return self.limit - self.running - len(self._early) - (excess if excess > 0 else 0)

    def start(self) -> int:
        """Start one piece of work; return its ticket."""
        self.running += 1
        self._count()
        ticket = self.tickets
        self.tickets = ticket + 1
        return ticket

    def finish(self, ticket: int, result: R | None) -> bool:
        """The work of *ticket* has ended; with a *result* of None, nothing is emitted for it.

        Return whether another ticket may be issued now.
        """
        self.running -= 1
        if self.is_ordered and ticket != self.due:
            self._early[ticket] = result
        else:
            self.due = ticket + 1
            self._add_ready(result)
            early = self._early
            while early and self.due in early:
                self._add_ready(early.pop(self.due))
                self.due += 1
        self._count()
        return self.room > 0

    def _add_ready(self, result: R | None) -> None:
        if result is None:
            self.departed += 1
        else:
            self.ready.append(result)

    def exchange(self, ticket: int, result: R | None) -> int:
        """The same as `finish` and, if there is room, `start`: a new ticket, or -1.

        A pool whose only task has a result appends it to `ready` itself: see `most_ready_alone`.
        """
        count = len(self.ready)
        if count < self.most_ready_alone:
            self._add_ready(result)
            return ticket
        if ticket == self.due and count < self.most_ready:
            self._add_ready(result)
            self.due = ticket + 1
            ticket = self.tickets
            self.tickets = ticket + 1
            return ticket
        return self.start() if self.finish(ticket, result) else -1

    def give_back(self, ticket: int) -> None:
        """Nothing is left to do with *ticket*, the last one issued."""
        self.running -= 1
        self._count()
        self.tickets = ticket

    def abandon(self, ticket: int) -> list[R]:
        """The work of *ticket* failed or was cancelled; no later result will be ready.

        Return the later results, which are removed.
        """
        self.running -= 1
        early = self._early
        later = [each for each in early if each > ticket] if self.is_ordered else []
        removed = [early.pop(each) for each in later]
        self.departed += 1 + len(removed)
        self._count()
        return [each for each in removed if each is not None]

    def clear(self) -> list[R]:
        """Remove and return every result."""
        results = [*self.ready, *(each for each in self._early.values() if each is not None)]
        self.departed += self.held
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
        else:
            taken = [ready.popleft() for _ in range(at_most)]
        self.departed += len(taken)
        return taken
