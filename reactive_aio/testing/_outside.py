"""What goes on outside a virtual-time loop: may a thread still wake it?

A loop with virtual time must not jump over the work of a thread: the thread's result would
arrive hours late. Nor may it wait for a thread that waits for the loop: that would be for ever.
So each thread started since the loop was made is in one of three states:

* *idle*: a pool's worker without work. It does not count.
* *parked*: it waits, without a timeout, on a condition of :mod:`threading` (so on an Event, a
  Semaphore, a ``queue.Queue``, a ``Future``) that nobody has notified. Only somebody else can
  move it on.
* *working*: everything else, such as computing, sleeping, or reading a socket.

The innermost Python frame tells them apart: all those primitives wait in ``Condition.wait``. A
thread that waits in another way can be told from one at work if it waits in a method of an object
whose class has ``is_parked()``.
"""

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent import futures
from types import CodeType, FrameType
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

CONDITION_WAIT: CodeType = threading.Condition.wait.__code__
POOL_MODULE = futures.ThreadPoolExecutor.__module__


class Call:
    """A function handed to an executor: queued, then running in a thread, then done."""

    __slots__ = ("_thread", "delivered")

    def __init__(self) -> None:
        self._thread: int | None = None
        # Its future is done: it has its result, or was cancelled while the thread went on.
        self.delivered = False

    def around(self, function: Callable[[*Ts], T]) -> Callable[[*Ts], T]:
        """*function*, noting the thread that runs it."""

        def call(*args: *Ts) -> T:
            self._thread = threading.get_ident()
            try:
                return function(*args)
            finally:
                self._thread = None

        return call

    def is_over(self) -> bool:
        return self.delivered and self._thread is None

    def is_parked(self) -> bool:
        """Running, and parked. A queued call or one whose result is on its way is not."""
        if self._thread is None:
            return False
        frame = sys._current_frames().get(self._thread)
        return frame is not None and is_parked(frame)


class Outside:
    """The threads and executor calls that may still wake the loop."""

    def __init__(self) -> None:
        # Threads, not their numbers: the number of one that has ended goes to the next.
        self._before = weakref.WeakSet(threading.enumerate())
        self._calls: list[Call] = []

    def begin(self) -> Call:
        call = Call()
        self._calls.append(call)
        return call

    def is_working(self) -> bool:
        """Whether waiting for real may bring a wake-up."""
        self._calls = [call for call in self._calls if not call.is_over()]
        if any(not call.is_parked() for call in self._calls):
            return True
        frames = sys._current_frames()
        return any(is_working(frames.get(ident)) for ident in self._started_since())

    def parked_threads(self) -> list[threading.Thread]:
        """Those who wait for the loop, for a report."""
        frames = sys._current_frames()
        parked = [
            thread
            for thread in threading.enumerate()
            if thread not in self._before
            and thread.ident in frames
            and is_parked(frames[thread.ident])
        ]
        return sorted(parked, key=lambda thread: thread.name)

    def _started_since(self) -> list[int]:
        here = threading.get_ident()
        return [
            thread.ident
            for thread in threading.enumerate()
            if thread.ident is not None and thread not in self._before and thread.ident != here
        ]


def is_parked(frame: FrameType) -> bool:
    for candidate in innermost(frame):
        if candidate.f_code.co_varnames[:1] != ("self",):
            continue  # no method: a closure may know a `self` as well
        owner: object = candidate.f_locals.get("self")
        # Of its class: to ask a stranger for an attribute may run its `__getattr__`, and that of an
        # object of py4j's calls a JVM.
        says = getattr(type(owner), "is_parked", None)
        if callable(says):
            return bool(says(owner))
    waiting = condition_wait(frame)
    if waiting is None or waiting.f_locals.get("timeout") is not None:
        return False
    # The waiter's lock is held as long as nobody has notified it.
    waiter = waiting.f_locals.get("waiter")
    return waiter is not None and bool(waiter.locked())


def condition_wait(frame: FrameType) -> FrameType | None:
    """The frame of ``Condition.wait`` if *frame* is it, or just inside it."""
    for candidate in innermost(frame):
        if candidate.f_code is CONDITION_WAIT:
            return candidate
    return None


def innermost(frame: FrameType) -> Iterator[FrameType]:
    """*frame*, and the one around it: *frame* may be a tool's wrapper of a lock."""
    yield frame
    if frame.f_back is not None:
        yield frame.f_back


def is_idle(frame: FrameType) -> bool:
    return frame.f_code.co_name == "_worker" and frame.f_globals.get("__name__") == POOL_MODULE


def is_working(frame: FrameType | None) -> bool:
    return frame is not None and not is_parked(frame) and not is_idle(frame)
