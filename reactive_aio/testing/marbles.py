"""Marble diagrams: what a flow does over time, in one line of text for each lane.

::

    a--b--c--|
    .take(2)
    a--b|

``-`` is a tick in which nothing happens, a word an element, ``|`` completion and ``#`` an error;
each takes one tick, however wide it is. Signals in parentheses come in one tick: ``(ab|)``; words
in them are single characters. ``(a, b)`` and ``[a, b]`` are a tuple and a list: one element.

`diagrams` finds those in a docstring: lanes that go in, one line of code, the lane that comes out.
`Marbles` is a publisher that plays a lane, in the time of the loop, and `play` writes down the lane
that a publisher is; on a loop with virtual time that takes no time.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Generic, TypeVar, cast

from ..spec import Publisher, Subscriber, Subscription

__all__ = ("COMPLETE", "FAIL", "Diagram", "Drawn", "Lane", "Marbles", "diagrams", "play", "show")

T = TypeVar("T")

COMPLETE = "|"
FAIL = "#"
_LANE = re.compile(r"[-|#()\[\], \w]*[-|#][-|#()\[\], \w]*")
_OPEN, _CLOSE = "([", ")]"


class Drawn(Exception):
    """The error that a ``#`` stands for."""


@dataclass(frozen=True)
class Lane:
    """Signals, as text, each with its tick."""

    signals: tuple[tuple[int, str], ...]
    length: int

    @classmethod
    def parse(cls, text: str) -> "Lane":
        """Read *text*; ValueError when it is no lane."""
        signals: list[tuple[int, str]] = []
        tick = 0
        for token in _tokens(text):
            if token != "-":
                signals += ((tick, each) for each in _members(token))
            tick += 1
        ends = [each for _, each in signals if each in (COMPLETE, FAIL)]
        if len(ends) > 1 or (ends and signals[-1][1] != ends[0]):
            raise ValueError(f"a lane ends once: {text!r}")
        return cls(tuple(signals), tick)

    @property
    def elements(self) -> tuple[tuple[int, str], ...]:
        return tuple(each for each in self.signals if each[1] not in (COMPLETE, FAIL))

    @property
    def end(self) -> str:
        """``|``, ``#``, or nothing."""
        last = self.signals[-1][1] if self.signals else ""
        return last if last in (COMPLETE, FAIL) else ""

    def __str__(self) -> str:
        """Drawn again, as far as can be: a tick in which much happens is a group."""
        out, at = "", 0
        for tick in sorted({tick for tick, _ in self.signals}):
            here = [text for when, text in self.signals if when == tick]
            out += "-" * (tick - at) + (here[0] if len(here) == 1 else f"({''.join(here)})")
            at = tick + 1
        return out + "-" * (self.length - at)


def _tokens(text: str) -> Iterator[str]:
    """Ticks, words, terminal signals, and what is between brackets."""
    rest = text.strip()
    while rest:
        if rest[0] in _OPEN:
            size = _bracketed(rest)
        elif rest[0] in "-|#":
            size = 1
        elif found := re.match(r"\w+", rest):
            size = found.end()
        else:
            raise ValueError(f"not a lane: {text!r}, at {rest!r}")
        yield rest[:size]
        rest = rest[size:]


def _bracketed(text: str) -> int:
    depth = 0
    for at, char in enumerate(text):
        depth += (char in _OPEN) - (char in _CLOSE)
        if depth == 0:
            return at + 1
    raise ValueError(f"a bracket is not closed: {text!r}")


def _members(token: str) -> Iterator[str]:
    """The signals of one tick."""
    if not token.startswith("(") or "," in _outermost(token[1:-1]):
        yield token.replace(" ", "")
        return
    rest = token[1:-1].strip()
    while rest:
        size = _bracketed(rest) if rest[0] in _OPEN else 1
        yield rest[:size].replace(" ", "")
        rest = rest[size:].lstrip()


def _outermost(text: str) -> str:
    """*text* without what is in brackets."""
    out, depth = "", 0
    for char in text:
        depth += (char in _OPEN) - (char in _CLOSE)
        if depth == 0:
            out += char
    return out


def show(element: object) -> str:
    """How *element* is drawn."""
    if isinstance(element, (list, tuple)):
        inside = ",".join(map(show, cast("Sequence[object]", element)))
        return f"[{inside}]" if isinstance(element, list) else f"({inside})"
    return str(element)


@dataclass(frozen=True)
class Diagram:
    """Lanes that go in, the code that is between, and the lane that comes out."""

    given: tuple[Lane, ...]
    code: str
    result: Lane


def diagrams(docstring: str) -> list[Diagram]:
    """The diagrams of a docstring: literal blocks (``::``) whose last line is a lane."""
    blocks = re.findall(r"^::\n\n((?: {4}.*\n?)+)", cleandoc(docstring), flags=re.MULTILINE)
    found: list[Diagram] = []
    for block in blocks:
        lines = [line.strip() for line in block.strip().splitlines()]
        if len(lines) < 2 or not _LANE.fullmatch(lines[-1]):
            continue
        given = tuple(Lane.parse(line) for line in lines[:-2])
        found.append(Diagram(given, lines[-2], Lane.parse(lines[-1])))
    return found


class Marbles(Generic[T]):
    """A cold publisher of a lane: a tick is *tick* seconds, and starts with the subscription.

    What nobody has asked for waits. Numbers are emitted as ``int``, other words as ``str``.
    """

    def __init__(self, lane: Lane | str, *, tick: float = 1.0) -> None:
        self.lane: Lane = Lane.parse(lane) if isinstance(lane, str) else lane
        self.tick = tick

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        playing = _Playing(subscriber)
        subscriber.on_subscribe(playing)
        playing.start(self.lane, self.tick)


class _Playing:
    def __init__(self, subscriber: Subscriber[Any]) -> None:
        self._subscriber: Subscriber[Any] | None = subscriber
        self._due: deque[str] = deque()
        self._requested = 0
        self._sending = False
        self._timers: list[asyncio.TimerHandle] = []

    def start(self, lane: Lane, tick: float) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        # One timer for each tick: those of the same time need not fire in order.
        for at in sorted({at for at, _ in lane.signals}):
            here = [signal for when, signal in lane.signals if when == at]
            self._timers.append(loop.call_at(began + at * tick, self._signal, here))

    def request(self, n: int, /) -> None:
        self._requested += n
        self._send()

    def cancel(self) -> None:
        self._subscriber = None
        for timer in self._timers:
            timer.cancel()

    def _signal(self, signals: list[str]) -> None:
        self._due += signals
        self._send()

    def _send(self) -> None:
        if self._sending:
            return
        self._sending = True
        while self._due and (subscriber := self._subscriber) is not None:
            if self._due[0] in (COMPLETE, FAIL):
                self._subscriber = None
                self._end(subscriber, self._due.popleft())
            elif self._requested:
                self._requested -= 1
                word = self._due.popleft()
                subscriber.on_next(int(word) if word.isdigit() else word)
            else:
                break
        self._sending = False

    def _end(self, subscriber: Subscriber[Any], signal: str) -> None:
        if signal == COMPLETE:
            subscriber.on_complete()
        else:
            subscriber.on_error(Drawn("#"))


async def play(make: Callable[[], Publisher[Any]], ticks: int, *, tick: float = 1.0) -> Lane:
    """Subscribe to what *make* makes, with unbounded demand, and draw what happens.

    It ends with the terminal signal, or after *ticks* ticks.
    """
    recorder = _Recorder(tick)
    make().subscribe(recorder)
    try:
        async with asyncio.timeout(ticks * tick):
            await recorder.ended.wait()
    except TimeoutError:
        recorder.subscription.cancel()
    return Lane(tuple(recorder.signals), ticks)


class _Recorder:
    subscription: Subscription

    def __init__(self, tick: float) -> None:
        self._tick = tick
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self.signals: list[tuple[int, str]] = []
        self.ended = asyncio.Event()

    def _note(self, signal: str) -> None:
        # A timer may fire a little early.
        tick = int((self._loop.time() - self._began) / self._tick + 0.01)
        self.signals.append((tick, signal))

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        subscription.request(2**63 - 1)

    def on_next(self, element: object, /) -> None:
        self._note(show(element))

    def on_error(self, error: BaseException, /) -> None:
        self._note(FAIL)
        self.ended.set()

    def on_complete(self) -> None:
        self._note(COMPLETE)
        self.ended.set()
