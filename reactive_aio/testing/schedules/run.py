"""One run of a scenario under one script: whether it failed, and its steps."""

import asyncio
import gc
import linecache
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from inspect import unwrap
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from .._deadlock_report import describe_task, frames, location, short_path
from ..virtual_time import Deadlock
from .loop import ReadyCallback, ScheduleLoop, StepLimitExceeded
from .script import Script
from .threads import (
    MachineReference,
    ScheduledThread,
    ThreadScheduler,
    ThreadStuck,
    without_running_loop,
)

__all__ = ("Options", "Run", "Scenario", "Schedule", "paused_garbage_collector", "run")

_STANDARD_LIBRARY: Final = str(Path(linecache.__file__).parent)


class Schedule:
    """The argument of a scenario: it starts threads, and has the errors that reached the loop."""

    def __init__(self, loop: ScheduleLoop, threads: ThreadScheduler) -> None:
        self._loop = loop
        self._threads = threads

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
        await self._loop.wait_until_idle()

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
    return (
        LeftOver("\n".join(["left over when the scenario has ended:", *lines])) if lines else None
    )


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
    """Collect between runs only, and skip all older objects."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
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

    def _step(
        self, chosen: ReadyCallback | ScheduledThread | None, option: int, options: list[Any]
    ) -> None:
        with without_running_loop():
            line = f"{self._loop.steps:3}. {self._describe(chosen)}"
            if option:
                line += f"\n       instead of: {self._describe(options[0])}"
        self.lines.append(("> " if option else "  ") + line)

    def _interruption(self, how: str, thread: ScheduledThread, frame: FrameType) -> None:
        with without_running_loop():
            where = location(frame)
        self.lines.append(f"> {self._loop.steps:3}  {thread.name} {how} before {where}")

    def _describe(self, chosen: ReadyCallback | ScheduledThread | None) -> str:
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
