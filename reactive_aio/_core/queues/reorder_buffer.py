"""Window: how far concurrent work may run ahead of what has been asked for. Pure."""

from collections import deque
from typing import Generic, TypeVar

__all__ = ("ReorderBuffer",)

R = TypeVar("R")


class ReorderBuffer(Generic[R]):
    """Tickets for work in progress, and its results until somebody takes them.

    Work in progress and results that wait are *limit* together at the most; results that may be
    handed over at once (`open` of them) do not count, as they are as good as gone. With *ordered*,
    results are ready in the order of their tickets; one that must wait for an earlier one counts.
    """

    __slots__ = ("_early", "_next", "_tickets", "limit", "open", "ordered", "ready", "running")

    def __init__(self, limit: int, *, ordered: bool) -> None:
        self.limit = limit
        self.ordered = ordered
        self._tickets = 0  # issued
        self._next = 0  # the ticket whose result is ready next
        self._early: dict[int, R | None] = {}
        self.running = 0
        """How many tickets have no result yet."""
        self.ready: deque[R] = deque()
        """Results that can be taken."""
        self.open = 0
        """How many results may be handed over at once; whoever drives this sets it."""

    @property
    def room(self) -> int:
        """How many more tickets may be issued now."""
        beyond = len(self.ready) - self.open
        return self.limit - self.running - len(self._early) - (beyond if beyond > 0 else 0)

    @property
    def empty(self) -> bool:
        """Whether no work is in progress and no result is left."""
        return not (self.running or self._early or self.ready)

    def start(self) -> int:
        """Begin one piece of work: its ticket."""
        self.running += 1
        ticket = self._tickets
        self._tickets = ticket + 1
        return ticket

    def finish(self, ticket: int, result: R | None) -> bool:
        """The work of *ticket* is done; a *result* of None is nothing to hand over.

        Returns whether another ticket may be issued now.
        """
        self.running -= 1
        ready = self.ready
        if self.ordered and ticket != self._next:
            self._early[ticket] = result
        else:
            self._next = ticket + 1
            if result is not None:
                ready.append(result)
            if self._early:
                self._advance()
        beyond = len(ready) - self.open
        return self.limit - self.running - len(self._early) > (beyond if beyond > 0 else 0)

    def abandon(self, ticket: int) -> None:
        """The work of *ticket* failed or was cancelled; nothing behind it will be ready."""
        self.running -= 1
        if self.ordered:
            for late in [each for each in self._early if each > ticket]:
                del self._early[late]

    def _advance(self) -> None:
        early = self._early
        while self._next in early:
            result = early.pop(self._next)
            self._next += 1
            if result is not None:
                self.ready.append(result)

    def take(self, at_most: int) -> list[R]:
        """Take up to *at_most* results."""
        ready = self.ready
        if at_most >= len(ready):
            taken = list(ready)
            ready.clear()
            return taken
        return [ready.popleft() for _ in range(at_most)]
