"""Does the cost of an element, or the memory, grow with the number of elements? Up to 1e8."""

import resource
import sys
from collections.abc import Awaitable, Callable

from reactive_aio import Flow, range as flow_range

from ..functions import increment, total
from ..runner.question import Question
from ..subscribers import Summing
from .sizes import growth, nanoseconds

Consume = Callable[[Flow[int]], Awaitable[int]]

LENGTHS = (100_000, 1_000_000, 10_000_000, 100_000_000)
MIB = 1024 * 1024
# Linux reports kilobytes, macOS bytes.
UNIT_OF_PEAK = 1 if sys.platform == "darwin" else 1024


async def to_on_next(flow: Flow[int]) -> int:
    return await Summing().sum_of(flow)


async def by_async_for(flow: Flow[int]) -> int:
    return await total(aiter(flow))


async def through_boundary(flow: Flow[int]) -> int:
    return await Summing().sum_of(flow.boundary(256))


WAYS: dict[str, Consume] = {
    "`map` → `on_next`": to_on_next,
    "`async for` over `map`": by_async_for,
    "`boundary(256)` → `on_next`": through_boundary,
}


def _cost(name: str, consume: Consume) -> Question:
    async def measure(length: int, _: int) -> float:
        return await nanoseconds(consume(flow_range(length).map(increment)), length)

    return growth(f"Elements, {name}", "{n} elements, " + name, LENGTHS, measure, rounds=1)


def _memory() -> Question:
    question = Question(
        "Growth of the peak memory",
        LENGTHS[-1],
        unit="MiB",
        is_goal_a_figure=True,
        rounds=1,
        is_warmed_up=False,
        is_scaled=False,
    )

    def add(name: str, consume: Consume) -> None:
        @question.ours(f"peak memory of {LENGTHS[-1]:,} elements, {name}", goal=4)
        async def run(count: int) -> float:
            await consume(flow_range(min(LENGTHS[0], count)).map(increment))
            before = _peak()
            await consume(flow_range(count).map(increment))
            return (_peak() - before) / MIB

    for each in WAYS.items():
        add(*each)
    return question


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT_OF_PEAK


on_next, iterated, boundary = (_cost(*way) for way in WAYS.items())
memory = _memory()
