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
   itself waits for the loop: neither would ever proceed.
2. If a timer is set, the clock jumps to it. Sockets are polled first, but never waited for: data
   from the same loop has arrived already, and the outside world is not in virtual time.
3. If no timer is set, but a socket or pipe is watched, the loop waits for it in real time.
4. Otherwise nothing can ever wake the loop, and it raises :class:`Deadlock`.

A test runs in one thread; a loop that runs in a second thread and waits for calls from the first
should be a real one.

Each thread started since the loop was created is in one of three states:

* *idle*: a worker of a pool without work. It does not count.
* *parked*: it waits, without a timeout, on a condition of :mod:`threading` (so on an Event, a
  Semaphore, a ``queue.Queue``, a ``Future``) that has not been notified. Another thread has to act.
* *running*: everything else, such as computing, sleeping, or reading a socket.

The innermost Python frame distinguishes them: all those primitives wait in ``Condition.wait``. A
thread that waits on a raw lock looks like a running one, unless it does so in a method of a
`Parkable`.
"""

import asyncio
import selectors
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass
from time import monotonic
from types import CodeType, FrameType
from typing import Any, Final, Protocol, Self, TypeVar, TypeVarTuple

from ._deadlock_report import deadlock_report, task_report
from .thread_frames import current_frames

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Events = list[tuple[selectors.SelectorKey, int]]

# How long to wait in real time before checking again whether a thread is still running.
CHECK_INTERVAL = 0.002
# The most seconds of real time for which work is on its way to a worker of a pool.
LONGEST_HANDOVER = 1.0
# Timers closer together than this fire together. The real loops have such a figure too; without
# one, a clock that has grown large could not express the last step to a timer.
RESOLUTION = 1e-6
CONDITION_WAIT: Final[CodeType] = threading.Condition.wait.__code__
POOL_MODULE: Final = futures.ThreadPoolExecutor.__module__


class Deadlock(RuntimeError):
    """The loop is idle and nothing can ever wake it.

    The message contains a cycle of waiting tasks if there is one; for each task what it waits for,
    which tasks hold that or can reach it, and its awaits; and the threads that wait for the loop.
    """


class TooManyTurns(RuntimeError):
    """A program takes more turns of its loop than it may; the message says where its tasks are."""


class Parkable(Protocol):
    """An object whose methods wait on a raw lock, and which declares when they do."""

    def is_parked(self) -> bool:
        """Whether the thread in a method of this object waits for another thread to act."""
        ...


@dataclass(eq=False, slots=True)
class ExecutorCall:
    """A function submitted to an executor: queued, then running in a thread, then done."""

    future: asyncio.Future[Any] | None = None
    """It has the result, or was cancelled while the thread continued."""
    thread: int | None = None

    def wrap(self, function: Callable[[*Ts], T]) -> Callable[[*Ts], T]:
        """*function*, recording the thread that runs it."""

        def call(*args: *Ts) -> T:
            self.thread = threading.get_ident()
            try:
                return function(*args)
            finally:
                self.thread = None

        return call

    def is_done(self) -> bool:
        return self.future is not None and self.future.done() and self.thread is None

    def is_parked(self) -> bool:
        """Running, and parked; not while it is queued, or its result is on its way."""
        frame = current_frames().get(self.thread or 0)
        return frame is not None and is_parked(frame)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock, which starts at 0, jumps to the next timer when nothing is ready.

    ::

        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(asyncio.sleep(3600))  # takes no time

    The clock stands still while a thread is running. The loop raises `Deadlock` when nothing is
    ready, no timer is set, and no thread and no watched socket can wake it. Timers that are set
    again and again, as by ``interval`` or the keepalive of RSocket, keep the clock moving: limit
    what waits beside them, by ``asyncio.timeout``.

    - most_turns: the turns that the loop makes in its life, after which it raises `TooManyTurns`,
      so that a program ends which only yields to others, or whose timers follow each other for
      ever. None is no limit.
    """

    def __new__(cls, *, most_turns: int | None = None) -> Self:
        if most_turns is not None and (type(most_turns) is not int or most_turns < 1):
            raise ValueError(
                f"VirtualTimeLoop: most_turns must be an int from 1, not {most_turns!r}"
            )
        return super().__new__(cls)

    def __init__(self, *, most_turns: int | None = None) -> None:
        self._now = 0.0
        self._turns = 0
        self._most_turns = most_turns
        # Threads, not their idents: that of a finished thread is given to a new one.
        self._older_threads = weakref.WeakSet(threading.enumerate())
        self._calls: list[ExecutorCall] = []
        self._handovers = _Handovers()
        self._idle_selector = _IdleSelector(self._count_turn, self._idle)
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
        call = ExecutorCall()
        # A process pool pickles its functions, and a wrapped one cannot be pickled.
        if executor is None or isinstance(executor, futures.ThreadPoolExecutor):
            func = call.wrap(func)
        call.future = future = super().run_in_executor(executor, func, *args)
        self._calls.append(call)
        return future

    def _count_turn(self) -> None:
        self._turns += 1
        if self._most_turns is not None and self._turns > self._most_turns:
            self._turns = 0  # for the turns in which the runner cancels what is left
            heading = f"{self._most_turns} turns of the loop were made in {self.time():g} s"
            raise TooManyTurns(task_report(self, f"{heading}, and the program has not ended"))

    def _idle(self, poll: Callable[[float | None], Events], timeout: float | None) -> Events:
        """Nothing is ready before *timeout*: wait for threads, jump, or raise Deadlock."""
        while self._is_any_thread_running():
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
        waiting = [thread for thread, frame in self._new_threads() if is_parked(frame)]
        waiting.sort(key=lambda thread: thread.name)
        raise Deadlock(deadlock_report(self, reason, "threads that wait for the loop:", waiting))

    def _is_any_thread_running(self) -> bool:
        """Whether waiting in real time may bring a wake-up."""
        self._calls = [call for call in self._calls if not call.is_done()]
        if any(not call.is_parked() for call in self._calls):
            return True
        here, idle = threading.get_ident(), list[FrameType]()
        for thread, frame in self._new_threads():
            if thread.ident == here or is_parked(frame):
                continue
            if not is_idle(frame):
                return True
            idle.append(frame)
        return self._handovers.is_any(idle)

    def _new_threads(self) -> Iterator[tuple[threading.Thread, FrameType]]:
        """The threads started since the loop was created, with their innermost frames."""
        frames = current_frames()
        for thread in threading.enumerate():
            frame = frames.get(thread.ident or 0)
            if frame is not None and thread not in self._older_threads:
                yield thread, frame


class _Handovers:
    """Work on its way to a worker of a pool, of which neither the worker nor the queue knows.

    From CPython 3.13 on, work that is submitted is handed to a worker that waits, past the queue.
    The pool counts the workers that wait and were handed nothing, and that count can be too low for
    good, since a busy worker may take the work instead; so a handover is waited for, not for ever.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._never_ended: weakref.WeakKeyDictionary[futures.Executor, int] = (
            weakref.WeakKeyDictionary()
        )

    def is_any(self, idle: list[FrameType]) -> bool:
        """Whether one of the workers with these frames, which look idle, was handed work."""
        pending = Counter[Any]()
        for frame in idle:
            if (executor := frame.f_locals["executor_reference"]()) is not None:
                pending[executor] += 1
        for executor in pending:
            pending[executor] -= executor._idle_semaphore._value
            known = min(self._never_ended.get(executor, 0), pending[executor])
            self._never_ended[executor] = max(known, 0)
        if all(pending[each] <= self._never_ended[each] for each in pending):
            self._began = None
            return False
        now = monotonic()
        self._began = self._began or now
        if now - self._began < LONGEST_HANDOVER:
            return True
        self._never_ended.update(pending)
        return False


class _IdleSelector(selectors.DefaultSelector):
    """Calls *idle* where the loop would wait."""

    def __init__(
        self,
        count_turn: Callable[[], None],
        idle: Callable[[Callable[[float | None], Events], float | None], Events],
    ) -> None:
        super().__init__()
        self._count_turn = count_turn
        self._idle = idle

    def select(self, timeout: float | None = None) -> Events:
        self._count_turn()
        poll = super().select
        if events := poll(0):
            return events
        if timeout is not None and timeout <= 0:
            return []
        return self._idle(poll, timeout)


# -- the states of threads -------------------------------------------------------------------------
def is_parked(frame: FrameType) -> bool:
    # Its caller too: the innermost may be a tool's wrapper of a lock.
    innermost = [each for each in (frame, frame.f_back) if each is not None]
    for candidate in innermost:
        if candidate.f_code.co_varnames[:1] != ("self",):
            continue  # not a method: a closure may have a `self` as well
        owner: object = candidate.f_locals.get("self")
        # Looked up in its class: `__getattr__` of a foreign object may block, as py4j's does.
        method = getattr(type(owner), "is_parked", None)
        if callable(method):
            return bool(method(owner))
    waiting = next((each for each in innermost if each.f_code is CONDITION_WAIT), None)
    if waiting is None or waiting.f_locals.get("timeout") is not None:
        return False
    # The lock of the waiter is held until the condition is notified, and again by the waiter that
    # has woken up; but it is then none of those that wait.
    local = waiting.f_locals
    waiter = local.get("waiter")
    return waiter is not None and bool(waiter.locked()) and waiter in local["self"]._waiters


def is_idle(frame: FrameType) -> bool:
    """Whether the thread is one of a pool, and has no work, not even in the pool's queue."""
    if frame.f_code.co_name != "_worker" or frame.f_globals.get("__name__") != POOL_MODULE:
        return False
    local = frame.f_locals
    return local.get("work_item") is None and bool(local["work_queue"].empty())
