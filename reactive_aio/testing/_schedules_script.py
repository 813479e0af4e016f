"""A script: which way a run takes wherever it could go on in several ways. Pure.

Option 0 is always what asyncio would do by itself, so a script says only where a run departs from
that. Its text is what a failure prints and `replay` reads: ``"3=1 p120=2"`` takes option 1 at the
third choice between steps, and option 2 at the 120th traced line.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from types import CodeType
from typing import Final

__all__ = ("BETWEEN", "INSIDE", "Departure", "Departures", "Open", "Place", "Script", "read")

BETWEEN: Final = ""
"""The kind of a choice between two steps."""
INSIDE: Final = "p"
"""The kind of a choice at a traced line inside a step: a preemption."""

Place = tuple[CodeType, int]
"""A line of code."""
_WORD: Final = re.compile(r"(p?)(\d+)=(\d+)")


@dataclass(frozen=True, slots=True)
class Departure:
    """At choice *number* of its *kind*, *option* instead of 0."""

    kind: str
    number: int
    option: int

    def __str__(self) -> str:
        return f"{self.kind}{self.number}={self.option}"


Departures = tuple[Departure, ...]


def text(departures: Iterable[Departure]) -> str:
    return " ".join(map(str, departures))


def read(words: str) -> Departures:
    """The departures that *words* say."""
    found = [(_WORD.fullmatch(word), word) for word in words.split()]
    wrong = [word for match, word in found if match is None]
    if wrong:
        raise ValueError(f"not an order: {wrong[0]!r}; it reads like '3=1 p120=2', or is empty")
    return tuple(
        Departure(match[1], int(match[2]), int(match[3])) for match, _ in found if match is not None
    )


@dataclass(frozen=True, slots=True)
class Open:
    """A choice at which a run went the default way, and could have gone another."""

    kind: str
    number: int
    options: int
    place: Place | None


class Script:
    """Decides along the *departures* given, and remembers what else could have been decided."""

    def __init__(self, departures: Departures = (), *, preemptions: int = 0) -> None:
        self._said = {(each.kind, each.number): each.option for each in departures}
        self.given = departures
        self.left: int = preemptions
        """How many preemptions may still be taken."""
        self.between: int = 0
        """How many choices there have been between steps."""
        self.inside: int = 0
        """How many choices there have been at traced lines."""
        self.made: list[Departure] = []
        self.open: list[Open] = []
        """The choices after the last departure."""

    @property
    def followed(self) -> bool:
        """Whether each departure given was made: always so, if the scenario is deterministic."""
        return tuple(self.made) == self.given

    @property
    def text(self) -> str:
        return text(self.made)

    def step(self, options: int) -> int:
        """Choose between *options* ways to go on after a step."""
        self.between += 1
        return self._decide(BETWEEN, self.between, options, None)

    def line(self, options: int, place: Place) -> int:
        """Choose whether to interrupt a step at *place*."""
        self.inside += 1
        option = self._decide(INSIDE, self.inside, options, place)
        self.left -= option > 0
        return option

    def _decide(self, kind: str, number: int, options: int, place: Place | None) -> int:
        option = self._choose(kind, number, options)
        if 0 < option < options:
            self.made.append(Departure(kind, number, option))
            self.open.clear()
            return option
        self.open.append(Open(kind, number, options, place))
        return 0

    def _choose(self, kind: str, number: int, options: int) -> int:
        return self._said.get((kind, number), 0)


class RandomScript(Script):
    """Departs at random: between steps with some probability, inside them at lines drawn before."""

    def __init__(self, random: Random, *, preemptions: int, lines: int) -> None:
        super().__init__(preemptions=preemptions)
        self._random = random
        self._odds = random.choice((0.05, 0.2, 0.5))
        count = random.randint(0, preemptions) if lines else 0
        self._lines = {random.randint(1, lines) for _ in range(count)}

    @property
    def followed(self) -> bool:
        return True

    def _choose(self, kind: str, number: int, options: int) -> int:
        departs = number in self._lines if kind == INSIDE else self._random.random() < self._odds
        return self._random.randrange(1, options) if departs else 0
