"""A heartbeat: how long something takes, by a thread that does nothing but beat.

A machine that stands still, or a process that is not given the processor, holds up the beats as it
holds up what is measured. So the time between two beats counts only up to some limit, which makes
a fairer measure than the clock on the wall.
"""

import _thread
import time
from collections.abc import Callable
from typing import Final

__all__ = ("Heartbeat",)

TICK: Final = 0.005
LONGEST: Final = 4 * TICK
"""A busy interpreter gives the beating thread its turn a little late; more is a standstill."""


class Heartbeat:
    """``with Heartbeat() as heart: seconds = heart.during(call)``."""

    def __init__(self) -> None:
        self._beaten = 0.0
        self._over = False

    def _beat(self) -> None:
        last = time.monotonic()
        while not self._over:
            time.sleep(TICK)
            now = time.monotonic()
            self._beaten += min(now - last, LONGEST)
            last = now

    def __enter__(self) -> "Heartbeat":
        # No thread of `threading`: a loop on virtual time would wait for its work.
        _thread.start_new_thread(self._beat, ())
        return self

    def __exit__(self, *_error: object) -> None:
        self._over = True

    def now(self) -> tuple[float, float]:
        """A moment, for `since`."""
        return self._beaten, time.monotonic()

    def since(self, moment: tuple[float, float]) -> float:
        """Seconds since *moment*, by the beats, and never more than by the clock."""
        beaten, clock = moment
        return min(self._beaten - beaten, time.monotonic() - clock)

    def during(self, call: Callable[[], object]) -> float:
        """Seconds that *call* takes."""
        moment = self.now()
        call()
        return self.since(moment)
