"""Diagrams of docstrings, run on virtual time."""

import asyncio
import inspect
import operator
from collections.abc import AsyncIterator, Awaitable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from anyio import create_memory_object_stream
from anyio.streams.memory import MemoryObjectReceiveStream

import reactive_aio
from reactive_aio import Flow, Subscriber, Subscription, to_flow
from reactive_aio.testing.marbles import ALL, Demand, Diagram, Lane, Marbles, play
from tests.cases import PUBLIC

__all__ = ("NAMES", "SOURCE_NAMES", "InputLane", "Run", "run")

MORE_TICKS: Final = 8
SOURCE_NAMES: Final = ("source", "other", "third")
"""The input lanes of a diagram, as its code calls them."""


# -- what the code of a diagram may use ------------------------------------------------------------
async def upper(text: str) -> str:
    return text.upper()


async def is_vowel(text: str) -> bool:
    return text in "aeiou"


async def first_of(text: str) -> str:
    return text[0]


def ignore(*_: object) -> None:
    """A callback."""


def filled_with(*elements: object) -> asyncio.Queue[object]:
    queue: asyncio.Queue[object] = asyncio.Queue()
    for element in elements:
        queue.put_nowait(element)
    return queue


async def letters() -> AsyncIterator[str]:
    for letter in "abc":
        yield letter


def receiving(*elements: object) -> MemoryObjectReceiveStream[object]:
    send, receive = create_memory_object_stream[object](len(elements))
    for element in elements:
        send.send_nowait(element)
    send.close()
    return receive


class Sending:
    """A stream of anyio that accepts every element."""

    async def send(self, _: object, /) -> None: ...

    async def aclose(self) -> None: ...


def foreign(*elements: str) -> Marbles[str]:
    return Marbles(f"({''.join(elements)}|)")


@contextmanager
def open_something() -> Generator[object, None, None]:
    yield object()


NAMES: Final[dict[str, Any]] = {
    **{name: getattr(reactive_aio, name) for name in PUBLIC},
    "Queue": asyncio.Queue,
    "end": object(),
    "filled_with": filled_with,
    "first_of": first_of,
    "foreign": foreign,
    "is_vowel": is_vowel,
    "letters": letters,
    "open_something": open_something,
    "operator": operator,
    "print": ignore,
    "receiving": receiving,
    "stream": Sending(),
    "three_lines": Path(__file__).parents[2] / "tests" / "sources" / "three_lines.txt",
    "upper": upper,
}


# -- running ---------------------------------------------------------------------------------------
@dataclass(eq=False)
class InputLane:
    """A source that plays a lane of a diagram, and records when it is cancelled."""

    lane: Lane
    cancelled_at: int | None = field(default=None, init=False)
    """The tick of the first cancellation before its end. (A run without an end is cancelled.)"""

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        Marbles[Any](self.lane).subscribe(_Watched(self, subscriber))


@dataclass(eq=False)
class _Watched:
    """Between the source and its subscriber."""

    _input: InputLane
    _subscriber: Subscriber[Any]
    _is_done: bool = False

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscription = subscription
        self._began = asyncio.get_running_loop().time()
        self._subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        self._subscription.request(n)

    def cancel(self) -> None:
        if not self._is_done:
            self._is_done = True
            tick = int(asyncio.get_running_loop().time() - self._began + 0.01)
            if self._input.cancelled_at is None:
                self._input.cancelled_at = tick
        self._subscription.cancel()

    def on_next(self, element: Any, /) -> Any:
        return self._subscriber.on_next(element)

    def on_error(self, error: BaseException, /) -> Any:
        self._is_done = True
        return self._subscriber.on_error(error)

    def on_complete(self) -> Any:
        self._is_done = True
        return self._subscriber.on_complete()


@dataclass(frozen=True)
class Run:
    """The lanes of a diagram as they were played."""

    inputs: tuple[InputLane, ...]
    code: str
    output: Lane
    demand: Demand | None
    """The demand lane, unless demand was unbounded from the start."""


async def run(diagram: Diagram) -> Run:
    """Play *diagram* with the demand that it shows.

    Sources without a clock would emit all elements in one tick: if a diagram without input lanes
    spreads them, one element is requested in each tick that has a signal.
    """
    demand = diagram.demand
    played = await _play(diagram, demand or ALL)
    drawn = diagram.result.elements
    if not diagram.given and demand is None and played.output.elements[: len(drawn)] != drawn:
        ticks = dict.fromkeys(tick for tick, _ in diagram.result.signals)
        demand = Demand(tuple((tick, 1) for tick in ticks), diagram.result.length)
        played = await _play(diagram, demand)
    return played


async def _play(diagram: Diagram, demand: Demand) -> Run:
    inputs = tuple(InputLane(lane) for lane in diagram.given)
    flows: list[Flow[Any]] = [to_flow(each) for each in inputs]
    sources = dict(zip(SOURCE_NAMES, flows, strict=False))
    code = f"source{diagram.code}" if diagram.code.startswith(".") else diagram.code
    ends = 0 if diagram.result.end == "" else MORE_TICKS
    ticks = max(lane.length for lane in (*diagram.given, diagram.result)) + ends
    played = await play(lambda: _as_publisher(eval(code, NAMES | sources)), ticks, demand=demand)
    output = _within(played.signals, ticks)
    shown = None if demand is ALL else _up_to_end(demand, output)
    return Run(inputs, diagram.code, output, shown)


def _within(lane: Lane, ticks: int) -> Lane:
    """*lane* without a signal of the moment at which its recording ended."""
    return Lane(tuple(each for each in lane.signals if each[0] < ticks), ticks)


def _as_publisher(made: Any) -> Any:
    """A flow, or the result of a sink as one."""
    return reactive_aio.from_aiter(_result(made)) if inspect.iscoroutine(made) else made


async def _result(sink: Awaitable[Any]) -> AsyncIterator[Any]:
    value = await sink
    if value is not None:
        yield value


def _up_to_end(demand: Demand, output: Lane) -> Demand:
    """Without the requests after the end of the flow."""
    end = output.signals[-1][0] if output.end else demand.length
    return Demand(tuple(each for each in demand.requests if each[0] <= end), demand.length)
