"""A heartbeat: measures durations by a thread that ticks, and by the thread's processor time.

A suspended machine, or a process that is not scheduled, delays the ticks as it delays the measured
code. The time between two ticks therefore counts only up to a limit, which makes the measure fairer
than wall-clock time. Processor time counts in full: on a busy machine ticks come too rarely.
"""

import _thread
import time
from collections.abc import Callable
from typing import Final

TICK: Final = 0.005
MAX_TICK: Final = 4 * TICK
"""A busy interpreter delays the ticking thread a little; a longer delay is a suspension."""


class Heartbeat:
    """``with Heartbeat() as heartbeat: seconds = heartbeat.during(call)``."""

    def __init__(self) -> None:
        self._counted = 0.0
        self._is_stopped = False

    def _tick(self) -> None:
        last = time.monotonic()
        while not self._is_stopped:
            time.sleep(TICK)
            now = time.monotonic()
            self._counted += min(now - last, MAX_TICK)
            last = now

    def __enter__(self) -> "Heartbeat":
        # Not a thread of `threading`: a loop on virtual time would wait for its work.
        _thread.start_new_thread(self._tick, ())
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_stopped = True

    def now(self) -> tuple[float, float, float]:
        """The current moment, for `since` in the same thread."""
        return self._counted, time.thread_time(), time.monotonic()

    def since(self, moment: tuple[float, float, float]) -> float:
        """Seconds since *moment*, by ticks or processor time, and at most those of the clock."""
        counted, computed, clock = moment
        seconds = max(self._counted - counted, time.thread_time() - computed)
        return min(seconds, time.monotonic() - clock)

    def during(self, call: Callable[[], object]) -> float:
        """Seconds that *call* takes."""
        moment = self.now()
        call()
        return self.since(moment)
