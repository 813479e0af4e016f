"""A script decides how a run continues wherever there are several ways. Pure.

Option 0 is always asyncio's own choice, so a script lists only the departures from it. Its text is
printed by a failure and parsed by `replay`: ``"3=1 p120=2"`` takes option 1 at the third choice
between steps, and option 2 at the 120th traced line.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from types import CodeType
from typing import Final

BETWEEN_STEPS: Final = ""
"""The kind of a choice between two steps."""
INSIDE_STEP: Final = "p"
"""The kind of a choice at a traced line inside a step: a preemption."""

Place = tuple[CodeType, int]
"""A line of code."""
_DEPARTURE: Final = re.compile(r"(p?)(\d+)=(\d+)")


@dataclass(frozen=True, slots=True)
class Departure:
    """At choice *number* of its *kind*, *option* instead of 0."""

    kind: str
    number: int
    option: int

    def __str__(self) -> str:
        return f"{self.kind}{self.number}={self.option}"


Departures = tuple[Departure, ...]


def format_order(departures: Iterable[Departure]) -> str:
    return " ".join(map(str, departures))


def parse_order(text: str) -> Departures:
    """The departures in *text*; ValueError if it is not an order."""
    departures: list[Departure] = []
    for word in text.split():
        match = _DEPARTURE.fullmatch(word)
        if match is None:
            raise ValueError(f"not an order: {word!r}; it reads like '3=1 p120=2', or is empty")
        departures.append(Departure(match[1], int(match[2]), int(match[3])))
    return tuple(departures)


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice at which a run took option 0 and has other options."""

    kind: str
    number: int
    options: int
    place: Place | None


class Script:
    """Takes the given *departures*, and records the choices after the last of them."""

    def __init__(self, departures: Departures = (), *, preemptions: int = 0) -> None:
        self._options = {(each.kind, each.number): each.option for each in departures}
        self.given: Departures = departures
        self.preemptions_left: int = preemptions
        self._counts = {BETWEEN_STEPS: 0, INSIDE_STEP: 0}
        self.taken: list[Departure] = []
        self.choices: list[Choice] = []
        """The choices after the last departure."""

    @property
    def is_followed(self) -> bool:
        """Whether each given departure was taken: always, if the scenario is deterministic."""
        return tuple(self.taken[: len(self.given)]) == self.given

    def choose(self, kind: str, options: int, place: Place | None = None) -> int:
        """Choose between *options* ways to continue, at *place* inside a step."""
        number = self._counts[kind] = self._counts[kind] + 1
        option = self._option(kind, number, options)
        if not 0 < option < options:
            self.choices.append(Choice(kind, number, options, place))
            return 0
        self.taken.append(Departure(kind, number, option))
        self.choices.clear()
        self.preemptions_left -= kind == INSIDE_STEP
        return option

    def _option(self, kind: str, number: int, options: int) -> int:
        return self._options.get((kind, number), 0)


class RandomScript(Script):
    """Departs at random: between steps with some probability, inside them at preselected lines."""

    def __init__(self, random: Random, *, preemptions: int, lines: int) -> None:
        super().__init__(preemptions=preemptions)
        self._random = random
        self._odds = random.choice((0.05, 0.2, 0.5))
        count = random.randint(0, preemptions) if lines else 0
        self._lines = {random.randint(1, lines) for _ in range(count)}

    def _option(self, kind: str, number: int, options: int) -> int:
        if kind == INSIDE_STEP:
            departs = number in self._lines
        else:
            departs = self._random.random() < self._odds
        return self._random.randrange(1, options) if departs else 0
