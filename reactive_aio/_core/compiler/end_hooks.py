"""End hooks: callbacks of the stages of one subscription that observe how the flow ends.

Each hook runs exactly once, with the outcome at its position in the chain. When a stage completes
the flow, the stages before it are cancelled and those after it complete. When a stage fails, the
stages before it are cancelled and those after it receive the error. Hooks run in the direction of
the signal: a completion and an error travel downstream, a cancellation travels upstream.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from math import inf
from typing import Any, Literal

from .loop_runtime import UpstreamFailed

Outcome = Literal["completed", "failed", "cancelled"]
Hook = Callable[[Outcome, BaseException | None], Any]


class EndHooks:
    """The hooks that have not run yet, by position; position 0 is the source.

    *report* receives what a hook raises during a cancellation, when no subscriber is left.
    ``failure_of(error)`` is what the subscriber receives for an error, and so do the hooks.
    """

    __slots__ = ("_failure_of", "_report", "_waiting")

    def __init__(
        self,
        hooks: Iterable[tuple[int, Hook]],
        report: Callable[[str, BaseException], None],
        failure_of: Callable[[BaseException], BaseException],
    ) -> None:
        self._waiting = dict(hooks)  # first stage first
        self._report = report
        self._failure_of = failure_of

    def complete_at(self, position: int) -> None:
        """The elements have ended at *position*. What the hook raises fails the flow there."""
        hook = self._waiting.pop(position, None)
        if hook is not None:
            _call(hook, "completed", None)

    def stop_at(self, position: float) -> None:
        """The stage at *position* takes no more elements: the stages before it are cancelled."""
        for each in reversed([each for each in self._waiting if each < position]):
            hook = self._waiting.pop(each, None)
            if hook is None:
                continue
            try:
                hook("cancelled", None)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # no subscriber is left to receive it
                self._report("a callback raised when its flow was cancelled", error)

    def fail_at(self, position: int, error: BaseException) -> BaseException:
        """*error* was raised at *position*; return the error that the subscriber receives.

        It is a different one when a hook raises; the first is then its ``__context__``, as with
        any ``except`` clause.
        """
        if isinstance(error, StopIteration | StopAsyncIteration):
            # Inside a generator it would look like the end of the elements.
            error = _stray(error)
        return self.pass_error(self._failure_of(error), position)

    def pass_error(self, error: BaseException, position: int = 0) -> BaseException:
        """*error* came from upstream to *position*; like `fail_at`, but any exception is legal."""
        self.stop_at(position)
        for each in list(self._waiting):
            try:
                _call(self._waiting.pop(each), "failed", error)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as raised:
                _set_context(raised, error)
                error = self._failure_of(raised)
        return error

    def cancel_rest(self) -> None:
        """Every hook that has not run yet was cancelled."""
        self.stop_at(inf)


def _call(hook: Hook, outcome: Outcome, error: BaseException | None) -> None:
    """Call *hook* inside a loop, where a ``GeneratorExit`` would mean that the loop is closed."""
    try:
        hook(outcome, error)
    except GeneratorExit as raised:
        raise _stray(raised) from raised


def _set_context(raised: BaseException, error: BaseException) -> None:
    """Let *error* be the context of *raised* where the loop handles what carries it, and not it."""
    if isinstance(raised.__context__, UpstreamFailed):
        with suppress(Exception):  # an exception may be frozen
            raised.__context__ = None if raised is error else error


def _stray(error: BaseException) -> RuntimeError:
    """What is raised instead of *error*, which means something else where it was raised."""
    stray = RuntimeError(f"a function of the flow raised {type(error).__name__}")
    stray.__cause__ = error
    return stray
