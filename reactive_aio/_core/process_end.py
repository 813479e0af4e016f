"""ProcessEnd: a process that was asked to terminate ends in time, whatever hangs."""

import os
import sys
from contextlib import suppress
from math import inf
from signal import SIG_DFL, Signals, raise_signal, signal
from threading import Event, Thread, main_thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from .foreign_text import printable
from .loop import LoopHandle, Task, current_task
from .observation.waiting import what_waits
from .run_control import DrainTimes

if TYPE_CHECKING:
    from types import FrameType

NOT_DONE: Final = 75  # EX_TEMPFAIL of sysexits.h: what was not done is to be done again
_FLUSHED_WITHIN: Final = 0.5
_LEAST_END: Final = 1.0
"""The seconds that the end of the program may take although there is no time."""


called_off: Final = Event()
"""Set by tests, whose process goes on after a signal."""


_begun: "Final[set[ProcessEnd]]" = set()
"""Those of flows that are being drained: the process does not end while one of them has time."""


class ProcessEnd:
    """What follows from a first signal, for a program of which *seconds* are left then.

    ===========================  ================================================================
    seconds after the signal     what happens
    ===========================  ================================================================
    0.8 of them                  what the flow has not done is cancelled: `drain`
    0.9, or half a second more   its cleanup is not awaited any longer: `drain`
    1.0, or a second more        the process ends, with the status 75
    ===========================  ================================================================

    The last of them needs no event loop: a thread waits for it. It also covers what the program
    does when `run_until_signal` has returned: its own cleanups, the end of `asyncio.run`, and the
    threads for which Python waits.
    """

    def __init__(self, signals: tuple[Signals, ...], seconds: float | None) -> None:
        self._signals = signals
        self._seconds = seconds
        self._loop_handle = LoopHandle("run_until_signal()")
        self._task: Task[Any] | None = current_task()
        self._first = ""
        self._began = 0.0
        self._is_said = False
        self._was_cut = ""
        self._cut = ""

    @property
    def drain(self) -> DrainTimes:
        """The times of the flow: it leaves a tenth to what the program does after it."""
        return DrainTimes.within(self._seconds, ends_at=0.9)

    def drained(self) -> None:
        """The flow has ended, and its time counts for no other one any more."""
        _begun.discard(self)

    def begin(self, number: int) -> None:
        """The process was asked to terminate: the next signal ends it then and there.

        That is done by the system, so that neither a blocked event loop nor a cleanup delays it.
        """
        for each in self._signals:
            signal(each, SIG_DFL)
        if self._first:
            raise_signal(number)
        self._first, self._began = Signals(number).name, monotonic()
        _begun.add(self)
        if self._seconds is not None and not _is_interactive():
            Thread(target=self._wait, name="reactive_aio-process-end", daemon=True).start()

    def note_what_waits(self) -> None:
        """Keep for `say_what_was_cut` what the flow waits for now, when its time is over."""
        self._cut = self._line("its work was cut", self._waits())

    def say_what_was_cut(self, waited_for: str) -> None:
        """Write one line on it to standard error; on *waited_for*, if something else has cut it."""
        self._was_cut = self._cut or self._line("its work was cut", waited_for)
        sys.stderr.write(f"{self._was_cut}\n")

    def say_what_waits(self) -> None:
        """Write one line on what is still waited for to standard error."""
        self._is_said = True
        sys.stderr.write(f"{self._line('still waiting', self._waits())}\n")

    def _waits(self) -> str:
        return what_waits(self._loop_handle.event_loop, self._task)

    def _line(self, how: str, waits: str) -> str:
        passed = monotonic() - self._began
        return printable(f"run_until_signal: {passed:.1f} s after {self._first}, {how}: {waits}")

    def _wait(self) -> None:
        if called_off.wait(self._left()):
            return
        while any(each is not self and each._left() > 0 for each in list(_begun)):
            if called_off.wait(_LEAST_END):  # another flow of the program has more time
                return
        if not self._is_ending():
            return
        waits = self._waits()
        if not self._is_said and any(each not in self._was_cut for each in waits.split("; ")):
            with suppress(OSError):
                if sys.platform != "win32":  # where Python 3.11 lacks it
                    os.set_blocking(2, False)  # a reader that hangs as well does not keep it
                line = self._line("still waiting", waits)
                os.write(2, f"{line}\n".encode(errors="backslashreplace"))
        with suppress(RuntimeError):  # Python ends already, and starts no thread
            flushing = Thread(target=_flush, name="reactive_aio-flush", daemon=True)
            flushing.start()
            flushing.join(_FLUSHED_WITHIN)
        os._exit(NOT_DONE)

    def _left(self) -> float:
        """The seconds until the process ends."""
        if self._seconds is None:
            return inf
        whole = max(self._seconds, 0.8 * self._seconds + _LEAST_END)
        return self._began + whole - monotonic()

    def _is_ending(self) -> bool:
        """Whether the program still does what belongs to its end, and nothing else."""
        if self._task is None or not self._task.done() or not main_thread().is_alive():
            return True
        if self._loop_handle.is_closed:
            return False
        frame: FrameType | None = sys._current_frames().get(main_thread().ident or 0)
        while frame is not None:
            if frame.f_code.co_qualname == "Runner.close":  # of asyncio, at the end of its `run`
                return True
            frame = frame.f_back
        return False


def _is_interactive() -> bool:
    """Whether somebody types what the process does next, as in a notebook: it is not to end."""
    return "ps1" in vars(sys)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
