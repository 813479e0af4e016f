"""Threads that arrive when the schedule says so, and stand still at all other times.

One baton goes round between the loop's thread and its *visitors*; who has not got it waits. It is
passed on between two steps of the loop, and at traced lines of the package under test: there the
loop may be interrupted for a visitor, and a visitor for the loop. While a run lasts, the modules of
that package see our locks, threads and clock where they refer to those of `threading` and `time`,
so that nothing depends on the machine.
"""

import asyncio
import sys
import threading
import time
from _thread import LockType, allocate_lock
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import CodeType, FrameType, ModuleType
from typing import Any, Final

from ._schedules_script import Script

__all__ = ("Seen", "Stuck", "Visitor", "Visitors", "belongs", "seen_by",
           "standing_still")  # fmt: skip

PATIENCE: Final = 5.0  # seconds of real time until a thread that does not come back is given up
_PROOF: Final = ("reactive_aio.testing", "reactive_aio.tck")  # no points inside ourselves
_CLOCKS: Final = (time.perf_counter, time.monotonic, time.time)
Trace = Callable[[FrameType, str, Any], Any]
Seen = tuple[dict[str, Any], str, Any]
"""The namespace, the name and the value of something that stands for the machine."""


@contextmanager
def standing_still() -> Generator[None]:
    """What the explorer does here is no blocking call of the code under test."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)


class Stuck(RuntimeError):
    """A thread waits for something that cannot come."""


def belongs(name: str, packages: tuple[str, ...]) -> bool:
    """Whether the module *name* is one of *packages*, or below one, and not of the proof itself."""
    if name not in packages and any(_below(name, proof) for proof in _PROOF):
        return False
    return any(_below(name, package) for package in packages)


def _below(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def seen_by(packages: tuple[str, ...]) -> "list[Seen]":
    """Where the modules of *packages* have threads, locks and clocks by name."""
    machine = {id(each) for each in (threading, threading.Thread, threading.Lock, time, *_CLOCKS)}
    return [
        (vars(module), name, value)
        for module_name, module in sorted(sys.modules.items())
        if belongs(module_name, packages)
        for name, value in vars(module).items()
        if id(value) in machine
    ]


class Visitor(threading.Thread):
    """A thread that the schedule lets run. *visits* is who passes the baton."""

    visits: "Visitors"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.daemon = True
        self.gate: LockType = allocate_lock()
        self.gate.acquire()
        self.waits: Callable[[], bool] | None = None
        """What it waits for: false as long as it must."""
        self.error: BaseException | None = None
        self.begun: bool = False
        self.over: bool = False

    def start(self) -> None:
        """From now on it may arrive at any time."""
        self.visits.admit(self)

    def really_start(self) -> None:
        super().start()

    @property
    def ready(self) -> bool:
        return not self.over and (self.waits is None or self.waits())

    def is_alive(self) -> bool:
        if self.visits.closed:
            return super().is_alive()
        return self in self.visits.all and not self.over

    def join(self, timeout: float | None = None) -> None:
        if self.visits.closed:
            super().join(timeout)
            return
        while not self.over:
            self.visits.wait(lambda: self.over, None)

    def run(self) -> None:
        self.visits.arrived()
        try:
            super().run()
        except BaseException as error:
            self.error = error
        finally:
            sys.settrace(None)
            self.over = True
            self.visits.leave()


class CoopLock:
    """A lock whose waiters pass the baton on, so that nobody waits in real time."""

    visits: "Visitors"

    def __init__(self) -> None:
        self._held = False
        self._owner: Visitor | None = None

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        while self._held:
            if not blocking:
                return False
            self.visits.wait(self._is_free, self._owner)
        self._held, self._owner = True, self.visits.current
        return True

    def release(self) -> None:
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held, self._owner = False, None
        self.visits.released()

    def locked(self) -> bool:
        return self._held

    def _is_free(self) -> bool:
        return not self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class _Like(ModuleType):
    """*module* with some of its names replaced."""

    def __init__(self, module: ModuleType, **names: object) -> None:
        super().__init__(module.__name__)
        vars(self).update({**vars(module), **names})


class Visitors:
    """The threads of one run, and the baton."""

    def __init__(self, script: Script, packages: tuple[str, ...]) -> None:
        self._script = script
        self._packages = packages
        self.all: list[Visitor] = []
        self.current: Visitor | None = None
        """Who has the baton, None for the loop."""
        self.touched: dict[CodeType, None] = {}
        """The code of the package that visitors have run."""
        self.told: Callable[[str, Visitor, FrameType | None], None] = _nobody
        self._home = allocate_lock()
        self._home.acquire()
        self._wanted = False  # the loop waits for a lock that a visitor holds
        self.closed: bool = False
        """The run is over: nobody waits any more."""
        self._ours: dict[CodeType, bool] = {}
        self._before = sys.gettrace()  # a debugger's, or of who measures coverage
        self.thread: type[Visitor] = type("Visitor", (Visitor,), {"visits": self})
        self.lock: type[CoopLock] = type("Lock", (CoopLock,), {"visits": self})

    # -- for the loop ------------------------------------------------------------------------------
    def admit(self, visitor: Visitor) -> None:
        self.all.append(visitor)
        if self._script.left and self.current is None:
            sys.settrace(self._trace)

    def ready(self) -> list[Visitor]:
        """Who could go on now."""
        return [visitor for visitor in self.all if visitor.ready]

    def unfinished(self) -> list[Visitor]:
        return [visitor for visitor in self.all if not visitor.over]

    def let(self, visitor: Visitor) -> None:
        """Give *visitor* the baton until it ends, waits, or is interrupted."""
        self.current = visitor
        try:
            with standing_still():
                if visitor.begun:
                    visitor.gate.release()
                else:
                    visitor.begun = True
                    visitor.really_start()
                if not self._home.acquire(timeout=PATIENCE):
                    raise Stuck(
                        f"the thread {visitor.name!r} did not come back within {PATIENCE:g} s: it "
                        "waits for something that the explorer does not see"
                    )
        finally:
            self.current = None

    def close(self) -> None:
        """Let everybody run out."""
        sys.settrace(self._before)
        self.closed = True
        for visitor in self.all:
            if visitor.begun and not visitor.over:
                visitor.gate.release()
            if visitor.begun:
                threading.Thread.join(visitor, 1)

    # -- for the visitors --------------------------------------------------------------------------
    def arrived(self) -> None:
        if self._script.left:
            sys.settrace(self._trace)

    def leave(self) -> None:
        if not self.closed:
            self._home.release()

    def pause(self, visitor: Visitor) -> None:
        """Pass the baton to the loop, and wait until it comes back."""
        if not self.closed:
            self._home.release()
            visitor.gate.acquire()

    def wait(self, until: Callable[[], bool], owner: Visitor | None) -> None:
        """Wait for *until*, which *owner*, if known, will make true."""
        here = self.current
        if self.closed:
            raise SystemExit  # only threads of a run that has failed are still waiting
        if here is not None:
            here.waits = until
            self.pause(here)
            here.waits = None
        elif owner is not None and owner.ready:
            self._wanted = True
            self.let(owner)
            self._wanted = False
        else:
            raise Stuck("the loop waits for a lock that nobody will release")

    def released(self) -> None:
        """A lock is free: if the loop waits for it, it goes on."""
        if self._wanted and self.current is not None:
            self.pause(self.current)

    # -- preemption --------------------------------------------------------------------------------
    def _trace(self, frame: FrameType, event: str, argument: object) -> "Trace | None":
        code = frame.f_code
        ours = self._ours.get(code)
        if ours is None:
            name: str = frame.f_globals.get("__name__", "")
            ours = self._ours[code] = belongs(name, self._packages)
        if not ours:
            return None
        if self.current is not None:
            self.touched[code] = None
        return self._trace_line

    def _trace_line(self, frame: FrameType, event: str, argument: object) -> "Trace | None":
        if event != "line" or not self._script.left or self.closed or self._wanted:
            return self._trace_line
        here = self.current
        others = self.ready() if here is None else []
        if here is None and not others:
            return self._trace_line
        options = 2 if here is not None else 1 + len(others)
        option = self._script.line(options, (frame.f_code, frame.f_lineno))
        if option:
            self._interrupt(here, others, option, frame)
        return self._trace_line

    def _interrupt(
        self, here: Visitor | None, others: list[Visitor], option: int, frame: FrameType
    ) -> None:
        if here is not None:
            self.told("is held up", here, frame)
            self.pause(here)
        else:
            self.told("interrupts", others[option - 1], frame)
            self.let(others[option - 1])

    # -- what the package sees ---------------------------------------------------------------------
    @contextmanager
    def in_place(self, seen: "list[Seen]", clock: Callable[[], float]) -> Generator[None]:
        """Let the package see our threads, locks and *clock* for those of the machine."""
        clocks = {each.__name__: clock for each in _CLOCKS}
        instead: dict[int, Any] = {
            id(threading): _Like(threading, Thread=self.thread, Lock=self.lock),
            id(threading.Thread): self.thread,
            id(threading.Lock): self.lock,
            id(time): _Like(time, **clocks),
            **{id(each): clock for each in _CLOCKS},
        }
        for space, name, original in seen:
            space[name] = instead[id(original)]
        try:
            yield
        finally:
            for space, name, original in seen:
                space[name] = original


def _nobody(how: str, visitor: Visitor, frame: FrameType | None) -> None:
    """Nobody listens."""
