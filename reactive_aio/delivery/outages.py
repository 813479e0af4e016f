"""Outage: a server that cannot be reached. Its calls are repeated, and the log has one line."""

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from random import random
from typing import Final, TypeVar

from .._core.compiler.error_notes import add_bounded_note
from .._core.foreign_text import printable, without_secrets
from .._core.loop import LoopHandle, sleep
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

    def __repr__(self) -> str:
        return f"<Outage {self}>"

    def __str__(self) -> str:
        if self._began is None:
            return f"{self._name} can be reached"
        return f"{self._name} fails since {self._since}, {self._failed} attempts"

    @property
    def is_out(self) -> bool:
        """Whether the last call has failed."""
        return self._began is not None

    async def call(self, function: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """Call *function*, again after an error that the policy covers."""
        loop_handle = LoopHandle("Outage.call()")
        attempts = Attempts(self._policy, loop_handle.time())
        while True:
            try:
                result = await function(*arguments)
            except Exception as error:
                if not self._policy.covers(error):
                    raise
                self.failed(error, loop_handle.time())
                wait = attempts.failed(error, loop_handle.time(), random())
                if wait is None:
                    add_bounded_note(error, _NOTE, f"{_NOTE}{self}")
                    raise
                await sleep(wait)
            else:
                self.over(loop_handle.time())
                return result

    def failed(self, error: Exception, now: float) -> None:
        """A call has failed, at *now* of the event loop's clock."""
        self._failed += 1
        if self._began is None:
            self._began = now
            self._since = f"{datetime.now(UTC):%H:%M:%S} UTC"
            what = f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(": ")
            text = "%s fails since %s, and is tried again: %s"
            LOG.warning(text, self._name, self._since, printable(without_secrets(what)))

    def over(self, now: float) -> None:
        """A call has succeeded."""
        if self._began is not None:
            seconds, self._began = now - self._began, None
            text = "%s is back after %.1f s and %d failed attempts"
            LOG.warning(text, self._name, seconds, self._failed)
            self._failed = 0
