"""BatchTimer: when a batch is due, by size or by time. Pure: it counts."""

from dataclasses import dataclass, field
from enum import Enum


class TimerAction(Enum):
    """What to do with the timer."""

    KEEP = "keep it as it is"
    START = "start it"
    STOP = "stop it"


@dataclass(slots=True, eq=False, repr=False)
class BatchTimer:
    """Decides about batches of at most *size* elements, none of which waits longer than the timer.

    Each method is an event and returns what to do with the timer. Afterwards, `batch_size` says how
    many elements to emit now, and `emitted` records that it was done.
    """

    size: int
    held: int = field(default=0, init=False)
    """How many elements wait."""
    _is_due: bool = field(default=False, init=False)
    _is_ended: bool = field(default=False, init=False)
    _is_running: bool = field(default=False, init=False)

    def add(self, count: int) -> TimerAction:
        """*count* more elements wait."""
        self.held += count
        return self._adjust()

    def fired(self) -> TimerAction:
        """The timer has fired: the waiting elements are due."""
        self._is_running, self._is_due = False, self.held > 0
        return self._adjust()

    def end(self) -> TimerAction:
        """No more elements will arrive."""
        self._is_ended = True
        return self._adjust()

    def batch_size(self, demand: int) -> int:
        """How many elements to emit now as one batch, with *demand* for that many batches."""
        if demand < 1 or not (self._is_due or self._is_ended or self.held >= self.size):
            return 0
        return min(self.held, self.size)

    def emitted(self, count: int) -> TimerAction:
        """A batch of *count* elements was emitted."""
        self.held -= count
        self._is_due = False
        # The elements left are younger than those emitted, so their time starts now.
        was_running, self._is_running = self._is_running, False
        action = self._adjust()
        return TimerAction.STOP if was_running and action is TimerAction.KEEP else action

    def _adjust(self) -> TimerAction:
        is_emitted_now = self._is_due or self._is_ended or self.held >= self.size
        needs_timer = self.held > 0 and not is_emitted_now
        if needs_timer == self._is_running:
            return TimerAction.KEEP
        self._is_running = needs_timer
        return TimerAction.START if needs_timer else TimerAction.STOP
