"""The loop of the schedule explorer: at each step a script decides which ready callback runs next.

docs/decisions/0010 defines what is legal, and why. In short: the callbacks that one callback
schedules run in that order, those of one actor (a task, or the object whose method is called) run
in that order, a timer never runs before what was ready when it became due, and timers of different
times keep their order. Everything else may run in any order, and threads may arrive at any time.
"""

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Final, TypeVar, TypeVarTuple

from .._deadlock_report import deadlock_report
from ..virtual_time import Deadlock
from .script import Script
from .threads import ScheduledThread, ThreadScheduler

__all__ = ("ReadyCallback", "ScheduleLoop", "StepLimitExceeded")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_SAME_TIME: Final = 1e-9


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
        """How many callbacks and timers there have been."""
        self._ready: list[ReadyCallback] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._current: ReadyCallback | None = None
        self._root = object()
        self._idle_waiters: list[asyncio.Future[None]] = []
        self.errors: list[dict[str, Any]] = []
        self.steps: int = 0
        self.on_step: (
            Callable[[ReadyCallback | ScheduledThread | None, int, list[Any]], None] | None
        ) = None
        """Called before each step: what runs (None: the clock), its option, and all options."""

    # -- scheduling --------------------------------------------------------------------------------
    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self._check_closed()
        handle = asyncio.Handle(callback, args, self, context)
        thread, current = self._threads.current, self._current
        parent: int
        default: object
        if thread is not None:
            parent, default = -1 - self._threads.threads.index(thread), thread
        elif current is not None:
            parent, default = current.number, current.actor
        else:
            parent, default = 0, self._root
        self._append(handle, actor_of(callback, default), parent, 0)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self._check_closed()
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, handle))
        return handle

    def _append(self, handle: asyncio.Handle, actor: object, parent: int, after: int) -> None:
        self._count += 1
        self._ready.append(ReadyCallback(handle, actor, parent, self._count, after))

    def _check_closed(self) -> None:
        if self.is_closed():
            raise RuntimeError("Event loop is closed")

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

    async def wait_until_idle(self) -> None:
        future: asyncio.Future[None] = self.create_future()
        self._idle_waiters.append(future)
        await future

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
            self._timers.clear()

    def _run_once(self) -> None:
        """Run one step; stop if none is possible after the end of the scenario."""
        is_over = self._main.done()
        if is_over and not self._ready and not self._threads.ready():
            self.stop()
            return
        if self.steps >= self._max_steps:
            raise StepLimitExceeded(f"the scenario goes on after {self._max_steps} steps")
        self._queue_due_timers()
        options: list[ReadyCallback | ScheduledThread | None] = [
            *self._runnable(),
            *self._threads.ready(),
        ]
        if not options and self._idle_waiters:
            self._idle_waiters.pop(0).set_result(None)
            return
        if not is_over and not self._idle_waiters and self._clock_may_advance():
            options.append(None)
        if not options:
            if is_over:
                self.stop()
                return
            waiting = self._threads.unfinished()
            reason = "no thread can arrive"
            raise Deadlock(deadlock_report(self, reason, "threads that wait:", waiting))
        option = self._script.step(len(options)) if len(options) > 1 else 0
        chosen = options[option]
        self.steps += 1
        if self.on_step is not None:
            self.on_step(chosen, option, options)
        if chosen is None:
            self._now = max(self._now, self._timers[0][0])
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
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if not self._timers:
            return False
        return not self._ready or self._timers[0][0] - self._now <= self._slack

    def _queue_due_timers(self) -> None:
        """Queue due timers after what is ready; timers of one time may run in any order."""
        time, after = -1.0, 0
        while self._timers and self._timers[0][0] <= self._now + _SAME_TIME:
            when, _, handle = heapq.heappop(self._timers)
            if when - time > _SAME_TIME:
                time, after = when, self._count + 1
            if not handle.cancelled():
                self._append(handle, object(), -self._count - 1_000_000, after)


def _settle(settle: Callable[[Any], None], future: asyncio.Future[Any], outcome: Any) -> None:
    if not future.done():
        settle(outcome)
