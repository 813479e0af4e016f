"""Marble diagrams: the signals of a flow in one line of text for each lane.

::

    a--b--c--|
    .take(2)
    a--b|

:mod:`reactive_aio.testing.lanes` defines how lanes are written. A demand lane in front says how
many elements the subscriber requests, and when::

    demand   1---1-x
    signals  a---b--

`Marbles` is a publisher that plays a lane, in the time of the loop; `play` records the lanes of a
publisher, and `difference` compares them with a diagram. `diagrams` finds diagrams in a docstring:
input lanes, one line of code, the output lane. On a loop with virtual time, none takes any time.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Generic, TypeVar

from ..spec import Publisher, Subscriber, Subscription
from .journal import Journal, Kind
from .lanes import ALL, COMPLETE, FAIL, Demand, Lane, Lanes, aligned, show
from .probes import SubscriberProbe

__all__ = (
    "COMPLETE",
    "FAIL",
    "Demand",
    "Diagram",
    "Lane",
    "Lanes",
    "MarbleError",
    "Marbles",
    "diagrams",
    "difference",
    "play",
    "show",
)

T = TypeVar("T")

_LANE = re.compile(r"[-|#()\[\], \w]*[-|#][-|#()\[\], \w]*")
_SIGNS = {Kind.ON_COMPLETE: COMPLETE, Kind.ON_ERROR: FAIL}
_TICKS_AFTER_END = 5
"""Ticks that are compared after an expected end."""


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
                if self._due.popleft() == COMPLETE:
                    subscriber.on_complete()
                else:
                    subscriber.on_error(MarbleError("#"))
            elif self._requested:
                self._requested -= 1
                word = self._due.popleft()
                subscriber.on_next(int(word) if word.isdigit() else word)
            else:
                break
        self._sending = False


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
        probe.stop()
    # A timer may fire a little early.
    signals = [
        (int(entry.at / tick + 0.01), _SIGNS.get(entry.kind) or show(entry.value))
        for entry in probe.entries
    ]
    return Lanes(demand, Lane(tuple(signals), ticks))


async def difference(make: Callable[[], Publisher[Any]], expected: Lanes, tick: float = 1.0) -> str:
    """The first difference between a flow and *expected*, drawn with a caret; or nothing."""
    signals = expected.signals
    ticks = max(signals.length, expected.demand.length)
    ticks += _TICKS_AFTER_END if signals.end else 0
    played = await play(make, ticks, tick=tick, demand=expected.demand)
    return _first_difference(expected, played.signals)


def _first_difference(expected: Lanes, played: Lane) -> str:
    length = expected.signals.length
    signals = [each for each in played.signals if expected.signals.end or each[0] < length]
    length = max([length, *(tick + 1 for tick, _ in signals)])
    actual = Lane(tuple(signals), length)
    pairs = [expected.signals.cells(), actual.cells()]
    pairs[0] += ["-"] * (length - len(pairs[0]))
    tick = next(
        (tick for tick, (one, two) in enumerate(zip(*pairs, strict=True)) if one != two), -1
    )
    if tick < 0:
        return ""
    due, came = ("nothing" if cells[tick] == "-" else cells[tick] for cells in pairs)
    caret = [*[""] * tick, "^"]
    demand, *both, mark = aligned([expected.demand.cells(), *pairs, caret])
    lines = [
        f"demand    {demand}",
        f"expected  {both[0]}",
        f"actual    {both[1]}",
        f"{'':10}{mark}",
    ]
    words = f"at tick {tick}, {due} was expected and {came} came"
    return "\n".join([words, *lines[expected.demand == ALL :]])


class _LaneProbe(SubscriberProbe[Any]):
    """A probe that requests and cancels as a demand lane says."""

    def __init__(self, demand: Demand, tick: float) -> None:
        super().__init__()
        self._demand = demand
        self._tick = tick
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._timers: list[asyncio.TimerHandle] = []
        self.journal = Journal(clock=self._loop.time)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        super().on_subscribe(subscription)
        for tick, n in self._demand.requests:
            if tick == 0:
                self._demand_now(n)
                continue
            # A little before the signals of the same tick.
            at = self._began + (tick - 0.005) * self._tick
            self._timers.append(self._loop.call_at(at, self._demand_now, n))

    def _demand_now(self, n: int | None) -> None:
        if n is None:
            self.cancel()
        else:
            self.request(n)

    def stop(self) -> None:
        for timer in self._timers:
            timer.cancel()
