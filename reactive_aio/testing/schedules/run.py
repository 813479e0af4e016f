"""One run of a scenario under one script, on a loop where the script decides what runs next.

docs/decisions/0034 defines what is legal, and why. In short: the callbacks that one callback
schedules run in that order, those of one actor (a task, or the object whose method is called) run
in that order, a timer never runs before what was ready when it became due, and timers of different
times keep their order. Everything else may run in any order, and threads may arrive at any time.
"""

import asyncio
import gc
import heapq
import linecache
import sys
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from inspect import unwrap
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, Final, TypeVar, TypeVarTuple

from .._deadlock_report import deadlock_report, describe_task, frames, location, short_path
from ..virtual_time import Deadlock
from .script import BETWEEN_STEPS, Script
from .threads import (
    MachineReference,
    ScheduledThread,
    ThreadScheduler,
    ThreadStuck,
    without_running_loop,
)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_SAME_TIME: Final = 1e-9
_STANDARD_LIBRARY: Final = str(Path(linecache.__file__).parent)


# -- the loop --------------------------------------------------------------------------------------
class StepLimitExceeded(RuntimeError):
    """A run took more steps than it may."""


@dataclass(slots=True, eq=False)
class ReadyCallback:
    """A callback that is ready to run, and what must run before it."""

    handle: asyncio.Handle
    actor: object
    parent: int
    """The number of the step that scheduled it; negative for a thread."""
    number: int
    after: int
    """Ready callbacks with a smaller number run before it; 0 unless it is a timer's."""

    @property
    def is_timer(self) -> bool:
        return self.after > 0


Step = ReadyCallback | ScheduledThread | None
"""What may run; None: the clock advances."""


def actor_of(callback: object, default: object) -> object:
    """The task or object whose method *callback* is; for a plain function, *default*."""
    while isinstance(callback, partial):
        callback = callback.func
    owner = getattr(callback, "__self__", None)
    return default if owner is None or isinstance(owner, ModuleType | Context) else owner


class ScheduleLoop(asyncio.BaseEventLoop):
    """A loop without sockets and without a wall clock, which follows a script."""

    _main: asyncio.Task[Any]
    _max_steps: int
    _scheduled: list[asyncio.TimerHandle]
    """The heap of timers, which `call_at` fills."""

    def __init__(
        self, script: Script, threads: ThreadScheduler, *, slack: float, fifo: bool
    ) -> None:
        super().__init__()
        self.set_debug(False)  # no tracebacks are recorded: the runs are many
        self._script = script
        self._threads = threads
        self._slack = slack
        self._fifo = fifo
        self._now = 0.0
        self._count = 0
        """How many callbacks have been ready."""
        self._ready: list[ReadyCallback] = []
        self._current: ReadyCallback | None = None
        self._root: object = object()
        self.idle_waiters: list[asyncio.Future[None]] = []
        """Of `Schedule.wait_until_idle`."""
        self.errors: list[dict[str, Any]] = []
        self.steps: int = 0
        self.on_step: Callable[[Step, int, list[Step]], None] | None = None
        """Called before each step: what runs, its option, and all options."""

    # -- scheduling --------------------------------------------------------------------------------
    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        handle = asyncio.Handle(callback, args, self, context)
        parent, default = 0, self._root
        if (thread := self._threads.current) is not None:
            parent, default = -1 - self._threads.threads.index(thread), thread
        elif (current := self._current) is not None:
            parent, default = current.number, current.actor
        self._append(handle, actor_of(callback, default), parent, 0)
        return handle

    call_soon_threadsafe = call_soon

    def _append(self, handle: asyncio.Handle, actor: object, parent: int, after: int) -> None:
        self._count += 1
        self._ready.append(ReadyCallback(handle, actor, parent, self._count, after))

    def time(self) -> float:
        return self._now

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run *func* on a scheduled thread; its result arrives as a callback of its own."""
        future: asyncio.Future[T] = self.create_future()

        def work() -> None:
            if future.cancelled():
                return
            try:
                result = func(*args)
            except BaseException as error:
                self.call_soon_threadsafe(_settle, future.set_exception, future, error)
            else:
                self.call_soon_threadsafe(_settle, future.set_result, future, result)

        name = getattr(func, "__qualname__", "a function in an executor")
        self._threads.thread(target=work, name=name).start()
        return future

    # -- running -----------------------------------------------------------------------------------
    def run(self, main: Coroutine[Any, Any, Any], max_steps: int) -> asyncio.Task[Any]:
        """Run *main* to its end, then everything that is ready or arrives; return its task."""
        self._main, self._max_steps = self.create_task(main, name="the scenario"), max_steps
        try:
            self.run_forever()
            return self._main
        finally:
            del self._main  # a task refers to its loop, and cycles are frozen before the next run

    def close(self) -> None:
        """Cancel the remaining tasks, run them to their end, and accept nothing more."""
        known_errors = len(self.errors)
        asyncio._set_running_loop(self)
        try:
            for task in sorted(asyncio.all_tasks(self), key=lambda task: task.get_name()):
                task.cancel()
            for _ in range(1000):
                if not self._ready:
                    break
                self._run_callback(self._ready.pop(0))
        finally:
            asyncio._set_running_loop(None)
            super().close()
            del self.errors[known_errors:]

    def _run_once(self) -> None:
        """Run one step; stop if none is possible after the end of the scenario."""
        is_over = self._main.done()
        if is_over and not self._ready and not self._threads.ready():
            self.stop()
            return
        if self.steps >= self._max_steps:
            raise StepLimitExceeded(f"the scenario goes on after {self._max_steps} steps")
        self._queue_due_timers()
        options: list[Step] = [*self._runnable(), *self._threads.ready()]
        if not options and self.idle_waiters:
            self.idle_waiters.pop(0).set_result(None)
            return
        if not is_over and not self.idle_waiters and self._clock_may_advance():
            options.append(None)
        if not options:
            if is_over:
                self.stop()
                return
            waiting = self._threads.unfinished()
            reason = "no thread can arrive"
            raise Deadlock(deadlock_report(self, reason, "threads that wait:", waiting))
        option = self._script.choose(BETWEEN_STEPS, len(options)) if len(options) > 1 else 0
        chosen = options[option]
        self.steps += 1
        if self.on_step is not None:
            self.on_step(chosen, option, options)
        if chosen is None:
            self._now = max(self._now, self._scheduled[0].when())
        elif isinstance(chosen, ReadyCallback):
            self._ready.remove(chosen)
            self._run_callback(chosen)
        else:
            self._threads.run(chosen)

    def _run_callback(self, callback: ReadyCallback) -> None:
        self._current = callback
        try:
            callback.handle._run()
        finally:
            self._current = None

    # -- which steps are legal ---------------------------------------------------------------------
    def _runnable(self) -> list[ReadyCallback]:
        """The ready callbacks that may run next; first the one that asyncio would run."""
        self._ready = [each for each in self._ready if not each.handle.cancelled()]
        if not self._ready:
            return []
        first = self._ready[0]
        if self._fifo:
            ties = first.is_timer and [each for each in self._ready if each.after == first.after]
            return ties or [first]
        actors: list[object] = []
        parents: set[int] = set()
        runnable: list[ReadyCallback] = []
        for each in self._ready:
            if each.is_timer:
                is_free = each.after <= first.number
            else:
                is_free = each.parent not in parents
                is_free = is_free and not any(actor is each.actor for actor in actors)
            if is_free:
                runnable.append(each)
            actors.append(each.actor)
            parents.add(each.parent)
        return runnable

    def _clock_may_advance(self) -> bool:
        """Whether the clock may advance to the next timer."""
        while self._scheduled and self._scheduled[0].cancelled():
            heapq.heappop(self._scheduled)
        if not self._scheduled:
            return False
        return not self._ready or self._scheduled[0].when() - self._now <= self._slack

    def _queue_due_timers(self) -> None:
        """Queue due timers after what is ready; timers of one time may run in any order."""
        time, after = -1.0, 0
        while self._scheduled and self._scheduled[0].when() <= self._now + _SAME_TIME:
            handle = heapq.heappop(self._scheduled)
            if handle.when() - time > _SAME_TIME:
                time, after = handle.when(), self._count + 1
            if not handle.cancelled():
                self._append(handle, object(), -self._count - 1_000_000, after)


def _settle(settle: Callable[[Any], None], future: asyncio.Future[Any], outcome: Any) -> None:
    if not future.done():
        settle(outcome)


# -- one run ---------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False, repr=False)
class Schedule:
    """The argument of a scenario: it starts threads, and has the errors that reached the loop."""

    _loop: ScheduleLoop
    _threads: ThreadScheduler

    def thread(self, work: Callable[[], object], name: str = "") -> ScheduledThread:
        """Run *work* on its own thread, at any time from now on, while the loop is stopped.

        An exception of *work* fails the run.
        """
        name = name or f"thread {len(self._threads.threads) + 1}"
        thread = self._threads.thread(target=work, name=name)
        thread.start()
        return thread

    async def wait_until_idle(self) -> None:
        """Wait until nothing is ready and no thread can proceed; no time passes meanwhile."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._loop.idle_waiters.append(future)
        await future

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The calls of the loop's exception handler; a scenario removes those it expects."""
        return self._loop.errors


Scenario = Callable[[Schedule], Coroutine[Any, Any, object]]


@dataclass(frozen=True, slots=True)
class Options:
    """The parameters of an exploration that every run needs."""

    packages: tuple[str, ...]
    preemptions: int
    slack: float
    fifo: bool
    max_steps: int
    machine: list[MachineReference] = field(default_factory=list[MachineReference])
    """The threads, locks and clocks to which the packages refer."""


@dataclass(slots=True)
class Run:
    """The outcome of a run."""

    script: Script
    error: BaseException | None = None
    thread_code: dict[CodeType, None] = field(default_factory=dict[CodeType, None])
    steps: list[str] = field(default_factory=list[str])


class LeftOver(AssertionError):
    """A task or thread has not ended with the scenario."""


class LoopError(AssertionError):
    """The loop's exception handler was called."""


def run(scenario: Scenario, script: Script, options: Options, *, log: bool = False) -> Run:
    """Run *scenario* once; with *log*, record its steps."""
    gc.freeze()  # collections need not look through the records of earlier runs
    threads = ThreadScheduler(script, options.packages)
    loop = ScheduleLoop(script, threads, slack=options.slack, fifo=options.fifo)
    step_log = StepLog(loop, threads) if log else None
    errors = loop.errors
    outcome = Run(script, thread_code=threads.thread_code)
    with _unraisable_errors(errors), threads.patched(options.machine, loop.time):
        outcome.error = _run_to_end(scenario, loop, threads, options.max_steps)
        del loop
        if step_log is not None:
            step_log.close()
        if outcome.error is None:
            gc.collect()  # a task whose exception was never retrieved reports it when it is freed
            outcome.error = _loop_error(errors)
    if step_log is not None:
        outcome.steps = step_log.lines
    return outcome


def _run_to_end(
    scenario: Scenario, loop: ScheduleLoop, threads: ThreadScheduler, max_steps: int
) -> BaseException | None:
    try:
        task = loop.run(scenario(Schedule(loop, threads)), max_steps)
        if task.cancelled():
            return asyncio.CancelledError("the scenario was cancelled")
        found = [task.exception()]
        found += [thread.error for thread in threads.threads]
        found += [_loop_error(loop.errors), _left_over(loop, threads)]
        errors = [error for error in found if error is not None]
        for further in errors[1:]:
            errors[0].add_note(f"besides, {type(further).__name__}: {further}")
        return errors[0] if errors else None
    except (Deadlock, StepLimitExceeded, ThreadStuck) as error:
        return error
    finally:
        threads.close()
        loop.close()


def _loop_error(errors: list[dict[str, Any]]) -> BaseException | None:
    if not errors:
        return None
    context = errors[0]
    cause = context.get("exception")
    what = f": {cause!r}" if cause is not None else ""
    error = LoopError(f"the loop's exception handler was called: {context.get('message')!r}{what}")
    error.__cause__ = cause
    return error


def _left_over(loop: ScheduleLoop, threads: ThreadScheduler) -> BaseException | None:
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    lines = [line for task in tasks for line in describe_task(task)]
    lines += [f"  {thread.name} waits" for thread in threads.unfinished()]
    if not lines:
        return None
    return LeftOver("\n".join(["left over when the scenario has ended:", *lines]))


@contextmanager
def _unraisable_errors(errors: list[dict[str, Any]]) -> Generator[None]:
    """Record the errors of finalizers too."""

    def record(unraisable: Any) -> None:
        what = unraisable.err_msg or f"ignored in {unraisable.object!r}"
        errors.append({"message": what, "exception": unraisable.exc_value})

    before, sys.unraisablehook = sys.unraisablehook, record
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def paused_garbage_collector() -> Generator[None]:
    """Collect between runs only, and skip all older objects; what the caller froze stays frozen."""
    was_enabled, has_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        if not has_frozen:
            gc.unfreeze()
        if was_enabled:
            gc.enable()


# -- the steps, as text ----------------------------------------------------------------------------
class StepLog:
    """Records the steps of a loop and the interruptions of its threads."""

    def __init__(self, loop: ScheduleLoop, threads: ThreadScheduler) -> None:
        self._loop = loop
        self._tasks: list[asyncio.Task[Any]] = []
        self.lines: list[str] = []
        loop.on_step = self._step
        threads.on_interruption = self._interruption

    def close(self) -> None:
        """Release the tasks, so that one with an exception never retrieved reports it."""
        self._tasks.clear()
        del self._loop

    def _step(self, chosen: Step, option: int, options: list[Step]) -> None:
        with without_running_loop():
            line = f"{self._loop.steps:3}. {self._describe(chosen)}"
            if option:
                line += f"\n       instead of: {self._describe(options[0])}"
        self.lines.append(("> " if option else "  ") + line)

    def _interruption(self, how: str, thread: ScheduledThread, frame: FrameType) -> None:
        with without_running_loop():
            where = location(frame)
        self.lines.append(f"> {self._loop.steps:3}  {thread.name} {how} before {where}")

    def _describe(self, chosen: Step) -> str:
        if chosen is None:
            return "time passes until the next timer"
        if isinstance(chosen, ScheduledThread):
            return f"{chosen.name} {'goes on' if chosen.has_begun else 'arrives'}"
        kind = "timer: " if chosen.is_timer else ""
        handle: Any = chosen.handle
        callback = handle._callback
        if isinstance(getattr(callback, "__self__", None), asyncio.Task):
            return f"{kind}{self._describe_task(callback.__self__)}"
        return f"{kind}{_describe_call(callback, handle._args)}"

    def _describe_task(self, task: "asyncio.Task[Any]") -> str:
        if task not in self._tasks:
            self._tasks.append(task)
        coroutine: Any = task.get_coro()
        name = getattr(coroutine, "__qualname__", repr(coroutine))
        stack = list(frames(coroutine))
        # The innermost await outside of asyncio and the rest of the standard library.
        own = [each for each in stack if not each.f_code.co_filename.startswith(_STANDARD_LIBRARY)]
        where = location((own or stack)[-1]) if stack else "its end"
        return f"task {self._tasks.index(task) + 1} ({name}) at {where}"


def _describe_call(callback: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """*callback*, and its first argument if that is a function to call."""
    while isinstance(callback, partial):
        arguments = (*callback.args, *arguments)
        callback = callback.func
    name = getattr(callback, "__qualname__", None) or type(callback).__qualname__
    if arguments and callable(arguments[0]) and not isinstance(arguments[0], asyncio.Future):
        return f"{name} → {_describe_call(arguments[0], arguments[1:])}"
    function: Any = unwrap(getattr(callback, "__func__", callback))
    code = getattr(function, "__code__", None)
    if code is None:
        return name
    return f"{name} ({short_path(code.co_filename)}:{code.co_firstlineno})"
