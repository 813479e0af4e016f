"""One run of a scenario under one script: what broke, and what happened step by step."""

import asyncio
import gc
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from ._schedules_diary import Diary
from ._schedules_loop import Endless, ScheduleLoop
from ._schedules_script import Script
from ._schedules_threads import Seen, Stuck, Visitor, Visitors
from ._waiting import describe
from .virtual_time import Deadlock

__all__ = ("Rules", "Run", "Scenario", "Schedule", "quiet_collector", "run")


class Schedule:
    """What a scenario is given: the threads it names, and the errors that reached the loop."""

    def __init__(self, loop: ScheduleLoop, visitors: Visitors) -> None:
        self._loop = loop
        self._visitors = visitors

    def thread(self, work: Callable[[], object], name: str = "") -> Visitor:
        """*work* happens on a thread of its own, at any time from now on.

        It runs while the loop stands still. What it raises fails the run.
        """
        name = name or f"thread {len(self._visitors.all) + 1}"
        visitor = self._visitors.thread(target=work, name=name)
        visitor.start()
        return visitor

    async def quiet(self) -> None:
        """Wait until nothing is ready and no thread can go on; no time passes meanwhile."""
        await self._loop.quiet()

    @property
    def errors(self) -> list[dict[str, Any]]:
        """What the loop's exception handler was told; a scenario that expects it takes it out."""
        return self._loop.errors


Scenario = Callable[[Schedule], Coroutine[Any, Any, object]]


@dataclass(frozen=True, slots=True)
class Rules:
    """What is legal, and how much of it is tried."""

    packages: tuple[str, ...]
    preemptions: int
    slack: float
    fifo: bool
    max_steps: int
    seen: list[Seen] = field(default_factory=list[Seen])


@dataclass(slots=True)
class Run:
    """What came of a run."""

    script: Script
    error: BaseException | None = None
    touched: dict[CodeType, None] = field(default_factory=dict[CodeType, None])
    steps: list[str] = field(default_factory=list[str])


class LeftOver(AssertionError):
    """Something goes on after the end of the scenario."""


class LoopError(AssertionError):
    """Something reached the loop's exception handler."""


def run(scenario: Scenario, script: Script, rules: Rules, *, tell: bool = False) -> Run:
    """Run *scenario* once; with *tell*, note what happened."""
    gc.freeze()  # what the search remembers of the runs before need not be looked through
    visitors = Visitors(script, rules.packages)
    # The stubs call abstract what asyncio lets a loop leave out, such as sockets.
    make: Callable[..., ScheduleLoop] = ScheduleLoop
    loop = make(script, visitors, slack=rules.slack, fifo=rules.fifo)
    diary = Diary(loop, visitors) if tell else None
    errors = loop.errors
    outcome = Run(script, touched=visitors.touched)
    with _lost_errors(errors), visitors.in_place(rules.seen, loop.time):
        outcome.error = _verdict(scenario, loop, visitors, rules.max_steps)
        del loop
        if diary is not None:
            diary.close()
        if outcome.error is None:
            gc.collect()  # an error that nobody fetched is told by what carries it, at its end
            outcome.error = _told(errors)
    if diary is not None:
        outcome.steps = diary.pages
    return outcome


def _verdict(
    scenario: Scenario, loop: ScheduleLoop, visitors: Visitors, most: int
) -> BaseException | None:
    try:
        task = loop.run(scenario(Schedule(loop, visitors)), most)
        if task.cancelled():
            return asyncio.CancelledError("the scenario was cancelled")
        found = [task.exception()]
        found += [visitor.error for visitor in visitors.all]
        found += [_told(loop.errors), _left(loop, visitors)]
        troubles = [error for error in found if error is not None]
        for further in troubles[1:]:
            troubles[0].add_note(f"besides, {type(further).__name__}: {further}")
        return troubles[0] if troubles else None
    except (Deadlock, Endless, Stuck) as stopped:
        return stopped
    finally:
        visitors.close()
        loop.close()


def _told(errors: list[dict[str, Any]]) -> BaseException | None:
    if not errors:
        return None
    context = errors[0]
    cause = context.get("exception")
    what = f": {cause!r}" if cause is not None else ""
    error = LoopError(f"the loop's exception handler was told {context.get('message')!r}{what}")
    error.__cause__ = cause
    return error


def _left(loop: ScheduleLoop, visitors: Visitors) -> BaseException | None:
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    lines = [line for task in tasks for line in describe(task)]
    lines += [f"  {visitor.name} waits" for visitor in visitors.unfinished()]
    return (
        LeftOver("\n".join(["left over when the scenario has ended:", *lines])) if lines else None
    )


@contextmanager
def _lost_errors(errors: list[dict[str, Any]]) -> Generator[None]:
    """Errors in finalizers are errors too."""

    def hear(unraisable: Any) -> None:
        what = unraisable.err_msg or f"ignored in {unraisable.object!r}"
        errors.append({"message": what, "exception": unraisable.exc_value})

    before, sys.unraisablehook = sys.unraisablehook, hear
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def quiet_collector() -> Generator[None]:
    """The garbage collector runs between runs only, and looks at nothing older."""
    was_on = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()
