"""Collector: when a batch is due, by number or by time. Pure; it sees counts only."""

from enum import Enum

__all__ = ("BatchTimer", "TimerAction")


class TimerAction(Enum):
    """What to do with the timer."""

    LEAVE = "leave it as it is"
    START = "start it"
    STOP = "stop it"


class BatchTimer:
    """Decides about batches of at most *size* elements, none of them older than one timer.

    Every method is something that happened, and returns what to do with the timer; then `batch`
    says how many elements to hand over now, and `handed_over` is told that it was done.
    """

    __slots__ = ("_due", "_ended", "_running", "held", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.held = 0
        """How many elements wait."""
        self._due = False
        self._ended = False
        self._running = False

    def add(self, count: int) -> TimerAction:
        """*count* more elements wait."""
        self.held += count
        return self._adjust()

    def rang(self) -> TimerAction:
        """The timer has gone off: what waits is due."""
        self._running, self._due = False, self.held > 0
        return self._adjust()

    def ended(self) -> TimerAction:
        """No more elements will come."""
        self._ended = True
        return self._adjust()

    def batch(self, demand: int) -> int:
        """How many elements to hand over, as one batch, with *demand* for so many batches."""
        if demand < 1 or not (self._due or self._ended or self.held >= self.size):
            return 0
        return min(self.held, self.size)

    def handed_over(self, count: int) -> TimerAction:
        """A batch of *count* elements has gone."""
        self.held -= count
        self._due = False
        if self._running:
            # What is left, if anything, is younger than what has gone.
            self._running = False
            return TimerAction.STOP if not self._needed() else self._started()
        return self._adjust()

    def _needed(self) -> bool:
        return self.held > 0 and not (self._due or self._ended or self.held >= self.size)

    def _started(self) -> TimerAction:
        self._running = True
        return TimerAction.START

    def _adjust(self) -> TimerAction:
        needed = self._needed()
        if needed and not self._running:
            return self._started()
        if self._running and not needed:
            self._running = False
            return TimerAction.STOP
        return TimerAction.LEAVE
