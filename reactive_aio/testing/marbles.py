"""Marble diagrams: the signals of a flow in one line of text for each lane.

::

    a--b--c--|
    .take(2)
    a--b|

A lane has one cell for each tick. ``-`` is a tick without a signal, a word an element, ``|``
completion and ``#`` an error; each takes one tick, however wide it is. Signals in parentheses come
in one tick: ``(ab|)``; words in them are single characters. ``(a, b)`` and ``[a, b]`` are a tuple
and a list: one element. Blanks take no time. A demand lane in front says how many elements the
subscriber requests, and when::

    demand   1---1-x
    signals  a---b--

A number is a request, ``∞`` an unbounded one, ``x`` a cancellation, and ``(2 x)`` both in one tick.

`Marbles` is a publisher that plays a lane, in the time of the loop; `play` records the lanes of a
publisher, and `difference` compares them with a diagram. `diagrams` finds diagrams in a docstring:
input lanes, one line of code, the output lane. On a loop with virtual time, none takes any time.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import cleandoc
from itertools import groupby
from operator import itemgetter
from typing import Any, Generic, TypeVar, cast

from ..spec import Publisher, Subscriber, Subscription
from .journal import UNBOUNDED, Journal, Kind
from .probes import SubscriberProbe

T = TypeVar("T")

COMPLETE = "|"
FAIL = "#"
_CANCEL = "x"
_OPEN, _CLOSE = "([", ")]"
_ALONE = ("", " ", "-", "|", "#", *_OPEN, *_CLOSE)
"""Characters next to a word that do not become part of it."""
_LANE = re.compile(r"[-|#()\[\], \w]*[-|#][-|#()\[\], \w]*")
_SIGNS = {Kind.ON_COMPLETE: COMPLETE, Kind.ON_ERROR: FAIL}
_TICKS_AFTER_END = 5
"""Ticks that are compared after an expected end."""


# -- lanes -----------------------------------------------------------------------------------------
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
        return _aligned([self.cells()])[0]


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
        return _aligned([self.cells()])[0]


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
        demand, signals = _aligned([self.demand.cells(), self.signals.cells()])
        return f"demand   {demand}\nsignals  {signals}"


def _aligned(lanes: Sequence[list[str]]) -> list[str]:
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
    if word == _CANCEL:
        return None
    if word in ("∞", "inf"):
        return UNBOUNDED
    if word.isdecimal():
        return int(word)
    raise ValueError(f"not a demand lane: {text!r}; {word!r} is not a number, ∞ or {_CANCEL}")


def _figure(n: int | None) -> str:
    return _CANCEL if n is None else "∞" if n >= UNBOUNDED else str(n)


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


# -- diagrams --------------------------------------------------------------------------------------
class MarbleError(Exception):
    """The error of a ``#``."""


@dataclass(frozen=True)
class Diagram:
    """Input lanes, a line of code, and the output lane."""

    given: tuple[Lane, ...]
    code: str
    result: Lane
    demand: Demand | None = None


def diagrams(docstring: str) -> list[Diagram]:
    """The diagrams of a docstring: literal blocks (``::``) whose last line is a lane.

    A first line ``demand 2---1`` is the demand lane; without it, demand is unbounded.
    """
    blocks = re.findall(r"^::\n\n((?: {4}.*\n?)+)", cleandoc(docstring), flags=re.MULTILINE)
    found: list[Diagram] = []
    for block in blocks:
        lines = [line.strip() for line in block.strip().splitlines()]
        if len(lines) < 2 or not _LANE.fullmatch(lines[-1]):
            continue
        demand = None
        if lines[0].startswith("demand ") and len(lines) > 2:
            demand = Demand.parse(lines.pop(0).removeprefix("demand "))
        given = tuple(Lane.parse(line) for line in lines[:-2])
        found.append(Diagram(given, lines[-2], Lane.parse(lines[-1]), demand))
    return found


class Marbles(Generic[T]):
    """A cold publisher of a lane: a tick is *tick* seconds, and starts with the subscription.

    Elements wait for demand. Numbers are emitted as ``int``, other words as ``str``.
    """

    def __init__(self, lane: Lane | str, *, tick: float = 1.0) -> None:
        self.lane: Lane = Lane.parse(lane) if isinstance(lane, str) else lane
        self.tick = tick

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        playing = _Playing(subscriber)
        subscriber.on_subscribe(playing)
        loop = asyncio.get_running_loop()
        began = loop.time()
        # One timer for each tick: those of the same time need not fire in order.
        for at, group in groupby(self.lane.signals, key=itemgetter(0)):
            words = [word for _, word in group]
            timer = loop.call_at(began + at * self.tick, playing.signal, words)
            playing.timers.append(timer)


@dataclass(eq=False)
class _Playing:
    subscriber: Subscriber[Any] | None
    due: deque[str] = field(default_factory=deque[str])
    requested: int = 0
    is_sending: bool = False
    timers: list[asyncio.TimerHandle] = field(default_factory=list[asyncio.TimerHandle])

    def request(self, n: int, /) -> None:
        self.requested += n
        self._send()

    def cancel(self) -> None:
        self.subscriber = None
        for timer in self.timers:
            timer.cancel()

    def signal(self, signals: list[str]) -> None:
        self.due += signals
        self._send()

    def _send(self) -> None:
        if self.is_sending:
            return
        self.is_sending = True
        while self.due and (subscriber := self.subscriber) is not None:
            if self.due[0] in (COMPLETE, FAIL):
                self.subscriber = None
                if self.due.popleft() == COMPLETE:
                    subscriber.on_complete()
                else:
                    subscriber.on_error(MarbleError("#"))
            elif self.requested:
                self.requested -= 1
                word = self.due.popleft()
                subscriber.on_next(int(word) if word.isdigit() else word)
            else:
                break
        self.is_sending = False


async def play(
    make: Callable[[], Publisher[Any]],
    ticks: int,
    *,
    tick: float = 1.0,
    demand: Demand | str = ALL,
) -> Lanes:
    """Subscribe to the flow that *make* returns, and record its lane next to that of *demand*.

    It ends with the terminal signal, or after *ticks* ticks. In one tick, requests come before
    signals; signals after a cancellation are recorded too.
    """
    demand = Demand.parse(demand) if isinstance(demand, str) else demand
    probe = _LaneProbe(demand, tick)
    make().subscribe(probe)
    try:
        if not await probe.wait_until(lambda: probe.is_terminated, ticks * tick):
            probe.cancel()
    finally:
        for timer in probe.timers:
            timer.cancel()
    # A timer may fire a little early.
    signals = [
        (int(entry.at / tick + 0.01), _SIGNS.get(entry.kind) or show(entry.value))
        for entry in probe.entries
    ]
    return Lanes(demand, Lane(tuple(signals), ticks))


async def difference(make: Callable[[], Publisher[Any]], expected: Lanes, tick: float = 1.0) -> str:
    """The first difference between a flow and *expected*, drawn with a caret; or nothing."""
    length, end, demand = expected.signals.length, expected.signals.end, expected.demand
    ticks = max(length, demand.length) + (_TICKS_AFTER_END if end else 0)
    played = await play(make, ticks, tick=tick, demand=demand)
    signals = tuple(each for each in played.signals.signals if end or each[0] < length)
    due, came = expected.signals.cells(), Lane(signals, length).cells()
    due += ["-"] * (len(came) - length)
    at = next((at for at, one in enumerate(due) if one != came[at]), None)
    if at is None:
        return ""
    lanes = _aligned([demand.cells(), due, came, [*[""] * at, "^"]])
    names = ("demand", "expected", "actual", "")
    lines = [f"{name:10}{lane}" for name, lane in zip(names, lanes, strict=True)]
    words = ["nothing" if cell == "-" else cell for cell in (due[at], came[at])]
    first = f"at tick {at}, {words[0]} was expected and {words[1]} came"
    return "\n".join([first, *lines[demand == ALL :]])


class _LaneProbe(SubscriberProbe[Any]):
    """A probe that requests and cancels as a demand lane says."""

    def __init__(self, demand: Demand, tick: float) -> None:
        super().__init__()
        self._demand = demand
        self._tick = tick
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self.timers: list[asyncio.TimerHandle] = []
        self.journal = Journal(clock=self._loop.time)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        super().on_subscribe(subscription)
        for tick, n in self._demand.requests:
            act = self.cancel if n is None else partial(self.request, n)
            if tick:
                # A little before the signals of the same tick.
                at = self._began + (tick - 0.005) * self._tick
                self.timers.append(self._loop.call_at(at, act))
            else:
                act()
