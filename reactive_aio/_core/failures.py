"""What a subscriber receives for what a function of the user raised, or a publisher sent.

``KeyboardInterrupt`` and ``SystemExit`` go on to stop the program, and the subscriber receives
`Interrupted`. Every other exception is a failure of the flow like any `Exception`.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final, cast

from ..errors import Interrupted
from .loop import CancelledError, LoopHandle, Task, is_being_cancelled, raise_error, report
from .unwinding import is_cleanup

STOPS_PROGRAM: Final = (KeyboardInterrupt, SystemExit)


def as_failure(error: BaseException) -> BaseException:
    """The error for the subscriber: *error* itself, unless it would mean something else there.

    A ``CancelledError`` would look like the cancellation of the consumer's task, and a
    ``GeneratorExit`` like the end of its generator.
    """
    if isinstance(error, Exception):
        return error  # also a group, which would be another one after it was split
    if (failure := cleanup_failure(error)) is None:
        return _wrapped(RuntimeError, error)
    if isinstance(error, (CancelledError, *STOPS_PROGRAM)):
        return _wrapped(Interrupted, error)
    return failure


class _PlainReader:
    """Iterates over a generated loop within an operator, without a time slice."""

    def failure_of(self, error: BaseException) -> BaseException:
        """What the reader receives for *error*, which must not look like its cancellation."""
        is_own = isinstance(error, CancelledError) and not is_being_cancelled()
        return as_failure(error) if is_own else error


PLAIN_READER: Final = _PlainReader()


def stop_program(loop_handle: LoopHandle, error: BaseException) -> None:
    """Let *error* leave the event loop, if it is one that stops the program.

    It does so in the next turn: raised here, it would leave a connection in the middle of one, or
    be caught by a server that logs whatever an application raises.
    """
    if isinstance(error, STOPS_PROGRAM):
        loop_handle.call_soon(raise_error, error)


def _wrapped(kind: type[Exception], error: BaseException) -> Exception:
    failure = kind(f"a function or publisher of the flow failed with {type(error).__name__}")
    failure.__cause__ = error
    return failure


def not_an_end(error: BaseException, raiser: str) -> BaseException:
    """*error*, unless it would look like the end of an iterator: then what Python raises instead.

    A generator that raises ``StopIteration`` raises ``RuntimeError`` (PEP 479); a thread that
    passes an error on, or a future that is given one, has to do the same.
    """
    if not isinstance(error, (StopIteration, StopAsyncIteration)):
        return error
    failure = RuntimeError(f"{raiser} raised {error!r}")
    failure.__cause__ = error
    return failure


def cleanup_failure(error: BaseException) -> BaseException | None:
    """What is left of an error that closing a source raised; None if it has just closed.

    A task group inside an asynchronous generator raises a group that contains the
    ``GeneratorExit`` by which the generator was closed.
    """
    if isinstance(error, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", error).split(GeneratorExit)[1]
    return None if isinstance(error, GeneratorExit) else error


@is_cleanup
async def run_cleanup(source: Any) -> BaseException | None:
    """Close an asynchronous iterator, and return the error of its cleanup."""
    try:
        await source.aclose()
    except BaseException as error:
        return cleanup_failure(error)
    return None


def close_pulled(*iterators: Any, is_end: bool = False) -> None:
    """Close what an operator has pulled from, each of them, whatever the others raise.

    At the end of the operator, what they raise is reported: it is no failure of its source.
    """
    with ExitStack() as stack:
        for iterator in iterators:
            if callable(close := getattr(iterator, "close", None)):
                stack.callback(_close_reporting if is_end else _call, close)


def _call(close: Callable[[], object]) -> None:
    close()


def _close_reporting(close: Callable[[], object]) -> None:
    try:
        close()
    except STOPS_PROGRAM:
        raise
    except BaseException as error:
        report("the cleanup of a source raised", error)


def is_cancelled(task: Task[object] | None, error: BaseException) -> bool:
    """Whether *error* is the cancellation of *task*, and not a ``CancelledError`` of the user."""
    return isinstance(error, CancelledError) and (task is None or task.cancelling() > 0)


def is_cancelled_here(error: BaseException) -> bool:
    """The same for the task that runs now."""
    return isinstance(error, CancelledError) and is_being_cancelled()
