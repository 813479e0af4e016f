"""A clock that rings when the next thing is due."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._core.loop import LoopHandle, TimerHandle

__all__ = ("DeadlineTimer",)


class DeadlineTimer:
    """One timer. To be set anew costs nothing while what is due only moves away.

    It may ring too early therefore: whoever is called looks at what is due.
    """

    __slots__ = ("_at", "_loop_handle", "_ring", "_timer")

    def __init__(self, loop_handle: "LoopHandle", ring: Callable[[], object]) -> None:
        self._loop_handle = loop_handle
        self._ring = ring
        self._timer: TimerHandle | None = None
        self._at = 0.0

    def set(self, at: float | None) -> None:
        """Ring at *at*, by the loop's clock, at the latest."""
        if at is None or (self._timer is not None and self._at <= at):
            return
        self.stop()
        self._at = at
        self._timer = self._loop_handle.call_later(
            max(0.0, at - self._loop_handle.time()), self._rings
        )

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _rings(self) -> None:
        self._timer = None
        self._ring()
