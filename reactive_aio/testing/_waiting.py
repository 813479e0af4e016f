"""Where the tasks of a loop wait, and for whom, in words for a person."""

import asyncio
import linecache
import sys
import threading
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any, Final

from ._awaited import Task, Wait, frames, wait_of

_NOT_THEIRS: Final = ("threading", "queue", "concurrent.futures.", "asyncio.",
                      "reactive_aio.testing._")  # fmt: skip
"""Where a thread waits is told by the line that calls those."""

__all__ = ("describe", "locations", "where_tasks_wait", "where_threads_wait")


def where_tasks_wait(loop: asyncio.AbstractEventLoop) -> list[str]:
    """Who waits for each other in a circle, then a paragraph for each unfinished task of *loop*."""
    tasks = sorted(
        asyncio.all_tasks(loop), key=lambda task: (len(task.get_name()), task.get_name())
    )
    if not tasks:
        return ["no task is left: the loop was told to run for ever"]
    waits = {task: wait_of(task, tasks) for task in tasks}
    paragraphs = [line for task in tasks for line in _paragraph(task, waits[task])]
    return [*_circle(waits), "waiting tasks:", *paragraphs]


def describe(task: asyncio.Task[Any]) -> list[str]:
    """Who *task* is, what it waits for, and where, outermost first."""
    return _paragraph(task, wait_of(task, list(asyncio.all_tasks(task.get_loop()))))


def _paragraph(task: Task, wait: Wait | None) -> list[str]:
    coroutine = task.get_coro()
    name = getattr(coroutine, "__qualname__", repr(coroutine))
    told = [f"    waits for {wait.what}"] if wait is not None else []
    return [f"  {task.get_name()}: {name}", *told, *(f"    {at}" for at in locations(coroutine))]


def locations(awaitable: object) -> Iterator[str]:
    """Each ``await`` that the task is in, outermost first."""
    return map(_place, frames(awaitable))


def _place(frame: FrameType) -> str:
    path, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(path, line).strip()
    return f"{path}:{line} in {frame.f_code.co_qualname}: {source}"


def where_threads_wait(threads: Iterable[threading.Thread]) -> list[str]:
    """A paragraph for each of *threads*: its name, and the line of its own that waits."""
    inside = sys._current_frames()
    lines: list[str] = []
    for thread in threads:
        frame = _own(inside.get(thread.ident or 0))
        lines += [f"  {thread.name}", *([f"    {_place(frame)}"] if frame is not None else [])]
    return lines


def _own(frame: FrameType | None) -> FrameType | None:
    """The innermost that calls what is not its own; a tool's wrapper may be within that."""
    inner = frame
    while inner is not None and inner.f_back is not None:
        if _is_own(inner.f_back) and not _is_own(inner):
            return inner.f_back
        inner = inner.f_back
    return frame


def _is_own(frame: FrameType) -> bool:
    return not frame.f_globals.get("__name__", "").startswith(_NOT_THEIRS)


def _circle(waits: dict[Task, Wait | None]) -> list[str]:
    """The shortest way from a task back to itself, if each waits for the next."""
    circles = [way for task in waits if (way := _back_to(task, waits))]
    if not circles:
        return []
    shortest = min(circles, key=len)
    return [f"in a circle: {' -> '.join(task.get_name() for task in [*shortest, shortest[0]])}"]


def _back_to(task: Task, waits: dict[Task, Wait | None]) -> list[Task]:
    ways: list[list[Task]] = [[task]]
    seen: set[Task] = set()
    for way in ways:
        wait = waits.get(way[-1])
        for other in wait.on if wait is not None else ():
            if other is task:
                return way
            if other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return []
