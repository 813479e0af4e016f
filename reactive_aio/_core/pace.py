"""Fairness: how long a drain may run before the loop gets a turn, told by the clock."""

from time import perf_counter
from typing import Final, Protocol

__all__ = ("SLICE", "Paced", "pace", "perf_counter")

SLICE: Final = 0.002  # seconds of work, then a turn for everybody else
_LARGEST_BATCH: Final = 1024
_CHEAP: Final = SLICE / 4


class Paced(Protocol):
    """What a drain keeps about its time: when it looked, when it must yield, whether it is late."""

    looked: float
    until: float
    late: bool


def pace(drain: Paced, batch: int) -> int:
    """Look at the clock after *batch* elements; return how many to run before looking again.

    Cheap elements make batches grow, so that looking costs nothing; expensive ones make them
    shrink, so that even elements of a millisecond each cannot hold the loop up for long.
    """
    now = perf_counter()
    took = now - drain.looked
    drain.looked = now
    drain.late = now >= drain.until
    if took < _CHEAP:
        return min(batch * 2, _LARGEST_BATCH)
    if took > SLICE:
        return max(batch // 4, 1)
    return batch
