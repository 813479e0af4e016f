"""Whether a thread may still wake a loop with virtual time.

Such a loop must not jump over the work of a thread: the result would arrive hours late. Nor may it
wait for a thread that waits for the loop: neither would ever proceed. Each thread started since the
loop was created is in one of three states:

* *idle*: a worker of a pool without work. It does not count.
* *parked*: it waits, without a timeout, on a condition of :mod:`threading` (so on an Event, a
  Semaphore, a ``queue.Queue``, a ``Future``) that has not been notified. Another thread has to act.
* *running*: everything else, such as computing, sleeping, or reading a socket.

The innermost Python frame distinguishes them: all those primitives wait in ``Condition.wait``. A
thread that waits on a raw lock looks like a running one, unless it does so in a method of a
`Parkable`.
"""

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent import futures
from types import CodeType, FrameType
from typing import Protocol, TypeVar, TypeVarTuple

__all__ = ("ExecutorCall", "Parkable", "ThreadMonitor", "is_idle")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

CONDITION_WAIT: CodeType = threading.Condition.wait.__code__
POOL_MODULE = futures.ThreadPoolExecutor.__module__


class Parkable(Protocol):
    """An object whose methods wait on a raw lock, and which declares when they do."""

    def is_parked(self) -> bool:
        """Whether the thread in a method of this object waits for another thread to act."""
        ...


class ExecutorCall:
    """A function submitted to an executor: queued, then running in a thread, then done."""

    __slots__ = ("_thread", "is_settled")

    def __init__(self) -> None:
        self._thread: int | None = None
        self.is_settled = False
        """Its future has the result, or was cancelled while the thread continued."""

    def wrap(self, function: Callable[[*Ts], T]) -> Callable[[*Ts], T]:
        """*function*, recording the thread that runs it."""

        def call(*args: *Ts) -> T:
            self._thread = threading.get_ident()
            try:
                return function(*args)
            finally:
                self._thread = None

        return call

    def is_done(self) -> bool:
        return self.is_settled and self._thread is None

    def is_parked(self) -> bool:
        """Running, and parked; not while it is queued, or its result is on its way."""
        if self._thread is None:
            return False
        frame = sys._current_frames().get(self._thread)
        return frame is not None and is_parked(frame)


class ThreadMonitor:
    """The threads and executor calls that may still wake the loop."""

    def __init__(self) -> None:
        # Threads, not their idents: that of a finished thread is given to a new one.
        self._older = weakref.WeakSet(threading.enumerate())
        self._calls: list[ExecutorCall] = []

    def add_call(self) -> ExecutorCall:
        call = ExecutorCall()
        self._calls.append(call)
        return call

    def is_any_running(self) -> bool:
        """Whether waiting in real time may bring a wake-up."""
        self._calls = [call for call in self._calls if not call.is_done()]
        if any(not call.is_parked() for call in self._calls):
            return True
        here = threading.get_ident()
        return any(
            not is_parked(frame) and not is_idle(frame)
            for thread, frame in self._started()
            if thread.ident != here
        )

    def parked(self) -> list[threading.Thread]:
        """The threads that wait for the loop."""
        found = [thread for thread, frame in self._started() if is_parked(frame)]
        return sorted(found, key=lambda thread: thread.name)

    def _started(self) -> Iterator[tuple[threading.Thread, FrameType]]:
        """The threads started since the loop was created, with their innermost frames."""
        frames = sys._current_frames()
        for thread in threading.enumerate():
            frame = frames.get(thread.ident or 0)
            if frame is not None and thread not in self._older:
                yield thread, frame


def is_parked(frame: FrameType) -> bool:
    for candidate in _innermost(frame):
        if candidate.f_code.co_varnames[:1] != ("self",):
            continue  # not a method: a closure may have a `self` as well
        owner: object = candidate.f_locals.get("self")
        # Looked up in its class: `__getattr__` of a foreign object may block, as py4j's does.
        method = getattr(type(owner), "is_parked", None)
        if callable(method):
            return bool(method(owner))
    waiting = next((each for each in _innermost(frame) if each.f_code is CONDITION_WAIT), None)
    if waiting is None or waiting.f_locals.get("timeout") is not None:
        return False
    # The lock of the waiter is held until the condition is notified.
    waiter = waiting.f_locals.get("waiter")
    return waiter is not None and bool(waiter.locked())


def _innermost(frame: FrameType) -> Iterator[FrameType]:
    """*frame*, and its caller: *frame* may be a tool's wrapper of a lock."""
    yield frame
    if frame.f_back is not None:
        yield frame.f_back


def is_idle(frame: FrameType) -> bool:
    return frame.f_code.co_name == "_worker" and frame.f_globals.get("__name__") == POOL_MODULE
