"""The diary of a run: each step in words for a person, departures marked."""

import asyncio
import linecache
from collections.abc import Callable
from functools import partial
from inspect import unwrap
from pathlib import Path
from types import FrameType
from typing import Any, Final

from ._awaited import frames
from ._schedules_loop import Entry, ScheduleLoop
from ._schedules_threads import Visitor, Visitors, standing_still

__all__ = ("Diary",)

_HERE: Final = Path.cwd()
_LIBRARY: Final = str(Path(linecache.__file__).parent)


class Diary:
    """Listens to a loop and its visitors."""

    def __init__(self, loop: ScheduleLoop, visitors: Visitors) -> None:
        self._loop = loop
        self._tasks: list[asyncio.Task[Any]] = []
        self.pages: list[str] = []
        loop.watch = self._step
        visitors.told = self._interrupted

    def close(self) -> None:
        """Let go of what was seen, so that it can tell at its end what it has to tell."""
        self._tasks.clear()
        del self._loop

    def _step(self, chosen: Entry | Visitor | None, option: int, options: list[Any]) -> None:
        with standing_still():
            line = f"{self._loop.steps:3}. {self._name(chosen)}"
            if option:
                line += f"\n       instead of: {self._name(options[0])}"
        self.pages.append(("> " if option else "  ") + line)

    def _interrupted(self, how: str, visitor: Visitor, frame: FrameType | None) -> None:
        with standing_still():
            where = "" if frame is None else f" before {place(frame)}"
        self.pages.append(f"> {self._loop.steps:3}  {visitor.name} {how}{where}")

    def _name(self, chosen: Entry | Visitor | None) -> str:
        if chosen is None:
            return "time passes until the next timer"
        if isinstance(chosen, Visitor):
            return f"{chosen.name} {'goes on' if chosen.begun else 'arrives'}"
        kind = "timer: " if chosen.timer else ""
        handle: Any = chosen.handle
        callback = handle._callback
        arguments = handle._args
        owner: Any = getattr(callback, "__self__", None)
        if is_task(owner):
            return f"{kind}{self._task(owner)}"
        return f"{kind}{call(callback, arguments)}"

    def _task(self, task: "asyncio.Task[Any]") -> str:
        if task not in self._tasks:
            self._tasks.append(task)
        coroutine: Any = task.get_coro()
        name = getattr(coroutine, "__qualname__", repr(coroutine))
        inside = list(frames(coroutine))
        # Where it waits in its own words, rather than in those of asyncio.
        own = [each for each in inside if not each.f_code.co_filename.startswith(_LIBRARY)]
        where = place((own or inside)[-1]) if inside else "its end"
        return f"task {self._tasks.index(task) + 1} ({name}) at {where}"


def is_task(thing: object) -> bool:
    return isinstance(thing, asyncio.Task)


def place(frame: FrameType) -> str:
    path, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(path, line).strip()
    return f"{shortened(path)}:{line} in {frame.f_code.co_qualname}: {source}"


def shortened(path: str) -> str:
    full = Path(path)
    return str(full.relative_to(_HERE)) if full.is_relative_to(_HERE) else path


def call(callback: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """*callback*, and the function it is given to call, if it is given one first."""
    while isinstance(callback, partial):
        arguments = (*callback.args, *arguments)
        callback = callback.func
    name = getattr(callback, "__qualname__", None) or type(callback).__qualname__
    if arguments and callable(arguments[0]) and not isinstance(arguments[0], asyncio.Future):
        return f"{name} → {call(arguments[0], arguments[1:])}"
    return f"{name}{_defined(callback)}"


def _defined(callback: Callable[..., Any]) -> str:
    function: Any = unwrap(getattr(callback, "__func__", callback))
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    return f" ({shortened(code.co_filename)}:{code.co_firstlineno})"
