"""An event loop whose clock jumps to the next timer when there is nothing to do.

A test that sleeps for an hour takes no time, and timers fire in the order and at the very times
that the program asked for: nothing depends on how fast or busy the machine is.

::

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(asyncio.sleep(3600))
        assert runner.get_loop().time() == 3600

What happens when nothing is ready:

1. A thread is at work (``run_in_executor``, ``asyncio.to_thread``, a thread of the test): the loop
   waits for it in real time and the clock stands still. A thread that itself waits for the loop
   is not waited for; :mod:`reactive_aio.testing._outside` says how it is told.
2. A timer is set: the clock jumps to it. Sockets are looked at first, but never waited for: data
   from the same loop is there already, and the outside world does not live in virtual time.
3. No timer, but a socket or pipe is watched: the loop waits for it in real time.
4. Otherwise nobody can ever wake the loop: :class:`Deadlock` is raised, naming who waits for whom.

A test belongs to one thread; a loop that runs in a second thread and waits to be called from the
first should be a real one.
"""

import asyncio
import selectors
from collections.abc import Callable
from concurrent import futures
from typing import TypeVar, TypeVarTuple

from reactive_aio.testing._outside import Outside
from reactive_aio.testing._waiting import where_tasks_wait, where_threads_wait

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Events = list[tuple[selectors.SelectorKey, int]]

# How long to wait in real time before looking again whether a thread is still at work.
LOOK_AGAIN = 0.002
# Timers closer together than this fire together. The real loops have such a figure too; without
# one, a clock that has grown large could no longer express the last step to a timer.
RESOLUTION = 1e-6


class Deadlock(RuntimeError):
    """The loop is idle and nothing can ever wake it.

    The message names each task, what it waits for, which tasks have that or have it at hand, the
    places, a circle if there is one, and the threads that wait for the loop.
    """


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A selector event loop with a clock of its own, which starts at 0."""

    def __init__(self) -> None:
        self._now = 0.0
        self._outside = Outside()
        self._watched = _IdleSelector(self._idle)
        super().__init__(self._watched)
        self._clock_resolution = RESOLUTION

    def time(self) -> float:
        return self._now

    def run_in_executor(
        self,
        executor: futures.Executor | None,
        func: Callable[[*Ts], T],
        *args: *Ts,
    ) -> asyncio.Future[T]:
        call = self._outside.begin()
        # A process pool pickles its functions, and a wrapped one cannot be.
        if executor is None or isinstance(executor, futures.ThreadPoolExecutor):
            func = call.around(func)
        try:
            future = super().run_in_executor(executor, func, *args)
        except BaseException:
            call.delivered = True
            raise
        future.add_done_callback(lambda _: setattr(call, "delivered", True))
        return future

    def _idle(self, poll: Callable[[float | None], Events], timeout: float | None) -> Events:
        """Nothing is ready before *timeout*: wait for threads, jump, or give up."""
        while self._outside.is_working():
            if events := poll(LOOK_AGAIN):
                return events
        # The order matters: a thread that finished after the last look has written its wake-up.
        if events := poll(0):
            return events
        if timeout is not None:
            self._now += timeout
            return []
        # One descriptor is the loop's own, by which threads wake it.
        if len(self._watched.get_map()) > 1:
            return poll(None)
        raise Deadlock(self._deadlock_report())

    def _deadlock_report(self) -> str:
        lines = [
            f"deadlock at {self._now:g} s of virtual time: nothing is ready, no timer is set,"
            " and no thread or socket can wake the loop",
            *where_tasks_wait(self),
        ]
        if parked := self._outside.parked_threads():
            lines += ["threads that wait for the loop:", *where_threads_wait(parked)]
        return "\n".join(lines)


class _IdleSelector(selectors.DefaultSelector):
    """Asks *idle* what to do whenever the loop would wait."""

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
