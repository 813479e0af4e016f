"""The log of a run: each step as a line of text, departures marked."""

import asyncio
import linecache
from collections.abc import Callable
from functools import partial
from inspect import unwrap
from pathlib import Path
from types import FrameType
from typing import Any, Final

from .._deadlock_report import frames, location, short_path
from .loop import ReadyCallback, ScheduleLoop
from .threads import ScheduledThread, ThreadScheduler, without_running_loop

__all__ = ("StepLog",)

_STANDARD_LIBRARY: Final = str(Path(linecache.__file__).parent)


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

    def _interruption(self, how: str, thread: ScheduledThread, frame: FrameType | None) -> None:
        with without_running_loop():
            where = "" if frame is None else f" before {location(frame)}"
        self.lines.append(f"> {self._loop.steps:3}  {thread.name} {how}{where}")

    def _describe(self, chosen: ReadyCallback | ScheduledThread | None) -> str:
        if chosen is None:
            return "time passes until the next timer"
        if isinstance(chosen, ScheduledThread):
            return f"{chosen.name} {'goes on' if chosen.has_begun else 'arrives'}"
        kind = "timer: " if chosen.is_timer else ""
        handle: Any = chosen.handle
        callback = handle._callback
        owner: Any = getattr(callback, "__self__", None)
        if _is_task(owner):
            return f"{kind}{self._describe_task(owner)}"
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


def _is_task(thing: object) -> bool:
    return isinstance(thing, asyncio.Task)


def _describe_call(callback: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """*callback*, and its first argument if that is a function to call."""
    while isinstance(callback, partial):
        arguments = (*callback.args, *arguments)
        callback = callback.func
    name = getattr(callback, "__qualname__", None) or type(callback).__qualname__
    if arguments and callable(arguments[0]) and not isinstance(arguments[0], asyncio.Future):
        return f"{name} → {_describe_call(arguments[0], arguments[1:])}"
    return f"{name}{_definition(callback)}"


def _definition(callback: Callable[..., Any]) -> str:
    function: Any = unwrap(getattr(callback, "__func__", callback))
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    return f" ({short_path(code.co_filename)}:{code.co_firstlineno})"
