"""SendLimit: a client that does not read loses its connection.

It would keep its place, and what is queued for it, for as long as it gives signs of life. A program
that reads nothing may well send keepalives.
"""

from math import inf
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .._core.loop import TimerHandle
    from .driver import Driver

_SLOWEST: Final = 1024
"""How many bytes in a second are reading."""


class SendLimit:
    """Watches one connection while its transport takes no more output.

    The timer stays when output leaves in time, as nearly all does.
    """

    __slots__ = ("_driver", "_left", "_since", "_timer")

    def __init__(self, driver: "Driver") -> None:
        self._driver = driver
        self._timer: TimerHandle | None = None
        self._since = 0.0
        self._left = 0

    def start(self, transport: Any) -> None:
        """*transport* takes no more output."""
        self._since = self._driver.loop_handle.time()
        self._left = transport.get_write_buffer_size()
        if self._timer is None and self._seconds < inf:
            self._set(self._seconds)

    def stop(self) -> None:
        """The connection has ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def _seconds(self) -> float:
        return self._driver.connection.limits.send_timeout

    def _set(self, seconds: float) -> None:
        self._timer = self._driver.loop_handle.call_later(seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        driver = self._driver
        transport: Any = driver.blocked_transport
        if transport is None:
            return
        now, seconds = driver.loop_handle.time(), self._seconds
        if self._since + seconds > now:  # it has read meanwhile, and then stopped
            self._set(self._since + seconds - now)
        elif self._left - transport.get_write_buffer_size() >= seconds * _SLOWEST:
            self.start(transport)
        else:
            driver.lose(f"nothing was read for {seconds:g} seconds")
