"""What keeps an object alive: the chain of referrers from a root to the object.

The garbage collector knows the referrers of an object. The search goes upwards from the object and
ends at a root: what the loop, a module, a class or a suspended task keeps.
"""

import asyncio
import gc
import sys
import traceback
from collections import deque
from dataclasses import dataclass
from types import CellType, CoroutineType, FrameType, GeneratorType, ModuleType
from typing import Any, Final

from ._deadlock_report import suspended
from .safe_repr import safe_repr

__all__ = ("ReferrerChain", "referrers_of", "stack_of")

Task = asyncio.Task[Any]

_PLAIN: Final = (dict, list, tuple, set, deque, FrameType, CellType)
"""These are not named in a chain."""
_MAX_OBJECTS: Final = 3_000
"""Objects that one search visits."""


@dataclass(frozen=True, eq=False)
class ReferrerChain:
    """The objects from *root*, in words, down to the object that it keeps alive."""

    root: str
    chain: list[object]
    is_local: bool = False
    """Whether only running functions refer to the object."""

    def contains(self, ids: set[int]) -> bool:
        """Whether one of *ids* is on the chain, above the object."""
        return any(id(each) in ids for each in self.chain[:-1])

    def __str__(self) -> str:
        *above, target = self.chain
        named = [each for each in above if not isinstance(each, _PLAIN)]
        return " -> ".join([self.root, *map(_name, [*named, target])])


def stack_of(task: "Task | None") -> set[int]:
    """The ids of the coroutines and frames that *task* and this thread are in."""
    found: set[int] = set()
    for awaitable, inner in suspended(task and task.get_coro()):
        found |= {id(awaitable), id(inner)}
    return found | {id(frame) for frame, _ in traceback.walk_stack(sys._getframe())}


def referrers_of(target: object, stack: set[int], ignored: set[int]) -> ReferrerChain:
    """The shortest chain from a root to *target* that avoids *stack* and what is *ignored*.

    The garbage collector does not see the variables of running functions: without another root,
    it is those.
    """
    parents: dict[int, tuple[object, object]] = {}
    queue: deque[object] = deque([target])
    skipped = {*stack, *ignored, id(parents), id(queue), id(target)}
    while queue and len(parents) < _MAX_OBJECTS:
        current = queue.popleft()
        referrers = gc.get_referrers(current)
        skipped.add(id(referrers))
        for each in referrers:
            if id(each) in skipped or id(each) in parents:
                continue
            parents[id(each)] = pair = (each, current)
            skipped.add(id(pair))
            if root := _root(each):
                return ReferrerChain(root, _chain(current, parents))
            queue.append(each)
    return ReferrerChain("a running function", [target], is_local=True)


def _root(each: object) -> str:
    """A description, if *each* is a root."""
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


def _chain(current: object, parents: dict[int, tuple[object, object]]) -> list[object]:
    """From *current* down to the target."""
    chain = [current]
    while (below := parents.get(id(chain[-1]))) is not None:
        chain.append(below[1])
    return chain


def _name(each: object) -> str:
    if isinstance(each, (CoroutineType, GeneratorType)):
        return f"{each.__qualname__}()"
    if callable(each) and hasattr(each, "__qualname__"):
        return f"{each.__qualname__}"
    return safe_repr(each, 70)
