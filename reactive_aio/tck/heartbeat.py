"""A heartbeat: how long something takes, by the ticks of a thread that only sleeps.

A machine that stands still, or a process that is not given the processor, holds up the thread as it
holds up what is measured; so its ticks are a fairer measure than the clock on the wall.
"""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

__all__ = ("Heartbeat",)

TICK: Final = 0.005


class Heartbeat:
    """``with Heartbeat() as heart: seconds = heart.during(call)``."""

    def __init__(self) -> None:
        self._ticks = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="tck heartbeat", daemon=True)

    def _beat(self) -> None:
        while not self._over.wait(TICK):
            self._ticks += 1

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def now(self) -> tuple[int, float]:
        """A moment, for `since`."""
        return self._ticks, time.monotonic()

    def since(self, moment: tuple[int, float]) -> float:
        """Seconds since *moment*, by the ticks, and never more than by the clock."""
        ticks, clock = moment
        return min((self._ticks - ticks) * TICK, time.monotonic() - clock)

    def during(self, call: Callable[[], object]) -> float:
        """Seconds that *call* takes."""
        moment = self.now()
        call()
        return self.since(moment)
