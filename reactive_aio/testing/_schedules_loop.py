"""The loop of the schedule explorer: at each step a script says who of those that may goes on.

docs/decisions/0010 says what is legal, and why. In short: what one callback schedules runs in that
order, what concerns one actor (a task, or the object whose method is called) runs in that order, a
timer never runs before what was ready when it became due, and timers of different times keep their
order. Everything else may happen in any order, and threads may arrive at any time.
"""

import asyncio
import heapq
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context
from functools import partial
from types import ModuleType
from typing import Any, Final, TypeVar, TypeVarTuple
from weakref import WeakSet

from ._schedules_script import Script
from ._schedules_threads import Visitor, Visitors
from ._waiting import where_tasks_wait, where_threads_wait
from .virtual_time import Deadlock

__all__ = ("Endless", "Entry", "ScheduleLoop")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_SAME_TIME: Final = 1e-9


class Endless(RuntimeError):
    """A run took more steps than it may."""


class Entry:
    """Something ready to run, and after whom."""

    __slots__ = ("actor", "behind", "handle", "number", "parent", "timer")

    def __init__(
        self, handle: asyncio.Handle, actor: object, parent: int, number: int, behind: int
    ) -> None:
        self.handle = handle
        self.actor = actor
        self.parent = parent
        """The number of the step that scheduled it; of a visitor the negative one."""
        self.number = number
        self.behind = behind
        """Everything ready whose number is smaller goes first."""
        self.timer: bool = behind > 0


def actor_of(callback: object, otherwise: object) -> object:
    """The task or object whose method *callback* is; a plain function continues its scheduler."""
    while isinstance(callback, partial):
        callback = callback.func
    owner = getattr(callback, "__self__", None)
    return otherwise if owner is None or isinstance(owner, ModuleType | Context) else owner


class ScheduleLoop(asyncio.AbstractEventLoop):
    """A loop without sockets and without a wall clock, which follows a script."""

    def __init__(self, script: Script, visitors: Visitors, *, slack: float, fifo: bool) -> None:
        self._script = script
        self._visitors = visitors
        self._slack = slack
        self._fifo = fifo
        self._now = 0.0
        self._numbers = self._tasks = 0
        self._ready: list[Entry] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._current: Entry | None = None
        self._root = object()
        self._closed = False
        self._generators: WeakSet[AsyncGenerator[Any, Any]] = WeakSet()
        self._awaiting_quiet: list[asyncio.Future[None]] = []
        self.errors: list[dict[str, Any]] = []
        self.steps: int = 0
        self.watch: Callable[[Entry | Visitor | None, int, list[Any]], None] | None = None
        """Told of each step: who goes on (None: the clock), which option that is, and of which."""

    # -- scheduling --------------------------------------------------------------------------------
    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self._check()
        handle = asyncio.Handle(callback, args, self, context)
        visitor, current = self._visitors.current, self._current
        parent: int
        otherwise: object
        if visitor is not None:
            parent, otherwise = -1 - self._visitors.all.index(visitor), visitor
        elif current is not None:
            parent, otherwise = current.number, current.actor
        else:
            parent, otherwise = 0, self._root
        self._append(handle, actor_of(callback, otherwise), parent, 0)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self._check()
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._numbers += 1
        heapq.heappush(self._timers, (when, self._numbers, handle))
        return handle

    def _append(self, handle: asyncio.Handle, actor: object, parent: int, behind: int) -> None:
        self._numbers += 1
        self._ready.append(Entry(handle, actor, parent, self._numbers, behind))

    def _check(self) -> None:
        if self._closed:
            raise RuntimeError("Event loop is closed")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """asyncio says so to be able to clear up; a run is too short for that."""

    # -- what asyncio asks of a loop ---------------------------------------------------------------
    def time(self) -> float:
        return self._now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self._closed

    def is_closed(self) -> bool:
        return self._closed

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coroutine[Any, Any, T] | Any, **options: Any) -> asyncio.Task[T]:
        return asyncio.Task(coro, loop=self, **options)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(context)

    def get_exception_handler(self) -> None:
        return None

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """*func* runs on a thread that arrives at some time; its result arrives by itself."""
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
        self._visitors.thread(target=work, name=name).start()
        return future

    async def shutdown_asyncgens(self) -> None:
        for generator in list(self._generators):
            await generator.aclose()

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is none."""

    async def quiet(self) -> None:
        """Wait until nothing is ready and no thread can go on; no time passes meanwhile."""
        future: asyncio.Future[None] = self.create_future()
        self._awaiting_quiet.append(future)
        await future

    # -- running -----------------------------------------------------------------------------------
    def run(self, work: Coroutine[Any, Any, Any], most: int) -> asyncio.Task[Any]:
        """Run *work* to its end, then whatever is ready or arrives; return its task."""
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._generators.add, finalizer=self._finalize)
        asyncio._set_running_loop(self)
        try:
            task: asyncio.Task[Any] = self.create_task(work, name="the scenario")
            while not task.done() or self._ready or self._visitors.ready():
                if self.steps >= most:
                    raise Endless(f"the scenario goes on after {most} steps")
                if not self._go_on(task.done()):
                    break
            return task
        finally:
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def close(self) -> None:
        """Cancel what is left, let it go, and take nothing more."""
        told = len(self.errors)
        asyncio._set_running_loop(self)
        try:
            for task in sorted(asyncio.all_tasks(self), key=lambda task: task.get_name()):
                task.cancel()
            for _ in range(1000):
                if not self._ready:
                    break
                self._run(self._ready.pop(0))
        finally:
            asyncio._set_running_loop(None)
            self._closed = True
            del self.errors[told:]
            self._ready.clear()
            self._timers.clear()

    def _finalize(self, generator: AsyncGenerator[Any, Any]) -> None:
        if not self._closed:
            self.call_soon(self.create_task, generator.aclose())

    def _go_on(self, over: bool) -> bool:
        """One step; False when there is none."""
        self._ring()
        options: list[Entry | Visitor | None] = [*self._may_run(), *self._visitors.ready()]
        if not options and self._awaiting_quiet:
            self._awaiting_quiet.pop(0).set_result(None)
            return True
        if not over and not self._awaiting_quiet and self._may_wait():
            options.append(None)
        if not options:
            if over:
                return False
            raise Deadlock(self._deadlock())
        option = self._script.step(len(options)) if len(options) > 1 else 0
        chosen = options[option]
        self.steps += 1
        if self.watch is not None:
            self.watch(chosen, option, options)
        if chosen is None:
            self._now = max(self._now, self._timers[0][0])
        elif isinstance(chosen, Entry):
            self._ready.remove(chosen)
            self._run(chosen)
        else:
            self._visitors.let(chosen)
        return True

    def _run(self, entry: Entry) -> None:
        self._current = entry
        try:
            entry.handle._run()
        finally:
            self._current = None

    # -- what may come next ------------------------------------------------------------------------
    def _may_run(self) -> list[Entry]:
        """Those that are ready and before whom nobody must go; first the one asyncio would run."""
        self._ready = [entry for entry in self._ready if not entry.handle.cancelled()]
        if not self._ready:
            return []
        first = self._ready[0]
        if self._fifo:
            ties = first.timer and [each for each in self._ready if each.behind == first.behind]
            return ties or [first]
        actors: list[object] = []
        parents: set[int] = set()
        may: list[Entry] = []
        for entry in self._ready:
            if entry.timer:
                free = entry.behind <= first.number
            else:
                free = entry.parent not in parents
                free = free and not any(actor is entry.actor for actor in actors)
            if free:
                may.append(entry)
            actors.append(entry.actor)
            parents.add(entry.parent)
        return may

    def _may_wait(self) -> bool:
        """Whether the clock may move on to the next timer."""
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if not self._timers:
            return False
        return not self._ready or self._timers[0][0] - self._now <= self._slack

    def _ring(self) -> None:
        """Put timers that are due behind what is ready; those of one time are among equals."""
        time, behind = -1.0, 0
        while self._timers and self._timers[0][0] <= self._now + _SAME_TIME:
            when, _, handle = heapq.heappop(self._timers)
            if when - time > _SAME_TIME:
                time, behind = when, self._numbers + 1
            if not handle.cancelled():
                self._append(handle, object(), -self._numbers - 1_000_000, behind)

    def _deadlock(self) -> str:
        lines = [
            f"deadlock at {self._now:g} s of virtual time: nothing is ready, no timer is set,"
            " and no thread can arrive",
            *where_tasks_wait(self),
        ]
        if waiting := self._visitors.unfinished():
            lines += ["threads that wait:", *where_threads_wait(waiting)]
        return "\n".join(lines)


def _settle(settle: Callable[[Any], None], future: asyncio.Future[Any], outcome: Any) -> None:
    if not future.done():
        settle(outcome)
