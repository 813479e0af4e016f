"""How a connection ends: why, what of it may finish, when its transport does, and who is told.

The phases of its life are those of the `Connection`. What is decided here::

    the connection has ended       transport, once all is sent    handlers without a response
      by this side or an error       closed                         cancelled
      the client was rejected        its sending half is closed     there are none
      as this side announced         its sending half is closed     finish, for a limited time
      as the peer announced          closed                         finish, for a limited time

A socket that is closed with unread data is reset, and the peer could lose the last elements. A
transport that does not end by itself is aborted after a while; one that is attached after an abort,
or after the end, is aborted at once.
"""

from typing import TYPE_CHECKING, Any, Final, Protocol

from anyio import move_on_after

from ..._core.loop import TimerHandle, wait_settled
from ..protocol.errors import StreamFailed, error_of, renewed, with_remedy
from ..protocol.events import Closed
from ..protocol.frames import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..._core.loop import LoopHandle
    from ..protocol.connection import Connection
    from .held_requests import HeldRequests
    from .line import Line
    from .tasks import ConnectionTasks, Waiters

CLOSE_TIMEOUT: Final = 5.0
SILENT_PEER_TIMEOUT: Final = 0.1
"""The same for a peer that has given no sign of life, and will not read what is left either."""
PEER_CLOSES_WITHIN: Final = 2.0
"""How long the peer may take to close a connection whose end was announced to it."""


class Ends(Protocol):
    """What drives a connection: its parts, as far as they have to do with its end."""

    loop_handle: "LoopHandle"
    connection: "Connection"
    line: "Line"
    tasks: "ConnectionTasks"
    waiters: "Waiters"
    held_requests: "HeldRequests"

    def schedule_turn(self) -> object: ...
    def release(self) -> object:
        """Release everything but the tasks."""
        ...


class Ending:
    """The end of the connection of one driver, from its first sign until nothing of it is left."""

    # Class attributes until they are set: most connections need few of them.
    reason: StreamFailed | None = None
    """Why the connection has ended; None while it has not."""
    remedy: str = ""
    """How a client reconnects, for the error of requests after the server has closed."""
    is_over: bool = False
    """Whether there is no transport, and never will be one again."""
    is_aborted: bool = False
    """Whether the transport is aborted, or will be as soon as there is one."""
    peer_has_to_read: bool = False
    """Whether the transport closes its sending half only, so that the peer reads why it ends."""
    _linger_time: float = CLOSE_TIMEOUT
    """How long handlers without a response may run after the connection has ended properly."""
    _is_draining: bool = False
    _is_proper: bool = False  # as one side has announced, when no stream was open
    _time_limit: "TimerHandle | None" = None  # of the transport, and then of the handlers

    def __init__(self, driver: Ends) -> None:
        self._driver: Ends | None = driver  # until nothing of the connection is left
        self._callbacks: list[Callable[[Any], object]] = []

    def require_open(self) -> None:
        """Raise the reason of the end if the connection has ended."""
        if self.reason is not None:
            raise renewed(self.reason)

    def add_callback(self, callback: "Callable[[Any], object]") -> bool:
        """Call *callback* once nothing of the connection is left; False if that is so already."""
        if self._driver is None:
            return False
        self._callbacks.append(callback)
        return True

    def remove_callback(self, callback: "Callable[[Any], object]") -> None:
        """Do not call *callback*; it may have been called."""
        if callback in self._callbacks:
            self._callbacks.remove(callback)

    # -- by this side ------------------------------------------------------------------------------
    def announce(self, reason: str, seconds: float) -> None:
        """Accept no more requests; close when the open streams have ended.

        Handlers without a response may then run for *seconds*.
        """
        if (driver := self._driver) is None:
            return
        self._is_draining, self._linger_time = True, seconds
        until = driver.loop_handle.time() + min(seconds, PEER_CLOSES_WITHIN)
        driver.connection.close_gracefully(reason, until)
        driver.schedule_turn()

    async def close(self, reason: str = "") -> None:
        """Close the connection and its streams, and wait until its transport has ended."""
        if (driver := self._driver) is None:
            return
        try:
            is_flushed = await self._flush_final_output(driver)
        finally:  # the connection ends even if this call is cancelled
            if self.reason is None:
                driver.connection.close(reason)
                driver.schedule_turn()
        if not is_flushed:  # the peer has had its time, and does not read
            self.abort()
        is_ending = driver.line.transport is not None or driver.connection.is_closed
        if is_ending and not self.is_over:
            await wait_settled(driver.waiters.until(lambda: self.is_over))

    async def _flush_final_output(self, driver: Ends) -> bool:
        """Wait, for a limited time, until output that no answer would confirm has been sent.

        Returns False if that time was too short.
        """

        def is_flushed() -> bool:
            return driver.line.transport is None or not driver.connection.has_final_output

        if self.reason is not None or is_flushed():
            return True
        driver.schedule_turn()
        with move_on_after(CLOSE_TIMEOUT) as scope:
            await wait_settled(driver.waiters.until(is_flushed))
        return not scope.cancelled_caught

    def give_up(self, code: int, reason: str) -> None:
        """End the connection for a *reason* that the peer is told, unless it does not read."""
        if (driver := self._driver) is None:
            return
        driver.connection.fail(code, reason)
        driver.schedule_turn()
        if not driver.line.is_writable:
            self.abort()

    def abort(self, reason: str = "it was aborted") -> None:
        """End the connection and its transport at once, without sending what is queued.

        A session ends as well: it is not resumed on another transport.
        """
        driver = self._driver
        if driver is None or self.is_over:
            return
        self.is_aborted = True
        driver.connection.close(reason)
        driver.line.abort()
        driver.schedule_turn()

    # -- its course --------------------------------------------------------------------------------
    def begin(self, driver: Ends, event: Closed) -> None:
        """The connection has ended; its last frames are still to be written."""
        driver.tasks.is_closed = True
        reason = error_of(event.code, event.data)
        is_normal = event.code == ErrorCode.CONNECTION_CLOSE
        if is_normal or not isinstance(reason, ConnectionError):
            reason = error_of(ErrorCode.CONNECTION_CLOSE, event.data or b"it was closed")
        self.reason = with_remedy(reason, "" if is_normal and event.local else self.remedy)
        self.reason.origin = driver.connection.origin
        if is_normal and (self._is_draining or not event.local):
            self._is_proper = not (self.is_aborted or self.peer_has_to_read)
            self.peer_has_to_read |= event.local
        else:
            driver.tasks.cancel()
        driver.held_requests.fail_all(self.reason)
        has_transport = driver.line.transport is not None and not self.is_aborted
        if has_transport and self._time_limit is None:
            seconds = SILENT_PEER_TIMEOUT if driver.connection.is_peer_silent else CLOSE_TIMEOUT
            self._time_limit = driver.loop_handle.call_later(seconds, self.abort)

    def close_transport(self, driver: Ends) -> None:
        """The connection has ended, and its last frame is written."""
        line = driver.line
        if line.transport is None:
            self.end()
        elif not self.is_aborted:
            (line.close_writing if self.peer_has_to_read else line.close)()

    def end(self) -> None:
        """There is no transport, and there will be none: release all but handlers that finish."""
        driver = self._driver
        if driver is None or self.is_over:
            return
        self.is_over = True
        driver.release()
        if self._time_limit is not None:
            self._time_limit.cancel()
        if self._is_proper:
            tasks = driver.tasks
            self._time_limit = driver.loop_handle.call_later(self._linger_time, tasks.cancel)
            tasks.cancel(only_background=True)
            tasks.when_idle(self._tell)
        else:
            driver.tasks.cancel()
            self._tell()

    def _tell(self) -> None:
        """Nothing of the connection is left."""
        if self._time_limit is not None:
            self._time_limit.cancel()
        driver, self._driver = self._driver, None
        callbacks, self._callbacks = self._callbacks, []
        if driver is not None:
            for each in callbacks:
                each(driver)
