"""What a waiting task waits for, and which tasks would have to act before it can go on.

asyncio knows the future that a task waits for, but not whose it is. The stack of the task tells:
innermost there stands the method of the lock, queue, event or group that made the future, and in
the caller's frame the name it has there. Who has a lock is seen from the exit that an ``async
with`` keeps ready. An event, a queue or a bare future belongs to nobody; whoever has it *at hand*,
in a local variable or an attribute of one, is a task that could end the wait.
"""

import asyncio
import gc
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import (
    AsyncGeneratorType,
    CoroutineType,
    FrameType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final

__all__ = ("Task", "Wait", "awaited_by", "frame_of", "frames", "wait_of")

Task = asyncio.Task[Any]

_FAR: Final = 4
"""From a frame to a cell, an object in it, its attributes, and what is in those."""
_MOST: Final = 2_000
"""Objects that are looked at for one task."""
_OPAQUE: Final = (ModuleType, type, FrameType, asyncio.Future, asyncio.AbstractEventLoop)
"""What is behind those is not at hand."""
_WRAPPERS: Final = ("async_generator_asend", "async_generator_athrow", "coroutine_wrapper",
                    "anext_awaitable")  # fmt: skip
_BEHIND: Final = (CoroutineType, AsyncGeneratorType)


@dataclass
class Wait:
    """One task's wait."""

    what: str
    """In words, to stand behind "waits for"."""
    on: list[Task] = field(default_factory=list[Task])
    """The tasks that would have to act; those that could, where nobody must."""


# -- the stack of a task ---------------------------------------------------------------------------
def frames(awaitable: object) -> Iterator[FrameType]:
    """Of each coroutine or generator that *awaitable* is in, outermost first."""
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
    """The next one inwards."""
    for name in ("cr_await", "gi_yieldfrom", "ag_await"):
        if hasattr(awaitable, name):
            return _unwrapped(getattr(awaitable, name))
    return None


def _unwrapped(inner: object) -> object:
    """asyncio's own wrappers do not tell what is in them; the garbage collector does."""
    while type(inner).__name__ in _WRAPPERS:
        behind = [each for each in gc.get_referents(inner) if _may_be_within(each)]
        if not behind:
            break
        inner = behind[0]
    return inner


def _may_be_within(each: object) -> bool:
    return isinstance(each, _BEHIND) or type(each).__name__ in _WRAPPERS


# -- one task --------------------------------------------------------------------------------------
def wait_of(task: Task, among: list[Task]) -> Wait | None:
    """What *task* waits for, if it does; *among* are the tasks that may have to act."""
    future: Any = getattr(task, "_fut_waiter", None)
    if future is None:
        return None
    if isinstance(future, asyncio.Task):
        return Wait(f"the task {_name(future)}", [future])  # pyright: ignore[reportUnknownArgumentType]
    others = [each for each in among if each is not task]
    if children := [each for each in getattr(future, "_children", ()) if not each.done()]:
        return _for_several(children, others)
    if shielded := _shielded(future):
        return _for_several(shielded, others)
    inside = list(frames(task.get_coro()))
    callers = [frame for frame in inside if not _is_of_asyncio(frame)]
    caller = callers[-1] if callers else None
    for frame in reversed(inside):
        if _is_of_asyncio(frame) and (told := _of_asyncio(frame, caller, others)) is not None:
            return told
    return _for_nobody(_called("future", future, caller), future, others)


def _is_of_asyncio(frame: FrameType) -> bool:
    module: str = frame.f_globals.get("__name__", "")
    return module.startswith("asyncio.")


def _shielded(future: Any) -> list[Any]:
    """What is behind a future that ``asyncio.shield`` has made: its callback knows it."""
    calls: list[Any] = [call for call, _ in getattr(future, "_callbacks", None) or ()]
    cells = [getattr(call, "__closure__", None) or () for call in calls
             if getattr(call, "__qualname__", "").startswith("shield.")]  # fmt: skip
    inner = [cell.cell_contents for each in cells for cell in each]
    return [each for each in inner if isinstance(each, asyncio.Task)]


def _of_asyncio(frame: FrameType, caller: FrameType | None, others: list[Task]) -> Wait | None:
    """The wait, if *frame* is that of a method that makes its caller wait."""
    here = frame.f_locals
    if frame.f_code.co_name == "_wait" and "fs" in here:
        return _for_several([each for each in here["fs"] if not each.done()], others)
    owner = here.get("self")
    tell = _TELL.get((_kind(owner), frame.f_code.co_name))
    if tell is None:
        return None
    return tell(owner, _called(type(owner).__name__, owner, caller), others)


def _kind(owner: object) -> type | None:
    kinds = (asyncio.Lock, asyncio.Semaphore, asyncio.Condition, asyncio.Event, asyncio.Queue,
             asyncio.TaskGroup, asyncio.Barrier, asyncio.StreamReader)  # fmt: skip
    return next((kind for kind in kinds if isinstance(owner, kind)), None)


def _called(kind: str, thing: object, caller: FrameType | None) -> str:
    known = _known_as(thing, caller)
    article = "an" if kind[0] in "AEIOU" else "a"
    return f"the {kind} '{known}'" if known else f"{article} {kind}"


def _known_as(thing: object, frame: FrameType | None) -> str:
    """What the code of *frame* calls it: a variable, or an attribute of one."""
    variables = frame.f_locals if frame is not None else {}
    for name, value in variables.items():
        if value is thing:
            return name
    for name, value in variables.items():
        for attribute, part in _attributes(value):
            if part is thing:
                return f"{name}.{attribute}"
    return ""


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    """Those that it has itself, without calling anything of it."""
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        for name, slot in vars(kind).items():
            if isinstance(slot, MemberDescriptorType) and hasattr(value, name):
                yield name, getattr(value, name)


def _for_several(futures: list[Any], others: list[Task]) -> Wait:
    tasks: list[Task] = [each for each in futures if isinstance(each, asyncio.Task)]
    tasks.sort(key=_name)
    if not tasks:
        return _for_nobody(f"{len(futures)} futures", futures[0], others)
    return Wait(f"the task{'s' * (len(tasks) > 1)} {', '.join(map(_name, tasks))}", tasks)


def _for_nobody(what: str, thing: object, others: list[Task]) -> Wait:
    """For what belongs to nobody."""
    near = [task for task in others if id(thing) in _at_hand(task)]
    told = f"which {_names(near)} at hand" if near else "which no other task has at hand"
    return Wait(f"{what}, {told}", near)


# -- the things of asyncio -------------------------------------------------------------------------
def _for_lock(lock: object, what: str, others: list[Task]) -> Wait:
    """A lock, or a semaphore: somebody has what it gives."""
    owners = [task for task in others if _has_entered(task, lock)]
    if owners:
        return Wait(f"{what}, which {_names(owners)}", owners)
    return _for_nobody(f"{what}, taken by nobody who is inside 'async with' now", lock, others)


def _for_group(group: Any, what: str, others: list[Task]) -> Wait:
    return _for_several([task for task in group._tasks if not task.done()], others)


def _for(does: str) -> Callable[[Any, str, list[Task]], Wait]:
    """For something to be done with it: by whoever has it at hand."""

    def tell(thing: Any, what: str, others: list[Task]) -> Wait:
        return _for_nobody(f"{what} {does}", thing, others)

    return tell


def _for_room(queue: "asyncio.Queue[Any]", what: str, others: list[Task]) -> Wait:
    return _for_nobody(f"room in {what}, full with {queue.qsize()}", queue, others)


_TELL: Final[dict[tuple[type | None, str], Callable[[Any, str, list[Task]], Wait]]] = {
    (asyncio.Lock, "acquire"): _for_lock,
    (asyncio.Semaphore, "acquire"): _for_lock,
    (asyncio.Condition, "wait"): _for("to be notified"),
    (asyncio.Event, "wait"): _for("to be set"),
    (asyncio.Queue, "get"): _for("to have something in it"),
    (asyncio.Queue, "put"): _for_room,
    (asyncio.Queue, "join"): _for("to be done with"),
    (asyncio.Barrier, "wait"): _for("to be reached by all"),
    (asyncio.StreamReader, "_wait_for_data"): _for("to have data"),
    (asyncio.TaskGroup, "__aexit__"): _for_group,
}


# -- what other tasks have -------------------------------------------------------------------------
def _has_entered(task: Task, lock: object) -> bool:
    """Whether an ``async with`` of *lock* is under way there: its exit is on the stack.

    Up to Python 3.13 as a method of the lock; since then as a function, with the lock beside it.
    """
    awaitable: object = task.get_coro()
    while frame_of(awaitable) is not None:
        kept: list[object] = gc.get_referents(awaitable)
        exits = [each for each in kept if getattr(each, "__name__", "") == "__aexit__"]
        bound = [each.__self__ for each in exits if isinstance(each, MethodType)]
        beside = [each for each in kept if getattr(type(each), "__aexit__", None) in exits]
        if any(_locks(each, lock) for each in (*bound, *beside)):
            return True
        awaitable = awaited_by(awaitable)
    return False


def _locks(thing: object, lock: object) -> bool:
    """Whether entering *thing* takes *lock*: a condition takes the one that it has."""
    return thing is lock or (isinstance(thing, asyncio.Condition) and vars(thing)["_lock"] is lock)


def _at_hand(task: Task) -> set[int]:
    """The ids of what the functions of *task* can reach from their variables."""
    found: set[int] = set()
    todo: deque[tuple[object, int]] = deque()
    awaitable: object = task.get_coro()
    while frame_of(awaitable) is not None:
        todo.append((awaitable, 0))
        awaitable = awaited_by(awaitable)
    while todo and len(found) < _MOST:
        thing, far = todo.popleft()
        for each in gc.get_referents(thing):
            if id(each) in found:
                continue
            found.add(id(each))
            if far < _FAR and not isinstance(each, _OPAQUE):
                todo.extend((inner, far + 1) for inner in _insides(each))
    return found


def _insides(each: object) -> tuple[object, ...]:
    """Of a function its cells alone: its module is not at hand."""
    if isinstance(each, FunctionType):
        return each.__closure__ or ()
    return (each,)


# -- words -----------------------------------------------------------------------------------------
def _name(task: Task) -> str:
    return task.get_name()


def _names(tasks: list[Task]) -> str:
    """``A has``, ``A and B have``."""
    names = sorted(map(_name, tasks))
    if len(names) == 1:
        return f"{names[0]} has"
    return f"{', '.join(names[:-1])} and {names[-1]} have"
