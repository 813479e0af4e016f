"""A timer for the next deadline of a connection."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._core.loop import LoopHandle, TimerHandle

__all__ = ("DeadlineTimer",)


class DeadlineTimer:
    """One timer of the loop, for a deadline that mostly moves away.

    A later deadline does not replace the timer, so that setting it is free. The callback may come
    too early for that reason: it compares the deadline with the clock.
    """

    __slots__ = ("_at", "_callback", "_loop_handle", "_timer")

    def __init__(self, loop_handle: "LoopHandle", callback: Callable[[], object]) -> None:
        self._loop_handle = loop_handle
        self._callback = callback
        self._timer: TimerHandle | None = None
        self._at = 0.0

    def set(self, at: float | None) -> None:
        """Call back at *at*, by the loop's clock, at the latest."""
        if at is None or (self._timer is not None and self._at <= at):
            return
        self.cancel()
        self._at = at
        delay = max(0.0, at - self._loop_handle.time())
        self._timer = self._loop_handle.call_later(delay, self._fire)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        self._callback()
