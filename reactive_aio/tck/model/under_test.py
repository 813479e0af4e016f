"""An operator under test: what goes in, what comes out, and what is given back.

The elements that it is given are numbers that can be told apart from their equals. The statement of
what the operator does is applied to those that it was given, so that nothing has to be known about
its neighbours.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import ref
from zlib import crc32

from ...testing import Token
from .run import Run

if TYPE_CHECKING:
    from ...flow import Flow

__all__ = ("Number", "OperatorRun", "UnderTest")

MORE: Final = (*range(5), *range(10**6, 10**6 + 5))
"""Values after which a result that is complete stays as it is."""
COMPLETED: Final = ""
"""How a flow has ended; otherwise, the name of its error."""


class Number(int):
    """An element: the one at *place* of those that went in by *passage*."""

    passage: "Passage"
    place: int
    mark: Token
    """Nothing else refers to it, so that it shows how long the number lives."""


@dataclass(frozen=True, kw_only=True)
class UnderTest:
    """An operator, and what is said about it."""

    operator: Callable[[Any], Any]
    does: Callable[..., Iterable[Any]]
    element: Callable[[int], Any] | None = None
    ordered: bool = True
    gives_back: bool = True
    holds: int | None = 0
    timed: bool = False

    def result(self, elements: list[Any], *end: float) -> "tuple[list[Any], str]":
        """What the statement makes of *elements*, and the name of the error that it raises."""
        made: list[Any] = []
        try:
            for each in self.does(elements, *end):
                made.append(each)  # noqa: PERF402 - those before an error count
        except Exception as error:
            return made, type(error).__name__
        return made, COMPLETED


@dataclass(eq=False)
class Passage:
    """What one subscription of the operator was given, and made of it."""

    run: "OperatorRun"
    in_time: bool
    """Whether nothing delays its elements, so that their times are judged."""
    given: list[Any] = field(default_factory=list[Any])
    """Plain numbers, which keep nothing alive; elements that the user makes are kept."""
    times: list[float] = field(default_factory=list[float])
    marks: "list[ref[Token]]" = field(default_factory=lambda: list[ref[Token]]())
    kept: dict[int, int] = field(default_factory=dict[int, int])
    """The places of elements that the user makes, by their ids."""
    out: list[Any] = field(default_factory=list[Any])
    out_times: list[float] = field(default_factory=list[float])
    left: set[int] = field(default_factory=set[int])
    """The places of those that came out."""
    back: list[Any] = field(default_factory=list[Any])
    """What was given back."""
    above: str | None = None
    below: str | None = None
    """How its source and the operator have ended."""
    ended_at: float = 0.0
    """When its source has."""

    @property
    def now(self) -> float:
        return round(asyncio.get_running_loop().time(), 6)

    def enter(self, token: Token) -> Any:
        """The element for *token*."""
        value, make = self.run.value(token), self.run.under_test.element
        self.run.ledger.drop(token, "given to the operator")
        self.times.append(self.now)
        if make is not None:
            self.given.append(made := make(value))
            self.kept[id(made)] = len(self.given) - 1
            return made
        number = Number(value)
        number.passage, number.place, number.mark = self, len(self.given), Token(value)
        self.given.append(value)
        self.marks.append(ref(number.mark))
        return number

    def leave(self, element: Any) -> Token:
        """A token for what came out."""
        self.out.append(element)
        self.out_times.append(self.now)
        self.left.update(self.places(element))
        return self.run.token(value_of(element))

    def places(self, element: object) -> Iterator[int]:
        """The places of the elements that *element* is or contains."""
        for each in parts_of(element):
            if isinstance(each, Number) and each.passage is self:
                yield each.place
            elif id(each) in self.kept:
                yield self.kept[id(each)]

    @property
    def alive(self) -> int:
        """How many elements something refers to that has not come out."""
        return sum(mark() is not None and i not in self.left for i, mark in enumerate(self.marks))

    def end_above(self, error: BaseException | None = None) -> None:
        self.above = COMPLETED if error is None else type(error).__name__
        self.ended_at = self.now

    def end_below(self, error: BaseException | None = None) -> None:
        self.below = COMPLETED if error is None else type(error).__name__

    # -- the judgement ----------------------------------------------------------------------------
    def complaints(self) -> Iterator[str]:
        yield from self._about_times() if self.run.under_test.timed else self._about_values()
        yield from self._about_what_came_back()
        for each in (self.out, self.back):
            each.clear()  # from here on, only others refer to these elements

    def _about_times(self) -> Iterator[str]:
        if not self.in_time or self.above != COMPLETED or self.below is None:
            return
        given = [*zip(self.times, self.given, strict=True)]
        expected, error = self.run.under_test.result(given, self.ended_at)
        expected = [(round(at, 6), value) for at, value in expected]
        if (found := [*zip(self.out_times, self.out, strict=True)]) != expected:
            yield f"of {given} it made {found}, and should have made {expected}"
        if error != self.below:
            yield f"it {_end(self.below)}, and should have {_end(error)}"

    def _about_values(self) -> Iterator[str]:
        expected, error = self.run.under_test.result([*self.given])
        is_part, rest = self._compared(expected)
        # A drain also completes sources that the operator reads besides.
        is_whole = self.below == COMPLETED and not self.run.is_drained
        if not is_part or (is_whole and rest):
            whole = "" if is_whole else ", or the beginning of that"
            yield f"of {self.given} it made {self.out}, and should have made {expected}{whole}"
        if is_whole:
            yield from self._about_completion(expected, error)
        elif self.below not in (None, COMPLETED, error, self.above):
            yield f"of {self.given} it failed with {self.below}"
        if self.run.is_hooked and not is_whole:
            yield from self._about_losses()

    def _compared(self, expected: list[Any]) -> tuple[bool, list[Any]]:
        """Whether what came out is a part of what is *expected*, and the rest of that."""
        if self.run.under_test.ordered:
            return self.out == expected[: len(self.out)], expected[len(self.out) :]
        missing = without(expected, self.out)
        return len(missing) == len(expected) - len(self.out), missing

    def _about_completion(self, expected: list[Any], error: str) -> Iterator[str]:
        if error != COMPLETED:
            yield f"of {self.given} it completed, and should have failed with {error}"
        elif self.above != COMPLETED:
            make = self.run.under_test.element or int
            more = self.run.under_test.result([*self.given, *map(make, MORE)])
            if more != (expected, COMPLETED):
                state = "has not ended" if self.above is None else f"failed with {self.above}"
                yield f"it completed after {self.given}, when its source {state}"

    def _about_losses(self) -> Iterator[str]:
        """Of each element that was not given back, something has to be there.

        What the statement makes of an element is what it makes no longer without it. If that is
        nothing, the element was left out on purpose.
        """
        there = {place for each in self.back for place in self.places(each)} | self.left
        made = [*self.out, *(each for each in self.back if not [*self.places(each)])]
        whole, _ = self.run.under_test.result([*self.given])
        for place, each in enumerate(self.given):
            if place in there:
                continue
            others, _ = self.run.under_test.result(self.given[:place] + self.given[place + 1 :])
            due = without(whole, others)
            if due and len(without(due, made)) == len(due):
                yield (
                    f"lost: {each!r}. It was given {self.given}, {self.out} came out, "
                    f"{[*map(_plain, self.back)]} was given to do_on_discard. If it keeps elements "
                    "for good, or reads its source by `async for`, say gives_back=False"
                )

    def _about_what_came_back(self) -> Iterator[str]:
        places = [place for each in self.back for place in self.places(each)]
        passed_on = {each.place for each in self.out if isinstance(each, Number)}
        for place in dict.fromkeys(places):
            if places.count(place) > 1:
                yield f"{self.given[place]} was given back {places.count(place)} times"
            if place in passed_on:
                yield f"{self.given[place]} came out, and was given back as well"


@dataclass(eq=False)
class OperatorRun(Run):
    """One run of a program with an operator under test."""

    under_test: UnderTest = field(kw_only=True)
    passages: list[Passage] = field(default_factory=list[Passage])
    is_hooked: bool = False

    def through(self, flow: "Flow[Token]", *, in_time: bool = False) -> "Flow[Token]":
        """*flow* with the operator."""
        passage = Passage(self, in_time)
        self.passages.append(passage)
        given = flow.map(passage.enter).do_on_complete(passage.end_above)
        made = self.under_test.operator(given.do_on_error(passage.end_above))
        out: Flow[Token] = made.map(passage.leave).do_on_complete(passage.end_below)
        return out.do_on_error(passage.end_below)

    def hooked(self, flow: "Flow[Any]") -> "Flow[Any]":
        self.is_hooked = True
        return super().hooked(flow)

    @property
    def held(self) -> int:
        return super().held + sum(each.alive for each in self.passages)

    def discarded(self, element: object) -> None:
        """`do_on_discard` has been given *element*: a token, or what the operator has or makes."""
        super().discarded(element)
        if isinstance(element, Token):
            return
        owners = (each for each in self.passages if [*each.places(element)])
        next(owners, self.passages[-1]).back.append(element)

    @property
    def errors(self) -> set[str]:
        """The errors with which the operator failed; whether it should have is judged here."""
        return {each.below for each in self.passages if each.below}

    def complaints(self, slack: int | None) -> Iterator[str]:
        for each in self.passages:
            yield from each.complaints()
        yield from super().complaints(slack)
        self.collect()
        if kept := sum(mark() is not None for each in self.passages for mark in each.marks):
            yield f"something refers to {kept} elements after the end"


def parts_of(element: object) -> Iterator[object]:
    """*element*, and what it contains if it is a list, and so on."""
    yield element
    if isinstance(element, dict):
        element = [*cast("dict[object, object]", element).values()]
    if isinstance(element, (list, tuple, set, frozenset)):
        for each in cast("list[object]", element):
            yield from parts_of(each)


def value_of(element: object) -> int:
    """A number for an element that an operator has made: the same in each run, not negative."""
    return abs(int(element)) if isinstance(element, int) else crc32(repr(element).encode()) % 1000


def without(elements: list[Any], others: list[Any]) -> list[Any]:
    """*elements* less *others*, which need not be hashable."""
    rest = [*elements]
    for each in others:
        with suppress(ValueError):
            rest.remove(each)
    return rest


def _plain(element: object) -> object:
    return int(element) if isinstance(element, Number) else element


def _end(end: str | None) -> str:
    return "completed" if end == COMPLETED else f"failed with {end}"
