"""A leak check: what a piece of a test has left behind.

::

    async with no_leaks():
        await flow.first()

Left behind is: a task that is not done, a thread that runs, a timer that is set (where the loop
shows its timers), an asynchronous generator that was begun and not closed, and a live subscription:
an object with ``request`` and ``cancel`` that somebody other than the test itself still refers to.
Only what was made meanwhile counts, and it has some turns of the loop to end. The message says
where a task waits, and who keeps a subscription alive.
"""

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Iterator
from dis import opmap
from types import AsyncGeneratorType, FrameType, TracebackType
from typing import Any, Final, cast

from ._holders import holder_of, stack_of
from ._outside import is_idle
from ._waiting import describe, locations

__all__ = ("Before", "no_leaks")

Generator = AsyncGeneratorType[Any, Any]

TURNS: Final = 10
THREADS_END_WITHIN: Final = 2.0
"""Seconds of real time: a thread that was told to end may need a moment."""


class Before:
    """What there was at some moment; ``left()`` finds what has been left behind since.

    With *strict*, a subscription that only the test itself refers to counts as well.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self._loop = asyncio.get_running_loop()
        self._tasks = asyncio.all_tasks()
        self._threads = set(threading.enumerate())
        self._timers = set(map(id, _timers(self._loop)))
        # Kept, so that nothing made later can have the same id.
        self._kept = list(_of_interest())
        self._known = set(map(id, self._kept))

    async def left(self, *, turns: int = TURNS) -> list[str]:
        """One paragraph for each thing left behind, after some turns of the loop."""
        for _ in range(turns):
            await asyncio.sleep(0)
        await self._threads_end()
        gc.collect()
        return [
            *self._left_tasks(),
            *self._left_threads(),
            *self._left_timers(),
            *self._left_objects(asyncio.current_task()),
        ]

    async def _threads_end(self) -> None:
        deadline = time.monotonic() + THREADS_END_WITHIN
        while self._new_threads() and time.monotonic() < deadline:  # noqa: ASYNC110 - no events
            await asyncio.sleep(0.001)

    def _new_threads(self) -> list[threading.Thread]:
        frames = sys._current_frames()
        return [
            thread
            for thread in threading.enumerate()
            if thread not in self._threads
            # A pool keeps its workers; one without work is nobody's fault.
            and not ((frame := frames.get(thread.ident or 0)) and is_idle(frame))
        ]

    def _left_tasks(self) -> Iterator[str]:
        for task in asyncio.all_tasks() - self._tasks - {asyncio.current_task()}:
            yield "\n".join(["a task is not done:", *describe(cast("asyncio.Task[object]", task))])

    def _left_threads(self) -> Iterator[str]:
        for thread in self._new_threads():
            yield f"a thread runs: {thread.name}"

    def _left_timers(self) -> Iterator[str]:
        for timer in _timers(self._loop):
            if id(timer) not in self._timers:
                yield f"a timer is set: {timer!r:.200}"

    def _left_objects(self, task: "asyncio.Task[Any] | None") -> Iterator[str]:
        new = [each for each in _of_interest() if id(each) not in self._known]
        stack = stack_of(task)
        ignored = {id(new), id(self._kept), id(self.__dict__), id(self)}
        ids = set(map(id, new))
        for each in new:
            if _is_generator(each):
                if id(each) not in stack:
                    yield _not_closed(cast("Generator", each))
                continue
            holder = holder_of(each, stack, ignored)
            # What another one keeps is that one's.
            if (self._strict or not holder.local) and not holder.goes_through(ids):
                yield f"a subscription is alive: {each!r:.100}\n    kept by {holder}"


class no_leaks:
    """Fail with an AssertionError when the block leaves something behind.

    It has *turns* turns of the loop to end. With *strict*, subscriptions that only the test itself
    refers to count as well. An exception of the block is passed on, and nothing is looked at.
    """

    def __init__(self, *, turns: int = TURNS, strict: bool = False) -> None:
        self._turns = turns
        self._strict = strict

    async def __aenter__(self) -> None:
        self._before = Before(strict=self._strict)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None and (left := await self._before.left(turns=self._turns)):
            raise AssertionError("\n".join([f"left behind: {len(left)}", *left]))


def _timers(loop: asyncio.AbstractEventLoop) -> Iterator[asyncio.TimerHandle]:
    """Those that are set, as far as *loop* shows them: uvloop does not."""
    scheduled: list[asyncio.TimerHandle] = getattr(loop, "_scheduled", [])
    return (timer for timer in scheduled if not timer.cancelled())


def _of_interest() -> Iterator[object]:
    """Subscriptions and begun asynchronous generators, wherever they are."""
    known: dict[type[Any], bool] = {AsyncGeneratorType: False}
    for each in gc.get_objects():
        kind: type[Any] = type(each)  # pyright: ignore[reportUnknownVariableType]
        if kind is AsyncGeneratorType and _is_begun(cast("Generator", each)):
            yield each
        is_one = known.get(kind)
        if is_one is None:
            is_one = known[kind] = _has(kind, "request") and _has(kind, "cancel")
        if is_one:
            yield each


def _is_generator(each: object) -> bool:
    return isinstance(each, AsyncGeneratorType)


def _not_closed(generator: Generator) -> str:
    lines = [f"an asynchronous generator is not closed: {generator.__qualname__}"]
    return "\n".join([*lines, *(f"    {line}" for line in locations(generator))])


def _has(kind: type[Any], name: str) -> bool:
    """Whether *kind* has a method *name*, without calling anything of it."""
    found: object = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    return callable(found)


def _is_begun(generator: Generator) -> bool:
    """Whether it is in the middle: begun, and not over."""
    frame: FrameType | None = generator.ag_frame
    return frame is not None and frame.f_code.co_code[frame.f_lasti] != opmap["RETURN_GENERATOR"]
