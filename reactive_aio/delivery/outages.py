"""Outage: a server that cannot be reached. Its calls are repeated, and the log has one line."""

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from random import random
from typing import Final, TypeVar

from .._core.compiler.error_notes import add_bounded_note
from .._core.foreign_text import printable, without_secrets
from .._core.loop import LoopHandle, sleep
from .._core.observation.awaited import tells_wait
from ..retry import Attempts, RetryPolicy

__all__ = ("Outage",)

T = TypeVar("T")

LOG: Final = logging.getLogger("reactive_aio.delivery")
_NOTE: Final = "outage: "


class Outage:
    """Calls of one server: repeated while it cannot be reached, with one line in the log for that.

    ::

        postgres = Outage("PostgreSQL (shop)", RetryPolicy(attempts=None, delay=0.2, only=OSError))
        await postgres.call(pool.execute, "insert …")

    Give each server its own, and use it for all calls of that server that may be repeated. The
    first call that fails with an error that *policy* covers begins an outage, and logs a warning:
    the name of the server, the time and the error. The first that succeeds ends it, and logs how
    long it took, and how many calls failed. Any other error is the caller's at once, and so is the
    last one where the policy has an end.
    """

    def __init__(self, name: str, policy: RetryPolicy) -> None:
        self._name = name
        self._policy = policy
        self._began: float | None = None
        self._since = ""
        self._failed = 0
        self._attempts: Attempts | None = None
        """Of the loop that calls `wait`, since what it reads from was lost."""

    def __repr__(self) -> str:
        return f"<Outage {self}>"

    def __str__(self) -> str:
        if self._began is None:
            return f"{self._name} can be reached"
        return f"{self._name} fails since {self._since}, {self._failed} attempts"

    @property
    def awaited(self) -> str:
        """What a call waits for, for reports."""
        how = "" if self._began is None else f", which fails since {self._since}"
        return f"an answer of {self._name}{how}"

    @property
    def is_out(self) -> bool:
        """Whether the last call has failed."""
        return self._began is not None

    @tells_wait(lambda local: local["self"].awaited)
    async def call(self, function: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """Call *function*, again after an error that the policy covers."""
        loop_handle = LoopHandle("Outage.call()")
        attempts = Attempts(self._policy, loop_handle.time())
        while True:
            try:
                result = await function(*arguments)
            except Exception as error:
                await self._wait(error, attempts, loop_handle)
            else:
                self._over(loop_handle)
                return result

    async def wait(self, error: Exception) -> None:
        """Wait until the next attempt after *error*, or raise it, as `call` does.

        For a loop that opens something, reads from it until it is lost, and opens it again: let it
        call `over` when it has opened it. One loop may do that at a time.
        """
        loop_handle = LoopHandle("Outage.wait()")
        attempts = self._attempts or Attempts(self._policy, loop_handle.time())
        self._attempts = None  # unless the next attempt follows
        await self._wait(error, attempts, loop_handle)
        self._attempts = attempts

    def failed(self, error: Exception) -> None:
        """A call that is not repeated has failed."""
        self._failed_at(error, LoopHandle("Outage.failed()").time())

    def over(self) -> None:
        """A call has succeeded, or what was lost is open again."""
        self._attempts = None
        self._over(LoopHandle("Outage.over()"))

    async def _wait(self, error: Exception, attempts: Attempts, loop_handle: LoopHandle) -> None:
        if not self._policy.covers(error):
            raise error
        now = loop_handle.time()
        self._failed_at(error, now)
        wait = attempts.failed(error, now, random())
        if wait is None:
            add_bounded_note(error, _NOTE, f"{_NOTE}{self}")
            raise error
        await sleep(wait)

    def _failed_at(self, error: Exception, now: float) -> None:
        self._failed += 1
        if self._began is None:
            self._began = now
            self._since = f"{datetime.now(UTC):%H:%M:%S} UTC"
            what = f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(": ")
            text = "%s fails since %s, and is tried again: %s"
            LOG.warning(text, self._name, self._since, printable(without_secrets(what)))

    def _over(self, loop_handle: LoopHandle) -> None:
        if self._began is not None:
            seconds, self._began = loop_handle.time() - self._began, None
            text = "%s is back after %.1f s and %d failed attempts"
            LOG.warning(text, self._name, seconds, self._failed)
            self._failed = 0
