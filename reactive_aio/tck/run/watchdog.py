"""The watchdog: runs one coroutine on a fresh loop in a thread of its own, and always comes back.

A subject under test may block the loop, for good even. So its loop has a thread of its own, and the
caller's thread watches. Held up too long, the work is stopped by an exception raised inside it
(`Brake`), and where it stood is told. What even that does not stop is left behind, in a daemon
thread, and the next work begins without waiting for it.
"""

import asyncio
import ctypes
import selectors
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any, Final

from ..scenario.brake import Brake
from ..terms import Terms

__all__ = ("Watchdog",)

LOOK: Final = 0.05
"""Seconds between two looks of the watching thread."""
HERE: Final = str(Path(__file__).parents[1])
PULLS: Final = 20
"""How often the brake is pulled before the work is left behind."""
IN_WAIT: Final = (selectors.__file__, asyncio.base_events.__file__)
"""Where asyncio's loop is while it waits."""

_one_at_a_time: Final = threading.Lock()
"""Laws count threads and change what the whole interpreter shares: filters, hooks, its pace."""

Work = Callable[[], Coroutine[Any, Any, None]]


class Watchdog:
    """One run of *work*; afterwards its attributes say how it ended."""

    def __init__(
        self,
        work: Work,
        loop: Callable[[], asyncio.AbstractEventLoop],
        doing: Callable[[], str] = str,
    ) -> None:
        self._work = work
        self._make_loop = loop
        self._doing = doing
        self.error: BaseException | None = None
        """What came out of the work."""
        self.braked: str = ""
        """Why it was broken off; empty if it was not."""
        self.stack: str = ""
        """Where it was then."""
        self.doing: str = ""
        """What it was called for then."""
        self.left_behind: bool = False
        """Whether it could not be stopped, and goes on."""
        self._beats = 0
        self._over = threading.Event()
        self._looping: asyncio.AbstractEventLoop | None = None

    def run(self, terms: Terms, name: str) -> None:
        """Run the work, and watch until it has ended or has been left behind.

        Of several checks in several threads one runs at a time.
        """
        context = copy_context()
        thread = threading.Thread(target=context.run, args=(self._live,), name=name, daemon=True)
        with _one_at_a_time, _silent_brake(), warnings.catch_warnings():
            # A subject that awaits no signals leaves coroutines; the laws say so better.
            warnings.simplefilter("ignore", RuntimeWarning)
            thread.start()
            try:
                self._watch(thread, terms)
            except BaseException:  # Ctrl-C: the work must not go on
                self._stop(thread)
                raise

    # -- in its own thread ------------------------------------------------------------------------
    def _live(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self._loop) as runner:
                runner.run(self._work())
        except BaseException as error:
            self.error = error
        finally:
            self._over.set()

    def _loop(self) -> asyncio.AbstractEventLoop:
        self._looping = loop = self._make_loop()
        if isinstance(loop, asyncio.BaseEventLoop):
            self._count_turns(loop)
        else:
            self._beat(loop)
        return loop

    def _count_turns(self, loop: asyncio.BaseEventLoop) -> None:
        """asyncio's loops look at the clock in every turn; a timer would wake a virtual one."""
        look: Callable[[], float] = loop.time

        def time() -> float:
            self._beats += 1
            return look()

        loop.time = time  # type: ignore[method-assign]

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._beats += 1
        loop.call_later(LOOK / 2, self._beat, loop)

    # -- in the watching one ----------------------------------------------------------------------
    def _watch(self, thread: threading.Thread, terms: Terms) -> None:
        """Count looks, not seconds: a machine that stands still stands still for both threads.

        Half of it may stand still too: then the loop is woken up, and wakes long after.
        """
        still = looks = 0
        before = -1
        while True:
            if self._is_over(thread):
                return
            looks += 1
            still = 0 if self._beats != before else still + 1
            if still:
                self._poke()
            before = self._beats
            if still * LOOK >= terms.stuck and not _waits(thread):
                self.braked = f"the loop had no turn for {terms.stuck:g} s"
            elif looks * LOOK >= terms.longest:
                self.braked = f"there was no end after {terms.longest:g} s"
            if self.braked:
                break
        self.stack, self.doing = _where(thread), self._doing()
        self.left_behind = not self._stop(thread)

    def _is_over(self, thread: threading.Thread) -> bool:
        """Waits a little for it. After a Ctrl-C in `join` a thread says that it is dead (3.11)."""
        if self._over.wait(LOOK):
            thread.join(1)
        return self._over.is_set()

    def _stop(self, thread: threading.Thread) -> bool:
        """Pull the brake until the work has ended; whether it has."""
        for _ in range(PULLS):
            self._pull(thread)
            if self._is_over(thread):
                return True
        return False

    def _pull(self, thread: threading.Thread) -> None:
        if thread.ident is not None and not self._over.is_set():
            raises = ctypes.pythonapi.PyThreadState_SetAsyncExc
            raises(ctypes.c_ulong(thread.ident), ctypes.py_object(Brake))
            self._poke()

    def _poke(self) -> None:
        """An idle loop has no turn either; woken up, it has one, and a brake takes effect."""
        loop = self._looping
        if loop is not None and not loop.is_closed():
            try:
                loop.call_soon_threadsafe(_nothing)
            except RuntimeError:  # it has been closed meanwhile
                return


def _nothing() -> None:
    """What a loop is woken up for."""


@contextmanager
def _silent_brake() -> Generator[None]:
    """A brake pulled while something is finalized cannot be raised, and would be printed."""
    before = sys.unraisablehook

    def tell(unraisable: Any) -> None:
        if unraisable.exc_type is not Brake:
            before(unraisable)

    sys.unraisablehook = tell
    try:
        yield
    finally:
        sys.unraisablehook = before


def _waits(thread: threading.Thread) -> bool:
    """Whether the loop of *thread* is about its own business: then nobody keeps it from a turn."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code.co_filename in IN_WAIT:
        if frame.f_code.co_name == "_run_once":
            return True
        frame = frame.f_back
    return False


def _where(thread: threading.Thread) -> str:
    """The innermost calls of *thread*, from the last one of the kit on."""
    frame = sys._current_frames().get(thread.ident or 0)
    calls: list[traceback.FrameSummary] = [*traceback.extract_stack(frame)] if frame else []
    ours = [index for index, call in enumerate(calls) if call.filename.startswith(HERE)]
    within = calls[ours[-1] + 1 :] if ours else calls
    return "".join(traceback.format_list((within or calls)[-6:])).rstrip()
