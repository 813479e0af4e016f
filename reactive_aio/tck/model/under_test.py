"""An operator under test: what goes in, what comes out, and what is given back.

The elements that it is given are numbers that can be told apart from their equals. The statement of
what the operator does is applied to those that it was given, so that nothing has to be known about
its neighbours.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from itertools import islice
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from weakref import ref
from zlib import crc32

from ...spec import Publisher
from ...testing import Token
from ...testing.safe_repr import safe_repr
from .run import Run

if TYPE_CHECKING:
    from ...flow import Flow

__all__ = ("Number", "OperatorRun", "UnderTest")

SEQUENCES: Final[tuple[Callable[[int], int], ...]] = (
    lambda i: i,
    lambda i: i % 3,
    lambda i: -i,
    lambda i: i,
    lambda i: 7 * i % 5 - 2,
    lambda i: i // 2,
    lambda i: 5 - i,
    lambda i: 37 * i,
    lambda i: 4,
)
"""The elements of a run: a third of them rise, so that all can be told apart."""
MORE: Final = (*range(-2, 5), *range(10**6, 10**6 + 5))
"""Values after which a result that is complete stays as it is."""
PAUSES: Final = tuple(0.001 * 2**i for i in range(len(MORE)))
"""How long after the end of a timed operator they follow, in seconds."""
LATER: Final = 10.0
"""Seconds for which a timed operator is reckoned with when it has left its source."""
MOST_ELEMENTS: Final = 20_000
"""More of them do not end."""
MOST_MISSING: Final = 40
"""Elements of a run of which it is asked whether they are lost: each costs two statements."""
NUMBERS: Final = frozenset((bool, int, float, complex))
"""Kinds of which some are equal to others."""
MOST_SHOWN: Final = 45
"""Elements in a message."""
COMPLETED: Final = ""
"""How a flow has ended; otherwise, the name of its error."""


class Result(NamedTuple):
    """What a statement makes of elements."""

    elements: list[Any]
    end: str
    """The name of the error that it raises."""
    origin: str
    """That error and where it was raised, without what it refers to."""


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

    def result(self, elements: list[Any], *end: float) -> Result:
        """What the statement makes of *elements*."""
        made: list[Any] = []
        try:
            for each in self.does(elements, *end):
                made.append(each)  # noqa: PERF402 - those before an error count
        except Exception as error:
            place = extract_tb(error.__traceback__)[-1]
            origin = f"{error!r} of {place.name}, line {place.lineno} of {place.filename}"
            return Result(made, type(error).__name__, origin)
        return Result(made, COMPLETED, "")

    def made(self, number: int) -> Any:
        """An element of the user's type."""
        return number if self.element is None else self.element(abs(number))


@dataclass(eq=False)
class Passage:
    """What one subscription of the operator was given, and made of it."""

    run: "OperatorRun"
    sequence: Callable[[int], int]
    """Has the elements made of the numbers of sources."""
    in_time: bool
    """Whether nothing delays its elements, so that their times are judged."""
    given: list[Any] = field(default_factory=list[Any])
    """Plain numbers, which keep nothing alive; elements that the user makes are kept."""
    times: list[float] = field(default_factory=list[float])
    marks: "list[ref[Token]]" = field(default_factory=lambda: list[ref[Token]]())
    firsts: list[int] = field(default_factory=list[int])
    """For each of the elements the place at which that object went in first."""
    kept: dict[int, int] = field(default_factory=dict[int, int])
    """These places by the ids of elements that the user makes."""
    out: list[Any] = field(default_factory=list[Any])
    out_times: list[float] = field(default_factory=list[float])
    left: Counter[int] = field(default_factory=Counter[int])
    """How often the element of a place came out."""
    back: list[Any] = field(default_factory=list[Any])
    """What was given back."""
    above: str | None = None
    below: str | None = None
    """How its source and the operator have ended."""
    above_text: str = ""
    below_text: str = ""
    """The errors of both."""
    ended_at: float = 0.0
    """When its source has ended."""
    below_ended_at: float = 0.0

    @property
    def now(self) -> float:
        return round(asyncio.get_running_loop().time(), 6)

    def enter(self, token: Token) -> Any:
        """The element for *token*."""
        value, place = self.sequence(self.run.value(token)), len(self.given)
        self.run.ledger.drop(token, "given to the operator")
        self.times.append(self.now)
        if self.run.under_test.element is not None:
            self.given.append(made := self.run.under_test.made(value))
            self.firsts.append(self.kept.setdefault(id(made), place))
            return made
        number = Number(value)
        number.passage, number.place, number.mark = self, place, Token(value)
        self.given.append(value)
        self.firsts.append(place)
        self.marks.append(ref(number.mark))
        return number

    def leave(self, element: Any) -> Token:
        """A token for what came out."""
        self.out.append(element)
        self.out_times.append(self.now)
        self.left.update(self.places(element))
        self.run.count_one()
        return self.run.token(value_of(element))

    def places(self, element: object) -> Iterator[int]:
        """The places of the elements that *element* is or contains.

        Of an object that went in several times, it is the first one.
        """
        for each in parts_of(element):
            if isinstance(each, Number) and each.passage is self:
                yield each.place
            elif id(each) in self.kept:
                yield self.kept[id(each)]

    @property
    def alive(self) -> int:
        """How many elements something refers to that has not come out."""
        return sum(mark() is not None and i not in self.left for i, mark in enumerate(self.marks))

    def entering(self, flow: "Flow[Token]") -> "Flow[Any]":
        """The source of the operator."""
        given = flow.map(self.enter).do_on_complete(self.end_above)
        return given.do_on_error(self.end_above)

    def leaving(self, made: "Flow[Any]") -> "Flow[Token]":
        """What the operator has *made*."""
        out: Flow[Token] = made.map(self.leave).do_on_complete(self.end_below)
        return out.do_on_error(self.end_below)

    def end_above(self, error: BaseException | None = None) -> None:
        self.above = COMPLETED if error is None else type(error).__name__
        self.above_text = safe_repr(error)
        self.ended_at = self.now

    def end_below(self, error: BaseException | None = None) -> None:
        self.below = COMPLETED if error is None else type(error).__name__
        self.below_text = safe_repr(error)
        self.below_ended_at = self.now

    # -- the judgement ----------------------------------------------------------------------------
    @property
    def is_whole(self) -> bool:
        """Whether the operator has completed because there was no more, or it needed no more."""
        # A drain also completes sources that the operator reads besides.
        return self.below == COMPLETED and not self.run.is_drained

    def complaints(self) -> Iterator[str]:
        if not self.run.under_test.timed:
            yield from self._about_values()
        elif self.in_time:
            yield from self._about_times()
        yield from self._about_what_came_back()
        for each in (self.out, self.back):
            each.clear()  # from here on, only others refer to these elements

    def _about_times(self) -> Iterator[str]:
        given, end = [*zip(self.times, self.given, strict=True)], self._end_of_time()
        result = self.run.under_test.result(given, end)
        if self.above != COMPLETED and self.below is not None and self.below != self.above:
            # It has ended by itself: what follows makes no difference.
            more = [
                (end - LATER + pause, self.run.under_test.made(each))
                for pause, each in zip(PAUSES, MORE, strict=True)
            ]
            result = self.run.under_test.result([*given, *more], end)
        found: list[Any] = [*zip(self.out_times, self.out, strict=True)]
        pairs = [(round(at, 6), value) for at, value in result.elements]
        expected = [pair for pair in pairs if pair[1] is not None]
        ends = [at for at, value in pairs if value is None]
        has_ended = self.is_whole or self.below not in (None, COMPLETED, self.above)
        is_part, rest = self._compared(found, expected)
        if not is_part or (has_ended and rest):
            yield _difference(given, found, expected, is_whole=has_ended)
        elif has_ended and result.end != self.below:
            due = _end(result.end, result)
            yield f"of {_shown(given)} it {_end(self.below)}, and should have {due}"
        elif has_ended and ends and self.below_ended_at not in ends:
            what = f"it {_end(self.below)} at {self.below_ended_at}, and should have at {ends[0]}"
            yield f"of {_shown(given)} {what}"
        elif self.run.is_hooked and not has_ended:
            yield from self._about_losses(given, end)

    def _end_of_time(self) -> float:
        """When the source has ended; if the operator has without it, a while later."""
        if self.above == COMPLETED or (self.above and self.below in (None, self.above)):
            return self.ended_at
        return max([self.ended_at, self.below_ended_at, *self.times, *self.out_times]) + LATER

    def _about_values(self) -> Iterator[str]:
        given, found = self.given, self.out
        result = self.run.under_test.result([*given])
        is_part, rest = self._compared(found, result.elements)
        if not is_part or (self.is_whole and rest):
            yield _difference(given, found, result.elements, is_whole=self.is_whole)
        elif self.run.under_test.ordered:
            yield from _about_kinds(found, result.elements)
        if self.is_whole:
            yield from self._about_completion(result)
        elif self.below not in (None, COMPLETED, result.end, self.above, *self._of_cleanups):
            yield f"of {_shown(given)} it failed with {self.below_text}"
        elif self.below and self.below == self.above and self.below_text != self.above_text:
            yield f"it failed with {self.below_text}, and its source with {self.above_text}"
        if self.run.is_hooked and not self.is_whole:
            yield from self._about_losses(given)

    @property
    def _of_cleanups(self) -> tuple[str, ...]:
        """Who reads a source to its end is told what its cleanup has raised."""
        return ("CleanupError",) if self.run.failed_cleanups else ()

    def _compared(self, found: list[Any], expected: list[Any]) -> tuple[bool, list[Any]]:
        """Whether what was *found* is a part of what is *expected*, and the rest of that."""
        if self.run.under_test.ordered:
            return found == expected[: len(found)], expected[len(found) :]
        missing = without(expected, found)
        return len(missing) == len(expected) - len(found), missing

    def _about_completion(self, result: Result) -> Iterator[str]:
        if result.end != COMPLETED:
            due = _end(result.end, result)
            yield f"of {_shown(self.given)} it completed, and should have {due}"
        elif self.above != COMPLETED:
            more = map(self.run.under_test.made, MORE)
            if self.run.under_test.result([*self.given, *more])[:2] != result[:2]:
                state = "has not ended" if self.above is None else f"failed with {self.above}"
                yield f"it completed after {_shown(self.given)}, when its source {state}"

    def _about_losses(self, given: list[Any], *end: float) -> Iterator[str]:
        """Of each element that was not given back, something has to be there.

        What the statement makes of an element is what it makes no longer without it. If that is
        nothing, the element was left out on purpose; if the same is made of what was given back, as
        of one of two that are equal, nobody can tell.
        """
        made = [*self.out, *(each for each in self.back if not [*self.places(each)])]
        whole, back = self._values(given, *end), self._came_back
        rest = [each for first, each in zip(self.firsts, given, strict=False) if first not in back]
        of_back = without(whole, self._values(rest, *end)) if back else []
        for place in islice(self._missing(), MOST_MISSING):
            others = self._values(given[:place] + given[place + 1 :], *end)
            due = without(without(whole, others), of_back)
            if due and len(without(due, made)) == len(due):
                yield (
                    f"lost: {self.given[place]!r}. It was given {_shown(self.given)}, "
                    f"{_shown(self.out)} came out, {_shown(self.back)} was given to do_on_discard. "
                    "If it keeps elements for good, or reads its source by `async for`, say "
                    "gives_back=False"
                )

    def _missing(self) -> Iterator[int]:
        """The places of elements that neither came out nor were given back."""
        there = self.left + self._came_back
        for place, first in enumerate(self.firsts):
            there[first] -= 1
            if there[first] < 0:
                yield place

    def _values(self, given: list[Any], *end: float) -> list[Any]:
        elements = self.run.under_test.result(given, *end).elements
        return [value for _, value in elements if value is not None] if end else elements

    @property
    def _came_back(self) -> Counter[int]:
        """How often the element of a place was given back."""
        return Counter(place for each in self.back for place in self.places(each))

    def _about_what_came_back(self) -> Iterator[str]:
        """An element comes out or is given back as often as the statement has it, or else once."""
        counts = Counter(self.firsts)
        for place, count in self._came_back.items():
            total = count + self.left[place]
            if total <= counts[place] or total <= self._times_made[place]:
                continue
            if count > max(counts[place], self._times_made[place]):
                yield f"{self.given[place]} was given back {count} times"
            else:
                yield f"{self.given[place]} came out, and was given back as well"

    @cached_property
    def _times_made(self) -> list[int]:
        """In how many elements that the statement makes the element of each place is, or its equal.

        Elements that can be compared only with themselves are counted as such.
        """
        under_test = self.run.under_test
        given = [*zip(self.times, self.given, strict=True)] if under_test.timed else [*self.given]
        end = (self._end_of_time(),) if under_test.timed else ()
        parts = [part for each in self._values(given, *end) for part in parts_of(each)]
        return [sum(part is each or part == each for part in parts) for each in self.given]


@dataclass(eq=False)
class OperatorRun(Run):
    """One run of a program with an operator under test."""

    under_test: UnderTest = field(kw_only=True)
    passages: list[Passage] = field(default_factory=list[Passage])
    is_hooked: bool = False
    out_count: int = 0
    """How many elements the operator has made."""

    def begin(self, sequence: int, *, in_time: bool = False) -> Passage:
        """One more passage, of which the elements are those of a *sequence*."""
        self.passages.append(Passage(self, SEQUENCES[sequence % len(SEQUENCES)], in_time))
        return self.passages[-1]

    def through(
        self, flow: "Flow[Token]", sequence: int, *, in_time: bool = False
    ) -> "Flow[Token]":
        """*flow* with the operator."""
        passage = self.begin(sequence, in_time=in_time)
        return passage.leaving(self.under_test.operator(passage.entering(flow)))

    def through_each_time(
        self, flow: "Flow[Token]", sequence: int, defer: Callable[..., "Flow[Any]"]
    ) -> "Flow[Token]":
        """One flow with the operator, each subscription of which is a passage of its own."""
        source = defer(lambda: self.inner(self.passages[-1].entering(flow)))
        made = self.under_test.operator(source)
        return defer(lambda: self.inner(self.begin(sequence).leaving(made)))

    def hooked(self, flow: "Flow[Any]") -> "Flow[Any]":
        self.is_hooked = True
        return super().hooked(flow)

    @property
    def held(self) -> int:
        return super().held + sum(each.alive for each in self.passages)

    def count_one(self) -> None:
        """One more element came out."""
        self.out_count += 1
        if self.out_count > MOST_ELEMENTS:
            raise AssertionError(f"it does not end: {MOST_ELEMENTS} elements came out")

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


def _about_kinds(found: list[Any], expected: list[Any]) -> Iterator[str]:
    """The first number that is equal to another kind of number."""
    for made, due in zip(found, expected, strict=False):
        kinds: list[type] = [
            int if isinstance(each, Number) else type(cast("object", each)) for each in (made, due)
        ]
        if kinds[0] is not kinds[1] and NUMBERS.issuperset(kinds):
            yield f"it made {made!r}, and should have made {due!r}"
            return


def parts_of(element: object) -> Iterator[object]:
    """*element*, what it contains or has as an attribute, what that contains, and so on."""
    found, known = [element], set[int]()
    while found:
        each = found.pop()
        if id(each) not in known:
            known.add(id(each))
            yield each
            found += _contents(each)


def _contents(element: object) -> Iterable[object]:
    """What *element* contains, unless it is plain or runs."""
    if isinstance(element, Mapping):
        both = cast("Mapping[object, object]", element)
        return [*both, *both.values()]
    if isinstance(element, (str, bytes, bytearray, range, Number)):
        return ()
    if isinstance(element, Collection):
        return cast("Collection[object]", element)
    if is_dataclass(element):
        return [getattr(element, each.name, None) for each in fields(element)]
    if callable(element) or isinstance(element, Publisher):
        return ()
    attributes: dict[str, object] = getattr(element, "__dict__", {})
    return attributes.values()


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


def _end(end: str | None, result: Result | None = None) -> str:
    origin = f" (`does` raised {result.origin})" if result is not None and result.origin else ""
    return "completed" if end == COMPLETED else f"failed with {end}{origin}"


def _difference(given: list[Any], found: list[Any], expected: list[Any], *, is_whole: bool) -> str:
    rest = "" if is_whole else ", or the beginning of that"
    made = f"it made {_shown(found)}, and should have made {_shown(expected)}{rest}"
    return f"of {_shown(given)} {made}"


def _shown(elements: list[Any]) -> str:
    """*elements*, of many only the first and the last ones."""
    if len(elements) <= MOST_SHOWN:
        return str([*map(_plain, elements)])
    first, last = (", ".join(map(str, some)) for some in (elements[:20], elements[-5:]))
    return f"[{first}, …, {last}] ({len(elements)} elements)"
