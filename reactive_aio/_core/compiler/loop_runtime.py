"""What generated loops use: how they pause and unwind, and close a source."""

from collections.abc import Callable, Generator, Iterable, Iterator
from enum import Enum
from types import GeneratorType
from typing import Any, Final, cast

from ...errors import NotAnElement
from ..run_control import RunControl


class Pause(Enum):
    """Why a loop pauses. Not an int: in one mode, identity separates a pause from an element."""

    NO_DEMAND = "no demand"
    NO_ELEMENTS = "no elements"
    SLICE_OVER = "the time slice is over"
    AWAIT_SIGNAL = "the subscriber returned an awaitable"
    MID_ELEMENT = "no demand, and a stage still emits for its current element"


NO_DEMAND, NO_ELEMENTS, SLICE_OVER, AWAIT_SIGNAL, MID_ELEMENT = Pause


class Done(Exception):
    """Unwinds a loop after ``last`` or ``done``."""


class UpstreamFailed(Exception):
    """Carries the error of an upstream through the loop unchanged, even a StopIteration."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class SubscriberRaised(Exception):
    """Carries the error of a subscriber past the error handling of the stages (2.13)."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def no_element(stage: str) -> NotAnElement:
    """The error for a stage or a source that produced None."""
    advice = {
        "map": " Use filter_map to leave elements out.",
        "map_async": " To await a function without a result: for_each(function, concurrency=n).",
    }.get(stage, " Leave it out, or put another value in its place.")
    return NotAnElement(f"{stage} produced None, which is not an element.{advice}")


class UntilStopped:
    """The elements of a source up to the drain of its run.

    A loop iterates over the generator: a method ``__next__`` would take four times as long.
    """

    __slots__ = ("_control", "_elements", "_left", "_until_stopped")

    def __init__(self, elements: Iterator[Any], control: RunControl) -> None:
        self._control = control
        self._elements = elements
        self._left = length_hint_of(elements)
        self._until_stopped = self._read()

    def _read(self) -> Generator[Any]:
        control = self._control
        for element in () if control.is_stopped else self._elements:
            yield element
            if control.is_stopped:
                return

    def __iter__(self) -> Iterator[Any]:
        return self._until_stopped

    def __next__(self) -> Any:
        return next(self._until_stopped)

    def __length_hint__(self) -> int:
        """0 where no element follows for certain."""
        if self._control.is_stopped:
            return 0
        return 1 if self._left is None else self._left()

    @property
    def gi_running(self) -> bool:
        return bool(cast("Any", self._until_stopped).gi_running)

    def close(self) -> None:
        self._until_stopped.close()
        elements: Any = self._elements
        if isinstance(elements, GeneratorType):
            cast("Any", elements).close()


CLOSABLE: Final = (GeneratorType, UntilStopped)
"""Iterators that have a cleanup."""
# Iterators that report how many elements are left, so that on_complete can follow the last
# requested element directly (1.5) without reading ahead.
_SIZED: tuple[Iterable[Any], ...] = ((), [], {}, "", b"", range(0), range(1 << 70))
_EXACT = frozenset((*(type(iter(sized)) for sized in _SIZED), UntilStopped))


def length_hint_of(iterator: Any) -> Callable[[], int] | None:
    """The function that returns how many elements *iterator* has left, if that is known."""
    return iterator.__length_hint__ if type(iterator) in _EXACT else None


def close_source(
    source: object,
    report: Callable[[str, BaseException], None],
    failure_of: Callable[[BaseException], BaseException],
    error: BaseException | None = None,
    *,
    is_read_by_operator: bool = False,
) -> None:
    """Run the cleanup of a generator now: *error*, which ended the flow, may be kept for long.

    What the cleanup raises is *report*ed, so that it does not replace *error*; and where an
    operator reads the loop, which would take it for a failure of the source.
    """
    if isinstance(source, CLOSABLE):
        try:
            source.close()
        except BaseException as raised:
            is_raised = error is None and not is_read_by_operator
            stops_program = isinstance(raised, (KeyboardInterrupt, SystemExit))
            if is_raised or stops_program or isinstance(error, GeneratorExit):
                raise failure_of(raised)  # noqa: B904
            report("the cleanup of a source raised", raised)
