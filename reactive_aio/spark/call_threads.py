"""The blocking calls of one subscription, made on threads.

All state is changed on the loop's thread, except for `_running`, which the threads change as well:
they only run a call and post its result to the loop.
"""

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from threading import Event
from typing import Any, Final, TypeVar

from .._core.failures import as_failure
from .._core.loop import Future, LoopHandle, shield
from .thread_pool import ThreadPool, pool_of

T = TypeVar("T")

# Seconds: the first interruptions may precede the calls that they should end. Later ones are
# seldom needed, and would keep Spark busy where many flows are cancelled together.
_INTERRUPT_AGAIN: Final = 0.05
_INTERRUPT_AGAIN_AT_MOST: Final = 1.0
_numbers = count(1)


class CallThreads:
    """Runs calls on threads, each at once, and posts their results to the loop."""

    __slots__ = (
        "_all_done", "_all_returned", "_claims", "_interrupt", "_is_stopped", "_last_call",
        "_loop_handle", "_name", "_pool", "_running", "has_called", "on_loop_closed",
        "pending_calls",
    )  # fmt: skip

    def __init__(
        self,
        loop_handle: LoopHandle,
        name: str,
        *,
        interrupt: Callable[[], object],
        pool: ThreadPool | None = None,
    ) -> None:
        """*interrupt* makes running calls return early; *pool* is that of the loop by default."""
        self._loop_handle = loop_handle
        self._name = f"reactive_aio-{name}-{next(_numbers)}"
        self._interrupt = interrupt
        self._pool = pool or pool_of(loop_handle.event_loop)
        self.has_called: bool = False
        """Whether a call was made."""
        self._running: dict[object, None] = {}
        """The calls that have not returned. Each change of a dict is atomic."""
        self._all_returned = Event()
        self._is_stopped = False
        self._last_call: Callable[[], object] | None = None
        self._claims = count()
        self._all_done: Future[None] | None = None
        self.pending_calls: int = 0
        """How many calls have not posted their result yet."""
        self.on_loop_closed: Callable[[], object] = self.stop
        """Called on a thread that cannot post a result; set it before the first call."""

    def call(
        self, work: Callable[[], T], callback: Callable[[T | None, Exception | None], None]
    ) -> None:
        """Run *work* on a thread, then *callback*, with its result or its error, on the loop."""
        self.pending_calls += 1
        self.has_called = True
        # A context can be entered by one thread at a time, and the loop's thread enters ours.
        run = self._loop_handle.context.copy().run
        token = object()
        self._running[token] = None
        self._all_returned.clear()
        try:
            self._pool.run(lambda: run(self._run, token, work, callback), self._name)
        except RuntimeError as error:  # the system has no thread to give
            del self._running[token]
            self._loop_handle.call_soon(self._post, callback, None, error)

    def _run(self, token: object, work: Callable[[], Any], callback: Callable[..., None]) -> None:
        """Run a call on a thread."""
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:
            error = as_failure(raised)
        del work
        is_posted = self._loop_handle.call_soon_threadsafe(self._post, callback, result, error)
        del callback, result, error
        if not is_posted:
            self.on_loop_closed()
        del self._running[token]
        if not self._running:
            self._all_returned.set()
            self._finish()

    def _post(self, callback: Callable[..., None], result: Any, error: Exception | None) -> None:
        self.pending_calls -= 1
        try:
            callback(result, error)  # which may make another call
        finally:
            if not self.pending_calls and self._all_done is not None:
                self._all_done.set_result(None)
                self._all_done = None

    def stop(self, last_call: Callable[[], object] | None = None) -> None:
        """Run *last_call* when every call has returned; no other call may follow.

        It is not run if no call was made. Safe inside the garbage collector.
        """
        if self._is_stopped:
            return
        self._last_call = last_call
        self._is_stopped = True
        if self.has_called and last_call is not None and not self._running:
            self._pool.run_from_finalizer(self._finish, self._name)

    def _finish(self) -> None:
        """Run the last call once, on a thread, if nothing else runs."""
        if not self._is_stopped or self._running or next(self._claims):
            return
        last_call, self._last_call = self._last_call, None
        if last_call is not None:
            with suppress(Exception):  # no caller is left to receive it
                last_call()

    def interrupt(self) -> None:
        """Make the running calls return early: repeat the interruption until they have."""
        if self._running:
            run = self._loop_handle.context.copy().run
            with suppress(RuntimeError):  # without a thread, the calls end when their work is done
                self._pool.run(lambda: run(self._keep_interrupting), f"{self._name}-interrupt")

    def _keep_interrupting(self) -> None:
        again = _INTERRUPT_AGAIN
        while self._running:
            self._interrupt()
            self._all_returned.wait(again)
            again = min(2 * again, _INTERRUPT_AGAIN_AT_MOST)

    async def wait_done(self) -> None:
        """Wait until no call is pending."""
        while self.pending_calls:
            self._all_done = self._all_done or self._loop_handle.create_future()
            await shield(self._all_done)
