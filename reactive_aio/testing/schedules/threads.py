"""Threads that run only when the schedule lets them.

Exactly one of the loop's thread and the scheduled threads runs at a time; all others wait. Control
changes hands between two steps of the loop, and at traced lines of the package under test: there
the loop may be interrupted for a thread, and a thread for the loop. During a run, the modules of
that package refer to our locks, threads and clock instead of those of `threading` and `time`, so
that nothing depends on the machine.
"""

import asyncio
import sys
import threading
import time
from _thread import LockType, allocate_lock
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import CodeType, FrameType, SimpleNamespace
from typing import Any, Final

from .script import INSIDE_STEP, Script

RETURNS_WITHIN: Final = 5.0
"""Seconds of real time in which a thread must return control."""
_PROOF: Final = ("reactive_aio.testing", "reactive_aio.tck")  # these are never interrupted
_CLOCKS: Final = (time.perf_counter, time.monotonic, time.time)
Trace = Callable[[FrameType, str, Any], Any]
MachineReference = tuple[dict[str, Any], str, Any]
"""A namespace, and the name and value of a thread, lock or clock in it."""


@contextmanager
def without_running_loop() -> Generator[None]:
    """The explorer blocks here, not the code under test: a check of blocking calls passes it."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)


class ThreadStuck(RuntimeError):
    """A thread, or the loop, waits for something that cannot happen."""


def _is_under_test(module: str, packages: tuple[str, ...]) -> bool:
    """Whether *module* is one of *packages* or below one; the proof itself must be named."""
    if module not in packages and any(_is_below(module, proof) for proof in _PROOF):
        return False
    return any(_is_below(module, package) for package in packages)


def _is_below(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def machine_references(packages: tuple[str, ...]) -> list[MachineReference]:
    """Where the modules of *packages* refer to threads, locks and clocks."""
    machine = {id(each) for each in (threading, threading.Thread, threading.Lock, time, *_CLOCKS)}
    return [
        (vars(module), name, value)
        for module_name, module in sorted(sys.modules.items())
        if _is_under_test(module_name, packages)
        for name, value in vars(module).items()
        if id(value) in machine
    ]


class ScheduledThread(threading.Thread):
    """A thread that runs when its *scheduler* lets it."""

    scheduler: "ThreadScheduler"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.daemon = True
        self.gate: LockType = allocate_lock()
        """Released to let it run."""
        self.gate.acquire()
        self.can_proceed: Callable[[], bool] | None = None
        """While it waits: whether what it waits for has happened."""
        self.error: BaseException | None = None
        self.has_begun: bool = False
        self.is_done: bool = False

    def start(self) -> None:
        """From now on it may arrive at any time."""
        self.scheduler.admit(self)

    @property
    def is_ready(self) -> bool:
        return not self.is_done and (self.can_proceed is None or self.can_proceed())

    def is_alive(self) -> bool:
        if self.scheduler.is_closed:
            return super().is_alive()
        return self in self.scheduler.threads and not self.is_done

    def join(self, timeout: float | None = None) -> None:
        if self.scheduler.is_closed:
            super().join(timeout)
            return
        while not self.is_done:
            self.scheduler.wait(lambda: self.is_done, None)

    def run(self) -> None:
        self.scheduler.trace_current_thread()
        try:
            super().run()
        except BaseException as error:
            self.error = error
        finally:
            sys.settrace(None)
            self.is_done = True
            self.scheduler.return_control()


class CooperativeLock:
    """A lock that hands control to another thread instead of blocking in real time."""

    scheduler: "ThreadScheduler"

    def __init__(self) -> None:
        self._held = False
        self._owner: ScheduledThread | None = None

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        while self._held:
            if not blocking:
                return False
            self.scheduler.wait(lambda: not self._held, self._owner)
        self._held, self._owner = True, self.scheduler.current
        return True

    def release(self) -> None:
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held, self._owner = False, None
        self.scheduler.lock_released()

    def locked(self) -> bool:
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class ThreadScheduler:
    """The threads of one run, and which of them has control."""

    def __init__(self, script: Script, packages: tuple[str, ...]) -> None:
        self._script = script
        self._packages = packages
        self.threads: list[ScheduledThread] = []
        self.current: ScheduledThread | None = None
        """The thread that has control, None for the loop."""
        self.thread_code: dict[CodeType, None] = {}
        """The code of the package that the threads have run."""
        self.on_interruption: Callable[[str, ScheduledThread, FrameType], None] | None = None
        self._loop_gate = allocate_lock()
        self._loop_gate.acquire()
        self._loop_waits = False
        """The loop waits for a lock that a thread holds."""
        self.is_closed: bool = False
        """The run is over: no thread waits any more."""
        self._is_traced: dict[CodeType, bool] = {}
        self._previous_trace = sys.gettrace()  # of a debugger, or of a coverage measurement
        self.thread: type[ScheduledThread] = type("Thread", (ScheduledThread,), {"scheduler": self})
        self.lock: type[CooperativeLock] = type("Lock", (CooperativeLock,), {"scheduler": self})

    # -- called by the loop ------------------------------------------------------------------------
    def admit(self, thread: ScheduledThread) -> None:
        self.threads.append(thread)
        if self.current is None:
            self.trace_current_thread()

    def ready(self) -> list[ScheduledThread]:
        """The threads that can proceed now."""
        return [thread for thread in self.threads if thread.is_ready]

    def unfinished(self) -> list[ScheduledThread]:
        return [thread for thread in self.threads if not thread.is_done]

    def run(self, thread: ScheduledThread) -> None:
        """Give control to *thread* until it ends, waits, or is interrupted."""
        self.current = thread
        try:
            with without_running_loop():
                if thread.has_begun:
                    thread.gate.release()
                else:
                    thread.has_begun = True
                    threading.Thread.start(thread)
                if not self._loop_gate.acquire(timeout=RETURNS_WITHIN):
                    raise ThreadStuck(
                        f"the thread {thread.name!r} did not return within {RETURNS_WITHIN:g} s: "
                        "it waits for something that the explorer cannot see"
                    )
        finally:
            self.current = None

    def close(self) -> None:
        """Let every thread run to its end."""
        sys.settrace(self._previous_trace)
        self.is_closed = True
        for thread in self.threads:
            if thread.has_begun and not thread.is_done:
                thread.gate.release()
            if thread.has_begun:
                threading.Thread.join(thread, 1)

    # -- called by the threads ---------------------------------------------------------------------
    def trace_current_thread(self) -> None:
        if self._script.preemptions_left:
            sys.settrace(self._trace)

    def return_control(self) -> None:
        if not self.is_closed:
            self._loop_gate.release()

    def pause(self, thread: ScheduledThread) -> None:
        """Return control to the loop, and wait until *thread* gets it again."""
        if not self.is_closed:
            self._loop_gate.release()
            thread.gate.acquire()

    def wait(self, condition: Callable[[], bool], owner: ScheduledThread | None) -> None:
        """Wait for *condition*; *owner*, if known, is the thread that will make it true."""
        here = self.current
        if self.is_closed:
            raise SystemExit  # only threads of a run that has failed still wait
        if here is not None:
            here.can_proceed = condition
            self.pause(here)
            here.can_proceed = None
        elif owner is not None and owner.is_ready:
            self._loop_waits = True
            self.run(owner)
            self._loop_waits = False
        else:
            raise ThreadStuck("the loop waits for a lock that no thread will release")

    def lock_released(self) -> None:
        """Return control to the loop if it waits for a lock."""
        if self._loop_waits and self.current is not None:
            self.pause(self.current)

    # -- preemption --------------------------------------------------------------------------------
    def _trace(self, frame: FrameType, event: str, argument: object) -> "Trace | None":
        code = frame.f_code
        is_traced = self._is_traced.get(code)
        if is_traced is None:
            module: str = frame.f_globals.get("__name__", "")
            is_traced = self._is_traced[code] = _is_under_test(module, self._packages)
        if not is_traced:
            return None
        if self.current is not None:
            self.thread_code[code] = None
        return self._trace_line

    def _trace_line(self, frame: FrameType, event: str, argument: object) -> "Trace | None":
        script = self._script
        if event != "line" or not script.preemptions_left or self.is_closed or self._loop_waits:
            return self._trace_line
        here = self.current
        others = self.ready() if here is None else []
        if here is None and not others:
            return self._trace_line
        options = 2 if here is not None else 1 + len(others)
        option = script.choose(INSIDE_STEP, options, (frame.f_code, frame.f_lineno))
        if option:
            thread = here or others[option - 1]
            if self.on_interruption is not None:
                how = "is held up" if thread is here else "interrupts"
                self.on_interruption(how, thread, frame)
            if thread is here:
                self.pause(thread)
            else:
                self.run(thread)
        return self._trace_line

    # -- the package under test --------------------------------------------------------------------
    @contextmanager
    def patched(
        self, references: list[MachineReference], clock: Callable[[], float]
    ) -> Generator[None]:
        """Replace the machine's threads, locks and clocks by ours and *clock*."""
        replacements: dict[int, Any] = {
            id(threading): SimpleNamespace(
                **vars(threading) | {"Thread": self.thread, "Lock": self.lock}
            ),
            id(threading.Thread): self.thread,
            id(threading.Lock): self.lock,
            id(time): SimpleNamespace(**vars(time) | {each.__name__: clock for each in _CLOCKS}),
            **{id(each): clock for each in _CLOCKS},
        }
        for namespace, name, original in references:
            namespace[name] = replacements[id(original)]
        try:
            yield
        finally:
            for namespace, name, original in references:
                namespace[name] = original
