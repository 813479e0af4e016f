"""An event loop whose clock jumps to the next timer when nothing is ready.

A test that sleeps for an hour takes no time, and timers fire in the order and at the very times
that the program requested: nothing depends on the speed or the load of the machine.

::

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(asyncio.sleep(3600))
        assert runner.get_loop().time() == 3600

When nothing is ready:

1. While a thread is running (``run_in_executor``, ``asyncio.to_thread``, a thread of the test), the
   loop waits for it in real time and the clock stands still. It does not wait for a thread that
   itself waits for the loop; :mod:`reactive_aio.testing._thread_monitor` detects those.
2. If a timer is set, the clock jumps to it. Sockets are polled first, but never waited for: data
   from the same loop has arrived already, and the outside world is not in virtual time.
3. If no timer is set, but a socket or pipe is watched, the loop waits for it in real time.
4. Otherwise nothing can ever wake the loop, and it raises :class:`Deadlock`.

A test runs in one thread; a loop that runs in a second thread and waits for calls from the first
should be a real one.
"""

import asyncio
import selectors
from collections.abc import Callable
from concurrent import futures
from typing import TypeVar, TypeVarTuple

from ._deadlock_report import deadlock_report
from ._thread_monitor import ThreadMonitor

__all__ = ("Deadlock", "VirtualTimeLoop")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Events = list[tuple[selectors.SelectorKey, int]]

# How long to wait in real time before checking again whether a thread is still running.
CHECK_INTERVAL = 0.002
# Timers closer together than this fire together. The real loops have such a figure too; without
# one, a clock that has grown large could not express the last step to a timer.
RESOLUTION = 1e-6


class Deadlock(RuntimeError):
    """The loop is idle and nothing can ever wake it.

    The message contains a cycle of waiting tasks if there is one; for each task what it waits for,
    which tasks hold that or can reach it, and its awaits; and the threads that wait for the loop.
    """


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A selector event loop with a clock of its own, which starts at 0."""

    def __init__(self) -> None:
        self._now = 0.0
        self._threads = ThreadMonitor()
        self._idle_selector = _IdleSelector(self._idle)
        super().__init__(self._idle_selector)
        self._clock_resolution = RESOLUTION

    def time(self) -> float:
        return self._now

    def run_in_executor(
        self,
        executor: futures.Executor | None,
        func: Callable[[*Ts], T],
        *args: *Ts,
    ) -> asyncio.Future[T]:
        call = self._threads.add_call()
        # A process pool pickles its functions, and a wrapped one cannot be pickled.
        if executor is None or isinstance(executor, futures.ThreadPoolExecutor):
            func = call.wrap(func)
        try:
            future = super().run_in_executor(executor, func, *args)
        except BaseException:
            call.is_settled = True
            raise
        future.add_done_callback(lambda _: setattr(call, "is_settled", True))
        return future

    def _idle(self, poll: Callable[[float | None], Events], timeout: float | None) -> Events:
        """Nothing is ready before *timeout*: wait for threads, jump, or raise Deadlock."""
        while self._threads.is_any_running():
            if events := poll(CHECK_INTERVAL):
                return events
        # The order matters: a thread that ended after the last check has written its wake-up.
        if events := poll(0):
            return events
        if timeout is not None:
            self._now += timeout
            return []
        # One descriptor is the loop's own, by which threads wake it.
        if len(self._idle_selector.get_map()) > 1:
            return poll(None)
        reason = "no thread or socket can wake the loop"
        waiting = self._threads.parked()
        raise Deadlock(deadlock_report(self, reason, "threads that wait for the loop:", waiting))


class _IdleSelector(selectors.DefaultSelector):
    """Calls *idle* where the loop would wait."""

    def __init__(
        self, idle: Callable[[Callable[[float | None], Events], float | None], Events]
    ) -> None:
        super().__init__()
        self._idle = idle

    def select(self, timeout: float | None = None) -> Events:
        poll = super().select
        if events := poll(0):
            return events
        if timeout is not None and timeout <= 0:
            return []
        return self._idle(poll, timeout)
