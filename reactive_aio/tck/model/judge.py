"""Run the program of a pipeline, and check all that must be true of every pipeline."""

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Final, cast

from ...errors import ReactiveError
from ...testing.leaks import THREADS_END_WITHIN, Snapshot
from ...testing.virtual_time import VirtualTimeLoop
from .expected import Expected
from .run import ERRORS, RECEIVED, ChildError, CleanupError, Run

__all__ = ("check_alone",)

LATE: Final = ("an error after the end of a flow", "a shared flow failed while it had no subscr")
"""How the reports of failures begin that come when the consumer has left."""
BESIDE: Final = ("another call failed as well", "the source failed as well")
"""How the reports of failures begin that come beside the one that is raised, or is retried."""
LOGGERS: Final = ("reactive_aio", "asyncio", "concurrent", "py")
"""Who logs what nobody else is told: of these, ``py`` has the warnings."""
CLEANED_AFTER: Final = 100.0
"""Seconds in which a flow cleans up of which the consumer does not wait for the end."""
SETTLED_AFTER: Final = 1000.0
"""Seconds after which nothing of a pipeline happens any more, not even of what others keep."""
MOST_TURNS: Final = 300_000
"""Of the loop: a program that takes more does not end."""
WITHIN: Final = 1e7
"""Seconds in which a program ends: more than any of its timers take."""

Program = Callable[[Run], Coroutine[Any, Any, None]]


class Told(logging.Handler):
    """What was told to nobody who awaits the flow: reports to the loop, and errors in the log."""

    def __init__(self, expected: Expected, run: Run) -> None:
        super().__init__(logging.ERROR)
        self.expected = expected
        self.run = run
        self.names: list[str] = []
        """The names of the errors of sources that were told to someone."""
        self.unexpected: list[str] = []
        self.reported: list[BaseException] = []
        """Errors that were told before the program has ended."""
        self.has_ended = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Pass what the package and its loops log: a user's operator may log what it will."""
        return record.name.partition(".")[0] in LOGGERS

    def emit(self, record: logging.LogRecord) -> None:
        self.unexpected.append(f"logged: {record.getMessage()}")

    def handle_report(self, _: object, context: dict[str, Any]) -> None:
        """Note the errors that are reported to the loop's exception handler.

        The error of a child or of a cleanup may come after the consumer has left; so may the
        failure of a source, if it was on its way then, or if an operator keeps the source.
        """
        message, found = context["message"], leaves(context.get("exception"))
        is_kept = message.startswith(LATE[1])
        is_whole = self.expected.is_whole and self.expected.failures < 2
        may_fail = self.expected.fails is not False or self.expected.failures > 0
        is_stopped = is_kept and self.run.finished.is_set()
        is_late = message.startswith(LATE) and (
            is_stopped or (may_fail and (is_kept or not is_whole))
        )
        is_received = is_late or message.startswith(BESIDE)
        allowed = RECEIVED if is_received else (ChildError, CleanupError)
        errors = {*self.run.errors, *self.expected.errors} if is_received else ()
        if found and all(
            isinstance(each, allowed) or type(each).__name__ in errors for each in found
        ):
            self.names += [type(each).__name__ for each in found]
            if not self.has_ended:
                self.reported += found
        else:
            self.unexpected.append(f"reported: {message}: {context.get('exception')!r}")

    def __enter__(self) -> "Told":
        asyncio.get_running_loop().set_exception_handler(self.handle_report)
        logging.getLogger().addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)


def check_alone(
    program: Program,
    expected: Expected,
    kind: str = "PipelineError",
    make: Callable[[str], Run] = Run,
) -> None:
    """Run *program* on a loop of its own, and fail unless it does what is *expected*.

    Its sources and functions raise errors of a *kind* of `ERRORS`; *make* makes its ``run``.

    It has to deliver those elements, and to leave nothing behind. The garbage collector is off, so
    that nothing is closed or freed by it.
    """
    gc.disable()
    try:
        with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(most_turns=MOST_TURNS)) as runner:
            runner.run(_check(program, expected, make(kind)))
    finally:
        gc.enable()


async def _check(program: Program, expected: Expected, run: Run) -> None:
    before = Snapshot(strict=True)
    others = {*threading.enumerate()}
    try:
        with Told(expected, run) as told:
            received = ERRORS[run.kind][1].__name__
            errors = [
                "PipelineError" if each == received else each
                for each in await _outcome(program(run), run, told)
            ]
            told.names += errors
            open_sources = run.open_sources if expected.is_closed else 0
            overlaps = run.overlaps if expected.is_serial else 0
            expected = replace(expected, errors=expected.errors.union(run.errors))
            complaints = [*expected.complaints(run.received, errors)]
            run.finish()
            at_work: list[str] = []
            if expected.is_serial:  # nobody else keeps its sources
                await asyncio.sleep(0 if expected.is_closed else CLEANED_AFTER)
                at_work = [each async for each in before.at_work()]
            await asyncio.sleep(SETTLED_AFTER)
            await _threads_end(run, others)
            if run.alive and not _error_is_alive():
                complaints += [f"kept without a collection: {each}" for each in run.alive]
            gc.collect()
        complaints += told.unexpected
        if open_sources:
            complaints.append(f"the consumer went on while {open_sources} sources were open")
        if overlaps:
            complaints.append("a source began before the one that it follows had cleaned up")
        complaints += at_work
        complaints += run.complaints(expected.slack)
        if told.names.count("CleanupError") < run.failed_cleanups:
            complaints.append(f"{run.failed_cleanups} cleanups have failed, told: {told.names}")
        complaints += await before.leaks()
        if complaints:
            raise AssertionError("\n".join(complaints))
        run.ledger.check(discards=expected.discards)
    except BaseException as error:
        error.add_note(run.description)
        raise


def _error_is_alive() -> bool:
    """Whether an error refers to itself: its traceback has the frames that it has passed."""
    return any(isinstance(each, BaseException) and each.__traceback__ for each in gc.get_objects())


async def _threads_end(run: Run, others: set[threading.Thread]) -> None:
    """A thread that has made its last call may need a moment of real time.

    The *others* are those of a pool that an earlier test has used, and live as long as the program;
    they let go of what they have called for *run*.
    """
    deadline = time.monotonic() + THREADS_END_WITHIN
    while time.monotonic() < deadline and (  # noqa: ASYNC110 - threads have no events
        any(each.name.startswith("reactive_aio") for each in {*threading.enumerate()} - others)
        or (run.alive and not _error_is_alive())
    ):
        await asyncio.sleep(0.001)


async def _outcome(program: Coroutine[Any, Any, None], run: Run, told: Told) -> list[str]:
    """The names of the errors of *program*: an error itself would refer to what it has passed."""
    names: list[str] = []
    limit = asyncio.timeout(WITHIN)
    try:
        async with limit:
            await program
    except BaseException as error:
        if limit.expired():
            raise AssertionError(f"it does not end: {run.received} was delivered") from None
        found = leaves(error)  # several sources may fail at once
        if not all(_is_judged(each, run) for each in found):
            raise
        late = [each for each in found if told.expected.failures and _is_of_a_cleanup(each)]
        told.names += [type(each).__name__ for each in late]
        names = [type(each).__name__ for each in found if each not in late]
        late.clear()
        told.unexpected += [f"reported, and raised: {x!r}" for x in found if x in told.reported]
        found.clear()
    told.has_ended = True
    told.reported.clear()
    return names


def _is_of_a_cleanup(error: BaseException) -> bool:
    """Whether it came when the flow had its result, from a source that had failed by then."""
    notes: list[str] = getattr(error, "__notes__", [])
    return any(note.startswith("raised by the cleanup, after the flow had") for note in notes)


def _is_judged(error: BaseException, run: Run) -> bool:
    """Whether the names of errors say what is wrong: others show a mistake of a program."""
    return isinstance(error, (*RECEIVED, ReactiveError)) or type(error).__name__ in run.errors


def leaves(error: BaseException | None) -> list[BaseException]:
    """The errors in a group of groups, or the error itself."""
    if not isinstance(error, BaseExceptionGroup):
        return [] if error is None else [error]
    group = cast("BaseExceptionGroup[BaseException]", error)
    return [leaf for each in group.exceptions for leaf in leaves(each)]
