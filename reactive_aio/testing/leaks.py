"""A leak check: the tasks, threads, timers and subscriptions that a block has not ended.

::

    async with no_leaks():
        await flow.first()

A leak is: a task that is not done, a thread that runs, a timer that is set (where the loop exposes
its timers), an asynchronous generator that has begun and is not closed, and a live subscription: an
object with ``request`` and ``cancel`` to which anything but the test itself still refers. Only what
the block created counts, and it has some turns of the loop to end. The message says where a task
waits, and what keeps a subscription alive.
"""

import asyncio
import gc
import inspect
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from dis import opmap
from types import (
    AsyncGeneratorType,
    CellType,
    CoroutineType,
    FrameType,
    GeneratorType,
    ModuleType,
)
from typing import Any, Final, cast

from ._deadlock_report import describe_task, frames, location, suspended
from .probes import pass_time
from .safe_repr import safe_repr
from .thread_frames import current_frames
from .virtual_time import is_idle

Generator = AsyncGeneratorType[Any, Any]
Task = asyncio.Task[Any]

TURNS: Final = 10
THREADS_END_WITHIN: Final = 2.0
"""Seconds of real time: a thread may need a moment to end."""
_PLAIN: Final = (dict, list, tuple, set, deque, FrameType, CellType)
"""These are not named in a chain."""
_MAX_OBJECTS: Final = 3_000
"""Objects that one search visits."""


def is_kept_by_loop(generator: Generator) -> bool:
    """Whether it waits for the end of its event loop, to join the threads of flows then."""
    frame = generator.ag_frame
    name = None if frame is None else frame.f_globals.get("__name__")
    return generator.__name__ == "_join_at_end" and name == "reactive_aio._core.loop"


class Snapshot:
    """The tasks, threads, timers and subscriptions at one moment; ``leaks()`` are the later ones.

    With *strict*, a subscription to which only the test itself refers counts as well.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self._loop = asyncio.get_running_loop()
        self._tasks = asyncio.all_tasks()
        self._threads = set(threading.enumerate())
        self._timers = set(map(id, _timers(self._loop)))
        # Kept alive, so that no later object can have the same id.
        self._kept = list(_tracked_objects())
        self._known = set(map(id, self._kept))

    async def leaks(self, *, turns: int = TURNS) -> list[str]:
        """One paragraph for each leak, after some turns of the loop."""
        await pass_time(turns)
        deadline = time.monotonic() + THREADS_END_WITHIN
        while self._new_threads() and time.monotonic() < deadline:  # noqa: ASYNC110 - no events
            await asyncio.sleep(0.001)
        gc.collect()
        await pass_time(turns)  # what was freed may have left its last work to the loop
        return list(self._leaks(asyncio.current_task()))

    async def at_work(self, *, turns: int = TURNS) -> AsyncGenerator[str]:
        """One paragraph for each later task that runs and timer that is set, after some turns."""
        await pass_time(turns)
        for each in self._at_work(asyncio.current_task()):
            yield each

    def _new_threads(self) -> list[threading.Thread]:
        frames = current_frames()
        return [
            thread
            for thread in threading.enumerate()
            if thread not in self._threads
            # A pool keeps its workers.
            and not ((frame := frames.get(thread.ident or 0)) and is_idle(frame))
        ]

    def _at_work(self, current: "Task | None") -> Iterator[str]:
        for task in asyncio.all_tasks() - self._tasks - {current}:
            yield "\n".join(["a task still runs:", *describe_task(task)])
        for timer in _timers(self._loop):
            if id(timer) not in self._timers:
                yield f"a timer is set: {timer!r:.200}"

    def _leaks(self, current: "Task | None") -> Iterator[str]:
        yield from self._at_work(current)
        for thread in self._new_threads():
            yield f"a thread runs: {thread.name}"
        new = [each for each in _tracked_objects() if id(each) not in self._known]
        stack = stack_of(current)
        ignored = {id(new), id(self._kept), id(self.__dict__), id(self)}
        ids = set(map(id, new))
        for each in new:
            kind: type[Any] = type(each)  # pyright: ignore[reportUnknownVariableType]
            if kind is AsyncGeneratorType:
                if id(each) not in stack and not is_kept_by_loop(cast("Generator", each)):
                    lines = (f"\n    {location(frame)}" for frame in frames(each))
                    name = cast("Generator", each).__qualname__
                    yield f"an asynchronous generator is not closed: {name}{''.join(lines)}"
                continue
            chain = referrers_of(each, stack, ignored)
            # A subscription that another leaked one keeps is reported as that one.
            if (self._strict or not chain.is_local) and ids.isdisjoint(map(id, chain.chain[:-1])):
                yield f"a subscription is alive: {each!r:.100}\n    kept by {chain}"


@asynccontextmanager
async def no_leaks(*, turns: int = TURNS, strict: bool = False) -> AsyncGenerator[None]:
    """Fail with an AssertionError when the block leaks.

    What it created has *turns* turns of the loop to end. With *strict*, subscriptions to which only
    the test itself refers count as well. An exception of the block is passed on without a check.
    """
    before = Snapshot(strict=strict)
    yield
    if leaks := await before.leaks(turns=turns):
        raise AssertionError("\n".join([f"left behind: {len(leaks)}", *leaks]))


def _timers(loop: asyncio.AbstractEventLoop) -> Iterator[asyncio.TimerHandle]:
    """The timers that are set, if *loop* exposes them; uvloop does not."""
    scheduled: list[asyncio.TimerHandle] = getattr(loop, "_scheduled", [])
    return (timer for timer in scheduled if not timer.cancelled())


def _tracked_objects() -> Iterator[object]:
    """All subscriptions, and the asynchronous generators that have begun."""
    known: dict[type[Any], bool] = {}
    for each in gc.get_objects():
        kind: type[Any] = type(each)  # pyright: ignore[reportUnknownVariableType]
        if kind not in known:
            known[kind] = _is_subscription(kind)
        if known[kind] or (kind is AsyncGeneratorType and _has_begun(cast("Generator", each))):
            yield each


def _is_subscription(kind: type[Any]) -> bool:
    """Whether *kind* has the methods of a subscription, without calling its code."""
    for name in ("request", "cancel"):
        found = [vars(base)[name] for base in kind.__mro__ if name in vars(base)]
        if not found or not callable(found[0]):
            return False
    return True


def _has_begun(generator: Generator) -> bool:
    """Whether it has begun and is not finished."""
    if sys.version_info >= (3, 12):
        state = inspect.getasyncgenstate(generator)
        return state not in (inspect.AGEN_CREATED, inspect.AGEN_CLOSED)
    frame: FrameType | None = generator.ag_frame
    return frame is not None and frame.f_code.co_code[frame.f_lasti] != opmap["RETURN_GENERATOR"]


# -- what keeps an object alive -------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class ReferrerChain:
    """The objects from *root*, in words, down to the object that it keeps alive."""

    root: str
    chain: list[object]
    is_local: bool = False
    """Whether only running functions refer to the object."""

    def __str__(self) -> str:
        *above, target = self.chain
        named = [each for each in above if not isinstance(each, _PLAIN)]
        return " -> ".join([self.root, *map(_name, [*named, target])])


_Node = tuple[object, "_Node | None"]
"""An object, and the node of the one below, to which it refers."""


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
    nodes: list[_Node] = [(target, None)]
    skipped = {*stack, *ignored, id(nodes), id(nodes[0]), id(target)}
    for node in nodes:
        if len(nodes) > _MAX_OBJECTS:
            break
        referrers = gc.get_referrers(node[0])
        skipped.add(id(referrers))
        for each in referrers:
            if id(each) in skipped:
                continue
            if root := _root(each):
                return ReferrerChain(root, list(_objects(node)))
            nodes.append((each, node))
            skipped |= {id(each), id(nodes[-1])}
    return ReferrerChain("a running function", [target], is_local=True)


def _objects(node: "_Node | None") -> Iterator[object]:
    """The objects from that of *node* down to the target."""
    while node is not None:
        yield node[0]
        node = node[1]


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


def _name(each: object) -> str:
    if isinstance(each, (CoroutineType, GeneratorType)):
        return f"{each.__qualname__}()"
    if callable(each) and hasattr(each, "__qualname__"):
        return f"{each.__qualname__}"
    return safe_repr(each, 70)
