"""Ending: tells the stages of one subscription that want to know it how the flow has ended.

Each hook is called exactly once, with what happened at its place in the chain: the stages before
the one that completes the flow are cancelled by it, those behind it see it complete; the stages
before one that fails are cancelled, those behind it see the error. Hooks are called in the order
in which the signal passes them: a completion and an error go down, a cancellation goes up.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal

__all__ = ("EndHooks", "Hook", "Outcome")

Outcome = Literal["completed", "failed", "cancelled"]
Hook = Callable[[Outcome, BaseException | None], Any]


class EndHooks:
    """The hooks that have not been called yet, by their place; the source's is 0."""

    __slots__ = ("_report", "_waiting")

    def __init__(
        self, hooks: Iterable[tuple[int, Hook]], report: Callable[[str, BaseException], None]
    ) -> None:
        self._waiting = dict(hooks)  # first stage first
        self._report = report

    def completed(self, place: int) -> None:
        """The elements have ended at *place*. What a hook raises fails the flow from there on."""
        hook = self._waiting.pop(place, None)
        if hook is not None:
            hook("completed", None)

    def stopped(self, place: int) -> None:
        """The stage at *place* wants no more."""
        self._cancel([each for each in self._waiting if each < place])

    def failed(self, error: Exception, place: int) -> Exception:
        """*error* was raised at *place*; return the error to go on with.

        That is another one when a hook raises; as with any ``except`` clause, the first is then
        its ``__context__``.
        """
        if isinstance(error, StopIteration | StopAsyncIteration):
            # As where it leaves a generator: it must not look like an end.
            stray = RuntimeError(f"a function of the flow raised {type(error).__name__}")
            stray.__cause__ = error
            error = stray
        return self.passed(error, place)

    def passed(self, error: Exception, place: int = 0) -> Exception:
        """*error* came from upstream to *place*: the same, except that it may be any exception."""
        self.stopped(place)
        for each in list(self._waiting):
            try:
                self._waiting.pop(each)("failed", error)
            except Exception as raised:
                if raised is not error and raised.__context__ is None:
                    raised.__context__ = error
                error = raised
        return error

    def left(self) -> None:
        """Whoever has not been told otherwise has been cancelled."""
        if self._waiting:
            self._cancel(list(self._waiting))

    def _cancel(self, places: list[int]) -> None:
        for place in reversed(places):
            hook = self._waiting.pop(place, None)
            if hook is None:
                continue
            try:
                hook("cancelled", None)
            except Exception as error:  # nobody downstream listens any more
                self._report("a callback raised when its flow was cancelled", error)
