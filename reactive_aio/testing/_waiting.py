"""Where the tasks of a loop wait, in words for a person."""

import asyncio
import linecache
from collections.abc import Iterator
from types import FrameType


def where_tasks_wait(loop: asyncio.AbstractEventLoop) -> list[str]:
    """One paragraph for each unfinished task of *loop*, oldest first."""
    tasks = sorted(
        asyncio.all_tasks(loop), key=lambda task: (len(task.get_name()), task.get_name())
    )
    if not tasks:
        return ["no task is left: the loop was told to run for ever"]
    return ["waiting tasks:", *(line for task in tasks for line in describe(task))]


def describe(task: asyncio.Task[object]) -> list[str]:
    coroutine = task.get_coro()
    name = getattr(coroutine, "__qualname__", repr(coroutine))
    return [f"  {task.get_name()}: {name}", *(f"    {line}" for line in locations(coroutine))]


def locations(awaitable: object) -> Iterator[str]:
    """Each ``await`` that the task is in, outermost first."""
    for frame in frames(awaitable):
        path, line = frame.f_code.co_filename, frame.f_lineno
        source = linecache.getline(path, line).strip()
        yield f"{path}:{line} in {frame.f_code.co_qualname}: {source}"


def frames(awaitable: object) -> Iterator[FrameType]:
    while (frame := frame_of(awaitable)) is not None:
        yield frame
        awaitable = awaited_by(awaitable)


def frame_of(awaitable: object) -> FrameType | None:
    for name in ("cr_frame", "gi_frame", "ag_frame"):
        if hasattr(awaitable, name):
            frame: FrameType | None = getattr(awaitable, name)
            return frame
    return None


def awaited_by(awaitable: object) -> object:
    for name in ("cr_await", "gi_yieldfrom", "ag_await"):
        if hasattr(awaitable, name):
            inner: object = getattr(awaitable, name)
            return inner
    return None
