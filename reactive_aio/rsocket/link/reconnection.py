"""Connecting and reconnecting a client: a new transport for its session, or a new connection."""

from collections.abc import Awaitable, Callable
from random import random
from typing import Any, Final

from anyio import Event, sleep

from ..._core.failures import as_failure, stop_program
from ..._core.loop import LoopHandle, Task, wait_settled
from ...retry import RetryPolicy
from ..payloads import error_text
from ..protocol.errors import CertificateRejected, ConnectionLost, SetupRejected
from ..protocol.frames import ErrorCode
from .callbacks import ends_task
from .driver import Driver

Dial = Callable[[Driver], Awaitable[None]]


_PERMANENT: Final = (
    SetupRejected,
    CertificateRejected,
    # Mistakes of the program, in its options or its function for credentials.
    TypeError,
    ValueError,
    ImportError,
)


def is_permanent(error: BaseException) -> bool:
    """Whether the same attempt would fail again: the server refuses the client, for example."""
    return isinstance(error, _PERMANENT)


def _is_retryable(error: BaseException) -> bool:
    return isinstance(error, OSError)


RESUME_POLICY: Final = RetryPolicy(
    attempts=None, delay=0.05, maximum=5.0, within=3600, only=_is_retryable
)
"""The policy for the transports of a session, until the session expires."""


class Reconnector:
    """Replaces the lost transports and connections of one client.

    *make_driver* creates the driver of a connection, *dial* gives it a transport. A suspended
    session is dialed again by *policy*, or by `RESUME_POLICY`; a lost connection is replaced by a
    new one if there is a *policy*, by which the first connection is retried as well. A server that
    refuses the client is not asked again, whatever the policy.
    """

    def __init__(
        self,
        make_driver: Callable[[], Awaitable[Driver]],
        dial: Dial,
        policy: RetryPolicy | None,
    ) -> None:
        self.loop_handle: LoopHandle = LoopHandle("connect()")
        self.on_reconnect: Callable[[Driver], object] | None = None
        """Called with the driver of each connection but the first."""
        self.failure: BaseException | None = None
        """Why the last attempt failed, once there are no more."""
        self._make_driver = make_driver
        self._dial = dial
        self._policy = policy
        self._task: Task[Any] | None = None
        self._is_closing = False
        self._is_resuming = False
        self._attempt = 1
        self._first_attempt_at = 0.0
        self._last_confirmed: Driver | None = None
        self._settled = Event()  # there is another connection, or there will be none

    async def connect(self) -> Driver:
        """Connect for the first time."""
        self._first_attempt_at = self.loop_handle.time()
        while True:
            try:
                driver = await self._new_connection()
            except Exception as error:
                policy = self._policy
                if policy is None or not await self._wait_for_attempt(policy, error):
                    raise
                continue
            self._reset_attempts()
            self._watch(driver)
            return driver

    async def _new_connection(self) -> Driver:
        driver = await self._make_driver()
        try:
            await self._dial(driver)
        except BaseException:
            driver.ending.abort()
            driver.ending.end()  # without a transport, nothing else would release it
            raise
        return driver

    def _watch(self, driver: Driver) -> None:
        driver.add_close_callback(self._on_closed)
        driver.on_suspended = self._on_suspended
        driver.add_resume_callback(self._reset_attempts)

    def _on_suspended(self, driver: Driver) -> None:
        if not self._is_resuming:  # else the session has lost a transport that was just tried
            self._start(self._resume, driver)

    def _on_closed(self, driver: Driver) -> None:
        if self.may_reconnect:
            self._start(self._reconnect, driver)

    def _reset_attempts(self) -> None:
        """After a success, the policy starts over."""
        self._attempt = 1

    def _start(self, work: Dial, driver: Driver) -> None:
        if self._is_closing:
            return
        if driver is not self._last_confirmed and driver.connection.is_confirmed:
            self._last_confirmed = driver
            self._reset_attempts()
        if self._attempt == 1:
            self._first_attempt_at = self.loop_handle.time()
        coroutine = self._run_after(self._task, work, driver)
        self._task = self.loop_handle.create_task(coroutine, "rsocket: reconnects")

    async def _run_after(self, previous: Task[Any] | None, work: Dial, driver: Driver) -> None:
        if previous is not None and not self.loop_handle.is_current_task(previous):
            await wait_settled(previous)
        await work(driver)

    async def _resume(self, driver: Driver) -> None:
        """Find a transport on which the suspended session of *driver* goes on."""
        self._is_resuming = True
        try:
            await self._try_transports(driver)
        finally:
            self._is_resuming = False

    async def _try_transports(self, driver: Driver) -> None:
        policy = self._policy or RESUME_POLICY
        error: BaseException = ConnectionLost(ErrorCode.CONNECTION_ERROR, b"the transport was lost")
        while driver.connection.is_suspended:
            if not await self._wait_for_attempt(policy, error):
                driver.connection.close(f"given up: {error_text(error)}")
                driver.schedule_turn()
                return
            try:
                if driver.ending.reason is None:
                    await self._dial(driver)
            except BaseException as failure:
                error = self._failure(failure)
                await driver.abort_transport()  # if there is one, the server does not answer on it

    async def _reconnect(self, driver: Driver) -> None:
        """Replace the connection of *driver* by a new one."""
        policy = self._policy
        error: BaseException = driver.ending.reason or ConnectionLost(ErrorCode.CONNECTION_ERROR)
        while policy is not None:
            if not await self._wait_for_attempt(policy, error):
                self._policy, self.failure = None, error
                self._wake_waiters()
                return
            try:
                new = await self._new_connection()
            except BaseException as failure:
                error = self._failure(failure)
                continue
            self._watch(new)
            if self.on_reconnect is not None:
                self.on_reconnect(new)
            self._wake_waiters()
            return

    def _failure(self, error: BaseException) -> BaseException:
        """The error of an attempt; raise *error* if it ends the task that connects."""
        if ends_task(self.loop_handle, error):
            raise error
        stop_program(self.loop_handle, error)
        return as_failure(error)

    async def _wait_for_attempt(self, policy: RetryPolicy, error: BaseException) -> bool:
        """Wait before the next attempt; return False if there is none."""
        if is_permanent(error):
            return False
        elapsed = self.loop_handle.time() - self._first_attempt_at
        delay = policy.decide(self._attempt, error, elapsed, random())
        if delay is None:
            return False
        self._attempt += 1
        await sleep(delay)
        return True

    # -- for the client ----------------------------------------------------------------------------
    @property
    def may_reconnect(self) -> bool:
        """Whether a lost connection is replaced."""
        return self._policy is not None and not self._is_closing

    async def wait(self) -> None:
        """Wait for the next connection, or until the reconnector gives up."""
        if self.may_reconnect:
            await self._settled.wait()

    def _wake_waiters(self) -> None:
        self._settled.set()
        self._settled = Event()

    async def aclose(self) -> None:
        self._is_closing = True
        self._wake_waiters()
        if self._task is not None:
            self._task.cancel()
            await wait_settled(self._task)
