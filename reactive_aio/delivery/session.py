"""Session: what the operators of one subscription to a `DeliveryFlow` share. Pure."""

from collections.abc import Callable
from typing import Any, Protocol

from .ties import Failure, Motion, Tied


class Keeper(Protocol):
    """What keeps the deliveries of a subscription."""

    def on_still(self) -> None:
        """No element moves: each one that is open rests in a list."""
        ...

    def on_over(self) -> None:
        """Nothing works on an element any more, and nothing will."""
        ...

    def check_loop(self, call: str, /) -> None:
        """Raise `WrongLoop` unless *call* is made where the subscription runs."""
        ...


class Session:
    """One subscription: its ties, its lists, the calls that run, and whether it is over.

    It is over when the source has ended or was cancelled, no signal can leave the operators any
    more, and all work on elements that awaited something has ended.
    """

    __slots__ = ("_busy", "_is_source_over", "_is_tail_over", "_keeper", "_lists", "has_failed",
                 "is_lenient", "motion")  # fmt: skip

    def __init__(self, *, is_lenient: bool) -> None:
        self.is_lenient: bool = is_lenient
        """Whether a function that raises nacks its element, and does not fail the flow."""
        self.motion: Motion = Motion(self._on_still)
        self._keeper: Keeper | None = None
        self._lists: list[Callable[[], object]] = []
        self._busy = 0
        self._is_source_over = False
        self._is_tail_over = False
        self.has_failed: bool = False
        """Whether the consumer receives an error."""

    def open(self, keeper: Keeper) -> None:
        """*keeper* keeps the deliveries."""
        self._keeper = keeper

    def check_loop(self, call: str) -> None:
        """Raise `WrongLoop` unless *call*, of the consumer, is made where the subscription runs."""
        if self._keeper is not None:
            self._keeper.check_loop(call)

    # -- lists ------------------------------------------------------------------------------------
    def add_list(self, flush: Callable[[], object]) -> None:
        """An operator makes lists; *flush* completes the one that grows."""
        self._lists.append(flush)

    def flush_lists(self) -> None:
        """Complete every list that grows."""
        for flush in self._lists:
            flush()

    def _on_still(self) -> None:
        if self._keeper is not None:
            self._keeper.on_still()

    # -- functions of the user --------------------------------------------------------------------
    def enter(self) -> None:
        """Work on an element begins, which may await something."""
        self._busy += 1

    def leave(self) -> None:
        """It has ended."""
        self._busy -= 1
        if self._is_tail_over:
            self._end_if_over()

    def failure(self, error: Exception, *, is_last: bool = False) -> Failure:
        """What *error*, which a function of the user has raised, is to a tie."""
        return Failure(error, not self.is_lenient, is_last)

    def failed(self, tied: Tied[Any], error: Exception, *, is_last: bool = False) -> None:
        """The work on an element has failed: nack it, and raise *error* unless that suffices."""
        tied.tie.settle(self.failure(error, is_last=is_last))
        if not self.is_lenient:
            raise error

    # -- the end ----------------------------------------------------------------------------------
    def end_source(self) -> None:
        """No more elements will be emitted."""
        self._is_source_over = True
        self._end_if_over()

    def fail_tail(self) -> None:
        """An error leaves the operators; `end_tail` follows."""
        self.has_failed = True

    def end_tail(self) -> None:
        """No more signals leave the operators."""
        self._is_tail_over = True
        self._end_if_over()

    def _end_if_over(self) -> None:
        is_over = self._is_source_over and self._is_tail_over and not self._busy
        if is_over and not self.motion.is_over:
            self.motion.is_over = True
            if self._keeper is not None:
                self._keeper.on_over()
