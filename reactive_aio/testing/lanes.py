"""Lanes: lines of text with one cell for each tick.

``-`` is a tick without a signal, a word an element, ``|`` completion and ``#`` an error; each takes
one tick, however wide it is. Signals in parentheses come in one tick: ``(ab|)``; words in them are
single characters. ``(a, b)`` and ``[a, b]`` are a tuple and a list: one element. In a demand lane a
number is a request, ``∞`` an unbounded one, ``x`` a cancellation, and ``(2 x)`` both in one tick.
Blanks take no time.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

__all__ = ("ALL", "CANCEL", "COMPLETE", "FAIL", "UNBOUNDED", "Demand", "Lane", "Lanes", "aligned",
           "show")  # fmt: skip

COMPLETE = "|"
FAIL = "#"
CANCEL = "x"
_OPEN, _CLOSE = "([", ")]"
_ALONE = ("", " ", "-", "|", "#", *_OPEN, *_CLOSE)
"""Characters next to a word that do not become part of it."""


@dataclass(frozen=True)
class Lane:
    """Signals, as text, each with its tick."""

    signals: tuple[tuple[int, str], ...]
    length: int

    @classmethod
    def parse(cls, text: str) -> "Lane":
        """Read *text*; ValueError when it is not a lane."""
        tokens = list(_tokens(text))
        signals = [(tick, each) for tick, token in enumerate(tokens) for each in _members(token)]
        ends = [each for _, each in signals if each in (COMPLETE, FAIL)]
        if len(ends) > 1 or (ends and signals[-1][1] != ends[0]):
            raise ValueError(f"a lane ends once: {text!r}")
        return cls(tuple(signals), len(tokens))

    @property
    def elements(self) -> tuple[tuple[int, str], ...]:
        return tuple(each for each in self.signals if each[1] not in (COMPLETE, FAIL))

    @property
    def end(self) -> str:
        """``|``, ``#``, or nothing."""
        last = self.signals[-1][1] if self.signals else ""
        return last if last in (COMPLETE, FAIL) else ""

    def cells(self) -> list[str]:
        """The text of each tick: several signals are a group."""
        return _cells(self.signals, self.length, "")

    def __str__(self) -> str:
        """Drawn again, as far as possible."""
        return aligned([self.cells()])[0]


@dataclass(frozen=True)
class Demand:
    """Requests, each with its tick: ``2---∞--x`` is two requests and a cancellation."""

    requests: tuple[tuple[int, int | None], ...]
    """Each tick with the number requested; None is a cancellation."""
    length: int

    @classmethod
    def parse(cls, text: str) -> "Demand":
        """Read *text*; ValueError when it is not a demand lane."""
        tokens = list(_tokens(text))
        requests = [
            (tick, _number(word, text))
            for tick, token in enumerate(tokens)
            if token != "-"
            for word in (token[1:-1].split() if token.startswith("(") else [token])
        ]
        return cls(tuple(requests), len(tokens))

    def cells(self) -> list[str]:
        """The text of each tick."""
        return _cells([(tick, _figure(n)) for tick, n in self.requests], self.length, " ")

    def __str__(self) -> str:
        return aligned([self.cells()])[0]


UNBOUNDED = 2**63 - 1
ALL = Demand(((0, UNBOUNDED),), 1)
"""Unbounded demand from the start."""


@dataclass(frozen=True)
class Lanes:
    """A demand lane and a signal lane."""

    demand: Demand
    signals: Lane

    @classmethod
    def parse(cls, text: str) -> "Lanes":
        """Read two lanes, or a signal lane alone: then demand is unbounded.

        Each may begin with its name, ``demand`` or ``signals``.
        """
        lines = [line.strip() for line in text.strip().splitlines()]
        if len(lines) not in (1, 2):
            raise ValueError(f"a demand lane and a signal lane are needed, not {text!r}")
        demand = Demand.parse(lines[0].removeprefix("demand ")) if len(lines) == 2 else ALL
        return cls(demand, Lane.parse(lines[-1].removeprefix("signals ")))

    def __str__(self) -> str:
        """Both lanes, with their ticks aligned."""
        demand, signals = aligned([self.demand.cells(), self.signals.cells()])
        return f"demand   {demand}\nsignals  {signals}"


def aligned(lanes: Sequence[list[str]]) -> list[str]:
    """Draw lanes with their ticks aligned; the padding is blanks, which take no time."""
    lines = ["" for _ in lanes]
    for tick in range(max(map(len, lanes))):
        here = [lane[tick] if tick < len(lane) else "" for lane in lanes]
        # Two adjacent words need a separator.
        touching = zip(lines, here, strict=True)
        apart = any(line[-1:] not in _ALONE and cell[:1] not in _ALONE for line, cell in touching)
        width = max(map(len, here))
        lines = [
            line + " " * apart + cell.ljust(width) for line, cell in zip(lines, here, strict=True)
        ]
    return [line.rstrip() for line in lines]


def _cells(signals: Iterable[tuple[int, str]], length: int, between: str) -> list[str]:
    ticks: dict[int, list[str]] = {}
    for tick, text in signals:
        ticks.setdefault(tick, []).append(text)
    cells = ["-"] * max([length, *(tick + 1 for tick in ticks)])
    for tick, here in ticks.items():
        cells[tick] = here[0] if len(here) == 1 else f"({between.join(here)})"
    return cells


def _number(word: str, text: str) -> int | None:
    if word == CANCEL:
        return None
    if word in ("∞", "inf"):
        return UNBOUNDED
    if word.isdecimal():
        return int(word)
    raise ValueError(f"not a demand lane: {text!r}; {word!r} is not a number, ∞ or {CANCEL}")


def _figure(n: int | None) -> str:
    return CANCEL if n is None else "∞" if n >= UNBOUNDED else str(n)


def _tokens(text: str, word: str = r"\w+|[-|#∞]") -> Iterator[str]:
    """Groups in brackets, and what matches *word*: words, empty ticks and terminal signals."""
    rest = text.strip()
    while rest:
        if rest[0] in _OPEN:
            size = _bracketed(rest)
        elif found := re.match(word, rest):
            size = found.end()
        else:
            raise ValueError(f"not a lane: {text!r}, at {rest!r}")
        yield rest[:size]
        rest = rest[size:].lstrip()


def _bracketed(text: str) -> int:
    depth = 0
    for at, char in enumerate(text):
        depth += (char in _OPEN) - (char in _CLOSE)
        if depth == 0:
            return at + 1
    raise ValueError(f"a bracket is not closed: {text!r}")


def _members(token: str) -> list[str]:
    """The signals of one tick."""
    if token == "-":
        return []
    members = list(_tokens(token[1:-1], ".")) if token.startswith("(") else [token]
    if "," in members:  # a tuple
        members = [token]
    return [each.replace(" ", "") for each in members]


def show(element: object) -> str:
    """How *element* is drawn."""
    if isinstance(element, (list, tuple)):
        inside = ",".join(map(show, cast("Sequence[object]", element)))
        return f"[{inside}]" if isinstance(element, list) else f"({inside})"
    return str(element)
