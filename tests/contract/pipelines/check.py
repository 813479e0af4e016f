"""Run the program of a pipeline, and check all that must be true of every pipeline."""

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

from reactive_aio.errors import ReactiveError
from reactive_aio.testing.leaks import THREADS_END_WITHIN, Snapshot
from reactive_aio.testing.virtual_time import VirtualTimeLoop
from tests.contract.pipelines.expected import Expected
from tests.contract.pipelines.pipeline import Program
from tests.contract.pipelines.run import ChildError, CleanupError, PipelineError, Run

__all__ = ("check", "check_alone")

LATE: Final = ("an error after the end of a flow", "a shared flow failed while it had no subscr")
"""How the reports of failures begin that come when the sink has left."""
SETTLED_AFTER: Final = 1000.0
"""Seconds after which nothing of a pipeline happens any more."""
WITHIN: Final = 1e7
"""Seconds in which a program ends: more than any of its timers take."""


@dataclass
class Told:
    """The names of the errors of sources that were told to someone."""

    expected: Expected
    names: list[str] = field(default_factory=list[str])

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Note those that are reported to the loop's exception handler, and pass on the others.

        The error of a child or of a cleanup may come after the sink has left; so may the failure
        of a source, if it was on its way at that moment.
        """
        found = leaves(context.get("exception"))
        has_left = not self.expected.is_whole and self.expected.fails is not False
        is_late = has_left and context["message"].startswith(LATE)
        allowed = PipelineError if is_late else (ChildError, CleanupError)
        if found and all(isinstance(each, allowed) for each in found):
            self.names += [type(each).__name__ for each in found]
        elif self._others is not None:
            self._others(loop, context)
        else:
            loop.default_exception_handler(context)

    _others: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None = None

    def __enter__(self) -> "Told":
        loop = asyncio.get_running_loop()
        self._others = loop.get_exception_handler()
        loop.set_exception_handler(self.handle)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.get_running_loop().set_exception_handler(self._others)


def check_alone(program: Program, expected: Expected) -> None:
    """`check` on a loop of its own."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(check(program, expected))


async def check(program: Program, expected: Expected) -> None:
    """Run *program*, and fail unless it delivers what is *expected* and leaves nothing behind."""
    before = Snapshot(strict=True)
    others = {*threading.enumerate()}
    run = Run()
    try:
        with Told(expected) as told:
            error = await _outcome(program(run))
            complaints = [*_complaints(expected, run.received, error)]
            told.names += [type(each).__name__ for each in leaves(error)]
            del error
            run.finish()
            await asyncio.sleep(SETTLED_AFTER)
            await _threads_end(others)
            gc.collect()
        complaints += run.complaints(expected.slack)
        if told.names.count("CleanupError") < run.failed_cleanups:
            complaints.append(f"{run.failed_cleanups} cleanups have failed, told: {told.names}")
        complaints += await before.leaks()
        assert not complaints, "\n".join(complaints)
        run.ledger.check(discards=expected.discards)
    except BaseException as error:
        error.add_note(run.description)
        raise


async def _threads_end(others: set[threading.Thread]) -> None:
    """A thread that has made its last call may need a moment of real time.

    The *others* are those of a pool that an earlier test has used, and live as long as the program.
    """
    deadline = time.monotonic() + THREADS_END_WITHIN
    while time.monotonic() < deadline and any(  # noqa: ASYNC110 - threads have no events
        each.name.startswith("reactive_aio") for each in {*threading.enumerate()} - others
    ):
        await asyncio.sleep(0.001)


async def _outcome(program: Coroutine[Any, Any, None]) -> BaseException | None:
    """The error of *program*, without what its traceback refers to."""
    found: BaseException | None = None
    try:
        async with asyncio.timeout(WITHIN):
            await program
    except* (PipelineError, ReactiveError) as group:  # several sources may fail at once
        found = group.with_traceback(None)
    return found


def leaves(error: BaseException | None) -> list[BaseException]:
    """The errors in a group of groups, or the error itself."""
    if not isinstance(error, BaseExceptionGroup):
        return [] if error is None else [error]
    group = cast("BaseExceptionGroup[BaseException]", error)
    return [leaf for each in group.exceptions for leaf in leaves(each)]


def _complaints(
    expected: Expected, received: list[int], error: BaseException | None
) -> Iterator[str]:
    """What is wrong with the values *received* and the end."""
    yield from expected.complaints(received, has_failed=error is not None)
    for each in leaves(error):
        if type(each).__name__ not in expected.errors:
            yield f"it failed with {each!r}"
