"""The time slice of a drain: how long it may run before the event loop gets a turn."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final

TIME_SLICE: Final = 0.002
"""Seconds of work after which a drain yields to the event loop."""
_LARGEST_BATCH: Final = 1024
_CHEAP: Final = TIME_SLICE / 4

_clock: Callable[[], float] = perf_counter


def set_clock(clock: Callable[[], float]) -> Callable[[], float]:
    """Measure every time slice with *clock*, in seconds; return the clock used before."""
    global _clock
    before, _clock = _clock, clock
    return before


@dataclass(slots=True, eq=False)
class TimeSlice:
    """The time slice of one drain. A drain inherits from it, so that its loop reads one object."""

    is_slice_over: bool = field(default=False, init=False)
    slice_checked_at: float = field(default=0.0, init=False)
    slice_end: float = field(default=0.0, init=False)

    def start_slice(self) -> None:
        """Start a slice; the event loop has just run other work."""
        self.is_slice_over = False
        self.slice_checked_at = now = _clock()
        self.slice_end = now + TIME_SLICE

    def check_slice(self) -> bool:
        """Read the clock; return whether the slice is over."""
        self.is_slice_over = _clock() >= self.slice_end
        return self.is_slice_over

    def next_batch_size(self, batch: int) -> int:
        """Read the clock after *batch* elements; return how many to run before the next reading.

        Cheap elements double the batch, so that reading the clock costs nothing; expensive ones
        shrink it, so that even elements of a millisecond each cannot block the loop for long.
        """
        now = _clock()
        took = now - self.slice_checked_at
        self.slice_checked_at = now
        if not self.slice_end:  # the slice starts here
            self.slice_end = now + TIME_SLICE
            return batch
        self.is_slice_over = now >= self.slice_end
        if took < _CHEAP:
            return min(batch * 2, _LARGEST_BATCH)
        if took > TIME_SLICE:
            return max(batch // 4, 1)
        return batch
