"""Those who wait until little is left to be sent on a connection."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._core.loop import Future
    from .driver import Driver

__all__ = ("WriteBackpressure",)


class WriteBackpressure:
    """Woken by the driver when there is room, and at the end."""

    def __init__(self, driver: "Driver") -> None:
        self._driver = driver
        self._waiting: list[Future[None]] = []

    def __bool__(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def make(self) -> None:
        """Wake all; each looks for itself."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def wait(self) -> None:
        """Wait until little waits to be sent."""
        driver, connection = self._driver, self._driver.connection
        while (
            driver.close_reason is None and connection.queued_bytes >= connection.limits.watermark
        ):
            await self._change()

    async def said(self, timeout: float) -> None:
        """Wait until what nobody answers, and whole answers, have been sent, or for *timeout*."""
        driver = self._driver
        limit = driver.loop_handle.time() + timeout
        timer = driver.loop_handle.call_later(timeout, self.make)
        while (
            driver.close_reason is None
            and driver._transport is not None
            and driver.connection.has_final_output
        ):
            if driver.loop_handle.time() >= limit:
                break
            await self._change()
        timer.cancel()

    async def _change(self) -> None:
        waiter = self._driver.loop_handle.create_future()
        self._waiting.append(waiter)
        self._driver.schedule_turn()
        await waiter
