"""A client whose transport is lost: another is dialled, for the session that waits or a new one."""

from collections.abc import Awaitable, Callable
from random import random
from typing import TYPE_CHECKING, Any, Final

from .._core.loop import LoopHandle, wait_settled
from ..retry import RetryPolicy
from .protocol.errors import ConnectionLost, SetupRejected
from .protocol.frames import ErrorCode

if TYPE_CHECKING:
    from .._core.loop import Future, Task
    from .driver import Driver

__all__ = ("RESUMING", "Reconnector")

Dial = Callable[["Driver"], Awaitable[None]]


def _worth_it(error: BaseException) -> bool:
    return isinstance(error, ConnectionError | OSError) and not isinstance(error, SetupRejected)


RESUMING: Final = RetryPolicy(attempts=None, delay=0.05, maximum=5.0, within=3600, only=_worth_it)
"""How a session looks for a new transport: until its time is over."""


class Reconnector:
    """What keeps one client connected. *make* makes a driver, *dial* gives it a transport."""

    def __init__(
        self,
        make: "Callable[[], Awaitable[Driver]]",
        dial: Dial,
        policy: RetryPolicy | None,
    ) -> None:
        self.loop_handle: LoopHandle = LoopHandle("connect()")
        self._make = make
        self._dial = dial
        self._policy = policy
        self.renewed: Callable[[Driver], object] | None = None
        """Called with the driver of each connection but the first."""
        self._task: Task[Any] | None = None
        self._closing = False
        self._attempt = 1
        self._since = 0.0
        self._known: Driver | None = None
        self._ready: list[Future[None]] = []

    async def first(self) -> "Driver":
        """The first connection, whose failure is the caller's matter."""
        driver = await self._new()
        self._watch(driver)
        return driver

    async def _new(self) -> "Driver":
        driver = await self._make()
        try:
            await self._dial(driver)
        except BaseException:
            driver._end()  # it has no transport, and never will
            raise
        return driver

    def _watch(self, driver: "Driver") -> None:
        driver.on_closed = self._lost
        driver.on_suspended = self._suspended
        driver.at_resume.append(self._begin_anew)

    def _suspended(self, driver: "Driver") -> None:
        self._begin(self._resume, driver)

    def _lost(self, driver: "Driver") -> None:
        if self._policy is not None and not self._closing:
            self._begin(self._reconnect, driver)

    def _begin_anew(self) -> None:
        """There is a connection: the next loss is the first one again."""
        self._attempt = 1

    def _begin(self, work: Dial, driver: "Driver") -> None:
        if self._closing:
            return
        if driver is not self._known and driver.connection.is_confirmed:  # it was a connection
            self._known = driver
            self._begin_anew()
        if self._attempt == 1:
            self._since = self.loop_handle.time()
        before = self._task
        coroutine = self._after(before, work, driver)
        self._task = self.loop_handle.create_task(coroutine, "rsocket: connects again")

    async def _after(self, before: "Task[Any] | None", work: Dial, driver: "Driver") -> None:
        if before is not None and not self.loop_handle.is_current_task(before):
            await wait_settled(before)
        await work(driver)

    async def _resume(self, driver: "Driver") -> None:
        """Find a transport for the session of *driver*, as long as it lives."""
        policy = self._policy or RESUMING
        error: BaseException = ConnectionLost(ErrorCode.CONNECTION_ERROR, b"the transport was lost")
        while driver.connection.is_suspended:
            if not await self._wait(policy, error):
                driver.connection.close(f"given up: {error}")
                driver.schedule_turn()
                return
            try:
                if driver.close_reason is None:
                    await self._dial(driver)
                return
            except Exception as failed:
                error = failed

    async def _reconnect(self, driver: "Driver") -> None:
        """Begin a new session in the place of *driver*'s."""
        policy = self._policy
        error: BaseException = driver.close_reason or ConnectionLost(ErrorCode.CONNECTION_ERROR)
        while policy is not None:
            if not await self._wait(policy, error):
                self._policy = None
                self._wake()
                return
            try:
                new = await self._new()
            except Exception as failed:
                error = failed
                continue
            self._watch(new)
            if self.renewed is not None:
                self.renewed(new)
            self._wake()
            return

    async def _wait(self, policy: RetryPolicy, error: BaseException) -> bool:
        """Wait before another attempt; False if there is to be none."""
        elapsed = self.loop_handle.time() - self._since
        pause = policy.decide(self._attempt, error, elapsed, random())
        if pause is None:
            return False
        self._attempt += 1
        over = self.loop_handle.create_future()
        timer = self.loop_handle.call_later(pause, over.set_result, None)
        try:
            await over
        finally:
            timer.cancel()
        return True

    # -- for those who wait for it -----------------------------------------------------------------
    @property
    def trying(self) -> bool:
        """Whether there will be another connection, perhaps."""
        return self._policy is not None and not self._closing

    async def ready(self) -> None:
        """Wait for the next connection."""
        if not self.trying:
            return
        waiter = self.loop_handle.create_future()
        self._ready.append(waiter)
        await waiter

    def _wake(self) -> None:
        waiting, self._ready = self._ready, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def aclose(self) -> None:
        self._closing = True
        self._wake()
        if self._task is not None:
            self._task.cancel()
            await wait_settled(self._task)
