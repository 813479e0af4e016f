"""SendLimit: a client that does not read loses its connection.

It would keep its place, and what is queued for it, for as long as it gives signs of life. A program
that reads nothing may well send keepalives.
"""

from collections.abc import Callable
from math import inf
from typing import Final

from ..._core.loop import LoopHandle, TimerHandle
from .line import Transport

_SLOWEST: Final = 1024
"""How many bytes in a second are reading."""


class SendLimit:
    """Watches one connection while its transport takes no more output, which *blocked* returns.

    *lose* is called with the reason if less is read than has to be for *seconds*. The timer stays
    when output leaves in time, as nearly all does.
    """

    __slots__ = ("_blocked", "_left", "_loop_handle", "_lose", "_seconds", "_since", "_timer")

    def __init__(
        self,
        loop_handle: LoopHandle,
        seconds: float,
        blocked: Callable[[], Transport | None],
        lose: Callable[[str], object],
    ) -> None:
        self._loop_handle = loop_handle
        self._seconds = seconds
        self._blocked = blocked
        self._lose = lose
        self._timer: TimerHandle | None = None
        self._since = 0.0
        self._left = 0

    def start(self, transport: Transport) -> None:
        """*transport* takes no more output."""
        self._since = self._loop_handle.time()
        self._left = transport.get_write_buffer_size()
        if self._timer is None and self._seconds < inf:
            self._set(self._seconds)

    def stop(self) -> None:
        """The connection has ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, seconds: float) -> None:
        self._timer = self._loop_handle.call_later(seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        transport = self._blocked()
        if transport is None:
            return
        now, seconds = self._loop_handle.time(), self._seconds
        if self._since + seconds > now:  # it has read meanwhile, and then stopped
            self._set(self._since + seconds - now)
        elif self._left - transport.get_write_buffer_size() >= seconds * _SLOWEST:
            self.start(transport)
        else:
            self._lose(f"nothing was read for {seconds:g} seconds")
