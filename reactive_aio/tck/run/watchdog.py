"""The watchdog: runs a coroutine on a new loop in its own thread, and returns in any case.

A candidate may block the loop, even forever. So its loop runs in a thread of its own while the
caller's thread watches it. If the loop stalls, the watchdog records where the candidate is and
raises an exception inside it (`StopCandidate`). A candidate that this does not stop is abandoned in
a daemon thread, and the next law begins without waiting for it.
"""

import asyncio
import ctypes
import selectors
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ...testing.thread_frames import frame_of
from ..law import StopCandidate
from ..timeouts import Timeouts

INTERVAL: Final = 0.05
"""Seconds between two checks by the watching thread."""
KIT: Final = str(Path(__file__).parents[1])
FRAMES: Final = 12
"""The most calls of a candidate that a verdict shows."""
ATTEMPTS: Final = 20
"""How often `StopCandidate` is raised before the candidate is abandoned."""
LOOP_FILES: Final = (selectors.__file__, asyncio.base_events.__file__)
"""The files whose frames are on top while asyncio's loop waits."""

_one_at_a_time: Final = threading.Lock()
"""Laws count threads and change state of the whole interpreter: filters, hooks, switch interval."""

Work = Callable[[], Coroutine[Any, Any, None]]


@dataclass
class Watchdog:
    """One run of *work*; its attributes then say how the run ended."""

    work: Work
    make_loop: Callable[[], asyncio.AbstractEventLoop]
    current_call: Callable[[], str] = str
    error: BaseException | None = None
    """The exception that the work raised."""
    stop_reason: str = ""
    """Why the work was stopped; empty if it was not."""
    stack: str = ""
    """The calls of the work when it was stopped."""
    stopped_call: str = ""
    """The candidate's function that had been called then."""
    is_abandoned: bool = False
    """Whether the work could not be stopped, and continues."""
    _turns: int = 0
    _is_done: threading.Event = field(default_factory=threading.Event)
    _loop: asyncio.AbstractEventLoop | None = None

    def run(self, timeouts: Timeouts, name: str) -> None:
        """Run the work and watch it until it has ended or is abandoned.

        Checks in several threads run one law at a time.
        """
        context = copy_context()
        thread = threading.Thread(target=context.run, args=(self._run,), name=name, daemon=True)
        with _one_at_a_time, _unraisable_stop_ignored(), warnings.catch_warnings():
            # A candidate that does not await signals leaves coroutines; the laws report it.
            warnings.simplefilter("ignore", RuntimeWarning)
            thread.start()
            try:
                self._watch(thread, timeouts)
            except BaseException:  # Ctrl-C must stop the work, too
                self._stop(thread)
                raise

    def description(self) -> str:
        """Why and where the work was stopped, and whether it could be."""
        inside = f" inside {self.stopped_call}" if self.stopped_call else ""
        cannot = ", and cannot be stopped: it continues in its thread" if self.is_abandoned else ""
        return f"{self.stop_reason}{inside}{cannot}"

    # -- in the thread of the work ----------------------------------------------------------------
    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self._new_loop) as runner:
                runner.run(self.work())
        except BaseException as error:
            self.error = error
        finally:
            self._is_done.set()

    def _new_loop(self) -> asyncio.AbstractEventLoop:
        self._loop = loop = self.make_loop()
        if isinstance(loop, asyncio.BaseEventLoop):
            self._count_turns(loop)
        else:
            self._count_timer(loop)
        return loop

    def _count_turns(self, loop: asyncio.BaseEventLoop) -> None:
        """Count the reads of the clock, one in each turn: a timer would advance a virtual clock."""
        read: Callable[[], float] = loop.time

        def time() -> float:
            self._turns += 1
            return read()

        loop.time = time  # type: ignore[method-assign]

    def _count_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        self._turns += 1
        loop.call_later(INTERVAL / 2, self._count_timer, loop)

    # -- in the watching thread -------------------------------------------------------------------
    def _watch(self, thread: threading.Thread, timeouts: Timeouts) -> None:
        """Count intervals, not seconds: a suspended machine suspends both threads alike.

        The machine may suspend one of them only: then the loop is woken up, and wakes up late.
        """
        stalled = intervals = 0
        before = -1
        while True:
            if self._wait_until_done(thread):
                return
            intervals += 1
            stalled = 0 if self._turns != before else stalled + 1
            if stalled:
                self._wake_loop()
            before = self._turns
            if stalled * INTERVAL >= timeouts.stall and not _is_loop_waiting(thread):
                self.stop_reason = f"the loop had no turn for {timeouts.stall:g} s"
            elif intervals * INTERVAL >= timeouts.law:
                self.stop_reason = f"there was no end after {timeouts.law:g} s"
            if self.stop_reason:
                break
        self.stack, self.stopped_call = _innermost_calls(thread), self.current_call()
        self.is_abandoned = not self._stop(thread)

    def _wait_until_done(self, thread: threading.Thread) -> bool:
        """Wait one interval. On 3.11 a thread reports its death after a Ctrl-C in `join`."""
        if self._is_done.wait(INTERVAL):
            thread.join(1)
        return self._is_done.is_set()

    def _stop(self, thread: threading.Thread) -> bool:
        """Raise `StopCandidate` in the work until it ends; return whether it has ended."""
        for _ in range(ATTEMPTS):
            self._raise_in(thread)
            if self._wait_until_done(thread):
                return True
        return False

    def _raise_in(self, thread: threading.Thread) -> None:
        if thread.ident is not None and not self._is_done.is_set():
            set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
            set_exception(ctypes.c_ulong(thread.ident), ctypes.py_object(StopCandidate))
            self._wake_loop()

    def _wake_loop(self) -> None:
        """An idle loop has no turns; once awake it has one, in which an exception takes effect."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            with suppress(RuntimeError):  # closed in the meantime
                loop.call_soon_threadsafe(lambda: None)


@contextmanager
def _unraisable_stop_ignored() -> Generator[None]:
    """`StopCandidate` cannot be raised in a finalizer, and would be printed."""
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if unraisable.exc_type is not StopCandidate:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _is_loop_waiting(thread: threading.Thread) -> bool:
    """Whether asyncio's own code runs in *thread*: then the candidate does not block the loop."""
    frame = frame_of(thread)
    while frame is not None and frame.f_code.co_filename in LOOP_FILES:
        if frame.f_code.co_name == "_run_once":
            return True
        frame = frame.f_back
    return False


def _innermost_calls(thread: threading.Thread) -> str:
    """The innermost calls of *thread*, up to the last one of the kit."""
    frame = frame_of(thread)
    calls: list[traceback.FrameSummary] = [*traceback.extract_stack(frame)] if frame else []
    ours = [index for index, call in enumerate(calls) if call.filename.startswith(KIT)]
    within = calls[ours[-1] + 1 :] if ours else calls
    return "".join(traceback.format_list((within or calls)[-6:])).rstrip()
