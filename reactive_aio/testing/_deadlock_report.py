"""What the tasks and threads of a loop wait for, as text.

`Task.get_stack` returns one frame of a suspended task, and asyncio does not record what a future
is for. So this follows the coroutines of a task to the innermost: if that is a method of asyncio's
(`Lock.acquire`, `Queue.get` …), its object is what the task waits for, under its name in the
caller. A task that is awaited, or is inside ``async with`` of the lock, has to act first. For an
event, a queue or a future, any task may act that can reach it from its local variables.
"""

import asyncio
import gc
import linecache
import threading
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from types import (
    AsyncGeneratorType,
    CoroutineType,
    FrameType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final, NamedTuple

from .thread_frames import frame_of

Task = asyncio.Task[Any]

_MAX_DISTANCE: Final = 4
"""From a frame to a cell, an object in it, its attributes, and their contents."""
_MAX_OBJECTS: Final = 2_000
"""Objects that are visited for one task."""
_OPAQUE: Final = (ModuleType, type, FrameType, asyncio.Future, asyncio.AbstractEventLoop)
"""The search does not go into these."""
_WRAPPERS: Final = ("async_generator_asend", "async_generator_athrow", "coroutine_wrapper",
                    "anext_awaitable")  # fmt: skip
_WAITING_MODULES: Final = ("threading", "queue", "concurrent.futures.", "asyncio.",
                           "reactive_aio.testing.virtual_time")  # fmt: skip
"""The line that calls these says where a thread waits."""
_CWD: Final = Path.cwd()


# -- the report ------------------------------------------------------------------------------------
def deadlock_report(
    loop: asyncio.AbstractEventLoop, reason: str, title: str, threads: Sequence[threading.Thread]
) -> str:
    """Why *loop* is idle forever, its tasks, and *threads* under *title*."""
    heading = (
        f"deadlock at {loop.time():g} s of virtual time: nothing is ready, no timer is set,"
        f" and {reason}"
    )
    return task_report(loop, heading, title, threads)


def task_report(
    loop: asyncio.AbstractEventLoop,
    heading: str,
    title: str = "",
    threads: Sequence[threading.Thread] = (),
) -> str:
    """*heading*, a cycle of *loop*'s tasks, all of them, and *threads* under *title*."""
    tasks = sorted(
        asyncio.all_tasks(loop), key=lambda task: (len(task.get_name()), task.get_name())
    )
    waits = {task: _wait_of(task, tasks) for task in tasks}
    lines = [
        heading,
        *_cycle(waits),
        "waiting tasks:" if tasks else "the loop has no task, and runs forever",
    ]
    for task, wait in waits.items():
        lines += _paragraph(task, wait)
    lines += [title] if threads else []
    for thread in threads:
        lines.append(f"  {thread.name}")
        if frame := frame_of(thread):
            lines.append(f"    {location(_user_frame(frame))}")
    return "\n".join(lines)


def describe_task(task: Task) -> list[str]:
    """The name of *task*, what it waits for, and each ``await`` it is in, outermost first."""
    return _paragraph(task, _wait_of(task, list(asyncio.all_tasks(task.get_loop()))))


def location(frame: FrameType) -> str:
    path, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(path, line).strip()
    return f"{short_path(path)}:{line} in {frame.f_code.co_qualname}: {source}"


def short_path(path: str) -> str:
    full = Path(path)
    return str(full.relative_to(_CWD)) if full.is_relative_to(_CWD) else path


def _paragraph(task: Task, wait: "_Wait | None") -> list[str]:
    coroutine = task.get_coro()
    lines = [f"waits for {wait.what}"] if wait is not None else []
    lines += map(location, frames(coroutine))
    name = getattr(coroutine, "__qualname__", repr(coroutine))
    return [f"  {task.get_name()}: {name}", *(f"    {line}" for line in lines)]


def _user_frame(innermost: FrameType) -> FrameType:
    """The innermost frame that calls a waiting module; a tool's wrapper may be inside that."""
    stack = [frame for frame, _ in traceback.walk_stack(innermost)]
    calls = (caller for frame, caller in pairwise(stack)
             if _is_user_code(caller) and not _is_user_code(frame))  # fmt: skip
    return next(calls, stack[-1])


def _is_user_code(frame: FrameType) -> bool:
    return not frame.f_globals.get("__name__", "").startswith(_WAITING_MODULES)


def _cycle(waits: "dict[Task, _Wait | None]") -> list[str]:
    """The shortest path from a task back to itself, if each task on it waits for the next."""
    paths = [[task] for task in waits]
    seen: set[tuple[Task, Task]] = set()
    for path in paths:
        start, wait = path[0], waits[path[-1]]
        for other in wait.on if wait is not None else ():
            if other is start:
                return [f"cycle: {' -> '.join(task.get_name() for task in [*path, start])}"]
            if other in waits and (start, other) not in seen:
                seen.add((start, other))
                paths.append([*path, other])
    return []


# -- the coroutines of a task ----------------------------------------------------------------------
def frames(awaitable: object) -> Iterator[FrameType]:
    """The frame of each coroutine or generator that *awaitable* is in, outermost first."""
    return (frame for _, frame in suspended(awaitable))


def suspended(awaitable: object) -> Iterator[tuple[object, FrameType]]:
    """Each coroutine or generator that *awaitable* is in, with its frame."""
    while True:
        for prefix, inner in (("cr", "await"), ("gi", "yieldfrom"), ("ag", "await")):
            frame: FrameType | None = getattr(awaitable, f"{prefix}_frame", None)
            if frame is not None:
                yield awaitable, frame
                awaitable = _unwrapped(getattr(awaitable, f"{prefix}_{inner}"))
                break
        else:
            return


def _unwrapped(inner: object) -> object:
    """asyncio's wrappers do not expose their content; the garbage collector does."""
    while type(inner).__name__ in _WRAPPERS:
        inner = next(filter(_may_be_wrapped, gc.get_referents(inner)), None)
    return inner


def _may_be_wrapped(each: object) -> bool:
    return isinstance(each, (CoroutineType, AsyncGeneratorType)) or type(each).__name__ in _WRAPPERS


# -- what one task waits for -----------------------------------------------------------------------
class _Wait(NamedTuple):
    what: str
    """The words after "waits for"."""
    on: list[Task]
    """The tasks that have to act, or may."""


def _wait_of(task: Task, tasks: list[Task]) -> _Wait | None:
    """What *task* waits for, if it waits; *tasks* are those that may have to act."""
    future: Any = getattr(task, "_fut_waiter", None)
    if future is None:
        return None
    others = [each for each in tasks if each is not task]
    if isinstance(future, asyncio.Task):
        return _for_futures([future], others)
    children = [each for each in getattr(future, "_children", ()) if not each.done()]
    if inner := children or [each for each in _shielded(future) if each is not task]:
        return _for_futures(inner, others)
    stack = list(frames(task.get_coro()))[::-1]
    methods = [each for each in stack if each.f_globals.get("__name__", "").startswith("asyncio.")]
    caller = next((frame for frame in stack if frame not in methods), None)
    for frame in methods:
        if (wait := _for_method(frame, caller, others)) is not None:
            return wait
    return _for_reachable(_called("future", future, caller), future, others)


def _shielded(future: Any) -> list[Any]:
    """What a future made by ``asyncio.shield`` waits for: a closure of its callback holds it."""
    calls: list[Any] = [call for call, _ in getattr(future, "_callbacks", None) or ()]
    cells = [getattr(call, "__closure__", None) or () for call in calls
             if getattr(call, "__qualname__", "").startswith("shield.")]  # fmt: skip
    contents = [cell.cell_contents for each in cells for cell in each]
    return [each for each in contents if isinstance(each, asyncio.Task)]


_METHODS: Final[dict[tuple[type, str], str]] = {
    (asyncio.Lock, "acquire"): "{0}",
    (asyncio.Semaphore, "acquire"): "{0}",
    (asyncio.Condition, "wait"): "{0} to be notified",
    (asyncio.Event, "wait"): "{0} to be set",
    (asyncio.Queue, "get"): "an item in {0}",
    (asyncio.Queue, "put"): "room in {0}, full with {1.maxsize}",
    (asyncio.Queue, "join"): "all items of {0} to be processed",
    (asyncio.Barrier, "wait"): "all parties of {0}",
    (asyncio.StreamReader, "_wait_for_data"): "data in {0}",
}
"""What the caller of a method waits for: {0} is the object and its name, {1} the object."""


def _for_method(frame: FrameType, caller: FrameType | None, others: list[Task]) -> _Wait | None:
    """The wait, if *frame* is that of a method that makes its caller wait."""
    owner, method = frame.f_locals.get("self"), frame.f_code.co_name
    if method == "_wait" and "fs" in frame.f_locals:
        return _for_futures([each for each in frame.f_locals["fs"] if not each.done()], others)
    if isinstance(owner, asyncio.TaskGroup) and method == "__aexit__":
        return _for_futures([each for each in vars(owner)["_tasks"] if not each.done()], others)
    for (kind, name), words in _METHODS.items():
        if name == method and isinstance(owner, kind):
            what = words.format(_called(type(owner).__name__, owner, caller), owner)
            explain = _for_lock if name == "acquire" else _for_reachable
            return explain(what, owner, others)
    return None


def _for_futures(futures: list[Any], others: list[Task]) -> _Wait:
    tasks: list[Task] = [each for each in futures if isinstance(each, asyncio.Task)]
    if not tasks:
        return _for_reachable(f"{len(futures)} futures", futures[0], others)
    return _Wait(f"the task{'s' * (len(tasks) > 1)} {', '.join(_names(tasks))}", tasks)


def _for_lock(what: str, lock: object, others: list[Task]) -> _Wait:
    if owners := [task for task in others if _has_entered(task, lock)]:
        return _Wait(f"{what}, held by {' and '.join(_names(owners))}", owners)
    return _for_reachable(f"{what}, held outside of 'async with'", lock, others)


def _for_reachable(what: str, thing: object, others: list[Task]) -> _Wait:
    near = [task for task in others if id(thing) in _reachable(task)]
    names = " and ".join(_names(near)) or "no other task"
    return _Wait(f"{what}, reachable from {names}", near)


def _names(tasks: list[Task]) -> list[str]:
    return sorted(task.get_name() for task in tasks)


# -- names of objects ------------------------------------------------------------------------------
def _called(kind: str, thing: object, caller: FrameType | None) -> str:
    name = _name_in(thing, caller)
    article = "an" if kind[0] in "AEIOU" else "a"
    return f"the {kind} '{name}'" if name else f"{article} {kind}"


def _name_in(thing: object, frame: FrameType | None) -> str:
    """The variable of *frame* that is *thing*, or the attribute of one."""
    variables = frame.f_locals if frame is not None else {}
    names = (name for name, value in variables.items() if value is thing)
    attributes = (f"{name}.{attribute}" for name, value in variables.items()
                  for attribute, part in _attributes(value) if part is thing)  # fmt: skip
    return next(chain(names, attributes), "")


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    """The attributes that *value* itself has, without calling its code."""
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        for name, slot in vars(kind).items():
            if isinstance(slot, MemberDescriptorType) and hasattr(value, name):
                yield name, getattr(value, name)


# -- what other tasks hold -------------------------------------------------------------------------
def _has_entered(task: Task, lock: object) -> bool:
    """Whether *task* is inside ``async with`` of *lock*: the exit method is on its stack.

    Up to Python 3.13 as a bound method; since then as a function, next to the lock.
    """
    for awaitable, _ in suspended(task.get_coro()):
        stack: list[object] = gc.get_referents(awaitable)
        exits = [each for each in stack if getattr(each, "__name__", "") == "__aexit__"]
        bound = [each.__self__ for each in exits if isinstance(each, MethodType)]
        unbound = [each for each in stack if getattr(type(each), "__aexit__", None) in exits]
        for each in (*bound, *unbound):
            # Entering a condition acquires its own lock.
            if each is lock or (
                isinstance(each, asyncio.Condition) and vars(each)["_lock"] is lock
            ):
                return True
    return False


def _reachable(task: Task) -> set[int]:
    """The ids of the objects that the functions of *task* can reach from their variables."""
    found: set[int] = set()
    queue = deque((each, 0) for each, _ in suspended(task.get_coro()))
    while queue and len(found) < _MAX_OBJECTS:
        thing, distance = queue.popleft()
        for each in gc.get_referents(thing):
            if id(each) in found:
                continue
            found.add(id(each))
            if distance < _MAX_DISTANCE and not isinstance(each, _OPAQUE):
                # Of a function its cells alone: its module is not meant.
                parts = each.__closure__ or () if isinstance(each, FunctionType) else (each,)
                queue.extend((part, distance + 1) for part in parts)
    return found
