"""Where the tasks of a loop wait, in words for a person."""

import asyncio
import linecache
from collections.abc import Iterator
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType


def where_tasks_wait(loop: asyncio.AbstractEventLoop) -> list[str]:
    """One paragraph for each unfinished task of *loop*, oldest first."""
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: (len(task.get_name()), task.get_name()))
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
    while True:
        inner: object
        if isinstance(awaitable, CoroutineType):
            frame, inner = awaitable.cr_frame, awaitable.cr_await
        elif isinstance(awaitable, GeneratorType):
            frame, inner = awaitable.gi_frame, awaitable.gi_yieldfrom
        elif isinstance(awaitable, AsyncGeneratorType):
            frame, inner = awaitable.ag_frame, awaitable.ag_await
        else:
            return
        if frame is None:
            return
        yield frame
        awaitable = inner
