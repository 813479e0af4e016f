"""Run the program of a pipeline, and check all that must be true of every pipeline."""

import asyncio
import gc
import threading
import time
from collections.abc import Coroutine, Iterator
from typing import Any, Final, cast

from reactive_aio.errors import ReactiveError
from reactive_aio.testing.leaks import THREADS_END_WITHIN, Snapshot
from reactive_aio.testing.virtual_time import VirtualTimeLoop
from tests.contract.pipelines.expected import Expected
from tests.contract.pipelines.pipeline import Program
from tests.contract.pipelines.run import PipelineError, Run

__all__ = ("check", "check_alone")

SETTLED_AFTER: Final = 1000.0
"""Seconds after which nothing of a pipeline happens any more."""
WITHIN: Final = 1e7
"""Seconds in which a program ends: more than any of its timers take."""


def check_alone(program: Program, expected: Expected) -> None:
    """`check` on a loop of its own."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(check(program, expected))


async def check(program: Program, expected: Expected) -> None:
    """Run *program*, and fail unless it delivers what is *expected* and leaves nothing behind."""
    before = Snapshot(strict=True)
    run = Run()
    try:
        error = await _outcome(program(run))
        complaints = [*_complaints(expected, run.received, error)]
        del error
        run.finish()
        await asyncio.sleep(SETTLED_AFTER)
        await _threads_end()
        gc.collect()
        complaints += run.complaints(expected.slack)
        complaints += await before.leaks()
        assert not complaints, "\n".join(complaints)
        run.ledger.check(discards=expected.discards)
    except BaseException as error:
        error.add_note(run.description)
        raise


async def _threads_end() -> None:
    """A thread that has made its last call may need a moment of real time."""
    deadline = time.monotonic() + THREADS_END_WITHIN
    while time.monotonic() < deadline and any(  # noqa: ASYNC110 - threads have no events
        each.name.startswith("reactive_aio") for each in threading.enumerate()
    ):
        await asyncio.sleep(0.001)


async def _outcome(program: Coroutine[Any, Any, None]) -> BaseException | None:
    """The error of *program*, without what its traceback refers to."""
    found: BaseException | None = None
    try:
        async with asyncio.timeout(WITHIN):
            await program
    except* (PipelineError, ReactiveError) as group:  # several sources may fail at once
        found = _leaf(group).with_traceback(None)
    return found


def _leaf(error: BaseException) -> BaseException:
    """The first error in a group of groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _complaints(
    expected: Expected, received: list[int], error: BaseException | None
) -> Iterator[str]:
    """What is wrong with the values *received* and the end."""
    yield from expected.complaints(received, has_failed=error is not None)
    if error is not None and type(error).__name__ not in expected.errors:
        yield f"it failed with {error!r}"
