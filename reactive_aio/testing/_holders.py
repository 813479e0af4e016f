"""Who keeps an object alive: the way from something that lives by itself to the object.

The garbage collector knows who refers to whom; from the object upwards, the search ends at what is
kept by the loop, a module, a class or somebody's stack.
"""

import asyncio
import gc
import sys
from collections import deque
from types import CellType, CoroutineType, FrameType, GeneratorType, ModuleType
from typing import Any, Final

from ._awaited import awaited_by, frame_of

__all__ = ("Holder", "holder_of", "stack_of")

Task = asyncio.Task[Any]

_MOST: Final = 3_000
"""Objects that are looked at for one search."""
_LONGEST: Final = 70


class Holder:
    """What keeps an object alive: *way* goes from there to the object, in words."""

    def __init__(self, root: str, way: list[object], *, local: bool) -> None:
        self._root = root
        self._way = way
        self.local = local
        """Whether it is only what running functions have at hand."""

    def goes_through(self, ids: set[int]) -> bool:
        """Whether one of those is on the way, before the end."""
        return any(id(each) in ids for each in self._way[:-1])

    def __str__(self) -> str:
        *before, target = self._way
        named = [each for each in before if not _is_plain(each)]
        return " -> ".join([self._root, *map(_name, [*named, target])])


def stack_of(task: "Task | None") -> set[int]:
    """The ids of the coroutines and frames that *task* is in."""
    found: set[int] = set()
    inner: object = task and task.get_coro()
    while inner is not None and frame_of(inner) is not None:
        found |= {id(inner), id(frame_of(inner))}
        inner = awaited_by(inner)
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        found.add(id(frame))
        frame = frame.f_back
    return found


def holder_of(target: object, stack: set[int], ignored: set[int]) -> Holder:
    """The nearest that keeps *target* alive and lives by itself; what is *ignored* is passed by.

    What a running function has at hand is not seen by the garbage collector: where nobody else is
    found, it is that.
    """
    parents: dict[int, tuple[object, object]] = {}
    queue: deque[object] = deque([target])
    skipped = {*stack, *ignored, id(parents), id(queue), id(target)}
    while queue and len(parents) < _MOST:
        current = queue.popleft()
        referrers = gc.get_referrers(current)
        skipped.add(id(referrers))
        for each in referrers:
            if id(each) in skipped or id(each) in parents or _is_ours(each):
                continue
            parents[id(each)] = pair = (each, current)
            skipped.add(id(pair))
            if root := _root(each):
                return Holder(root, _way(current, parents), local=False)
            queue.append(each)
    return Holder("a running function", [target], local=True)


def _is_ours(each: object) -> bool:
    """What this search is made of."""
    return isinstance(each, FrameType) and each.f_code.co_filename == __file__


def _root(each: object) -> str:
    """In words, if *each* lives by itself."""
    if isinstance(each, asyncio.Task):
        task: Task = each  # pyright: ignore[reportUnknownVariableType]
        return "" if task.done() else f"task {task.get_name()}"
    if type(each).__name__ in ("Handle", "TimerHandle"):
        return f"a callback of the loop, {each!r:.80}"
    if isinstance(each, ModuleType):
        return f"module {each.__name__}"
    if isinstance(each, type):
        return f"class {each.__qualname__}"
    return ""


def _way(current: object, parents: dict[int, tuple[object, object]]) -> list[object]:
    """From *current* down to the target."""
    way = [current]
    while (below := parents.get(id(way[-1]))) is not None:
        way.append(below[1])
    return way


def _is_plain(each: object) -> bool:
    return isinstance(each, (dict, list, tuple, set, deque, FrameType, CellType))


def _name(each: object) -> str:
    if isinstance(each, (CoroutineType, GeneratorType)):
        return f"{each.__qualname__}()"
    if callable(each) and hasattr(each, "__qualname__"):
        return f"{each.__qualname__}"
    text = repr(each)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
