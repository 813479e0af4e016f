"""BatchTimer: when a batch is due, by size, by time or by decision. Pure: it counts."""

from collections import deque
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
    open: int = field(default=0, init=False)
    """How many elements the batch has that still grows."""
    _complete: deque[int] = field(default_factory=deque[int], init=False)
    """The sizes of the batches before it, oldest first."""
    _is_due: bool = field(default=False, init=False)
    _is_ended: bool = field(default=False, init=False)
    _is_running: bool = field(default=False, init=False)

    def add(self, count: int) -> TimerAction:
        """*count* more elements wait."""
        self.held += count
        self.open += count
        while self.open >= self.size:
            self._close(self.size)
        return self._adjust()

    def cut(self) -> TimerAction:
        """The batch that grows is complete, if it has an element."""
        if self.open:
            self._close(self.open)
        return self._adjust()

    def _close(self, count: int) -> None:
        self._complete.append(count)
        self.open -= count

    def fired(self) -> TimerAction:
        """The timer has fired: the waiting elements are due."""
        self._is_running, self._is_due = False, self.open > 0
        return self._adjust()

    def end(self) -> TimerAction:
        """No more elements will arrive."""
        self._is_ended = True
        return self._adjust()

    def batch_size(self, demand: int) -> int:
        """How many elements to emit now as one batch, with *demand* for that many batches."""
        if demand < 1:
            return 0
        if self._complete:
            return self._complete[0]
        return self.open if self._is_due or self._is_ended else 0

    def emitted(self) -> TimerAction:
        """The batch was emitted."""
        if self._complete:
            self.held -= self._complete.popleft()
        else:
            self.held = self.open = 0
        self._is_due = False
        # No timer ran while the batch was due: that of the elements left starts now.
        return self._adjust()

    def _adjust(self) -> TimerAction:
        is_emitted_now = self._is_due or self._is_ended or bool(self._complete)
        needs_timer = self.open > 0 and not is_emitted_now
        if needs_timer == self._is_running:
            return TimerAction.KEEP
        self._is_running = needs_timer
        return TimerAction.START if needs_timer else TimerAction.STOP
