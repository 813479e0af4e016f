"""What does a fused chain cost, delivery to ``on_next`` included?"""

from reactive_aio import range as flow_range

from .runner import Question
from .subscribers import Batches, Coroutine, Summing

question = Question("Fused chain (map, filter) to on_next", 1_000_000)


def increment(element: int) -> int:
    return element + 1


def even(element: int) -> bool:
    return not element & 1


@question.case("limit: for loop, the same calls")
async def limit(count: int) -> int:
    subscriber = Summing()
    on_next, f, p = subscriber.on_next, increment, even
    for element in range(count):
        element = f(element)
        if p(element):
            on_next(element)
    return subscriber.total


@question.case("map, filter, unbounded demand", goal=1.25)
async def unbounded(count: int) -> int:
    return await Summing().sum_of(flow_range(count).map(increment).filter(even))


@question.case("map, filter, request(256) in batches")
async def batches(count: int) -> int:
    return await Batches().sum_of(flow_range(count).map(increment).filter(even))


@question.case("map, filter, async def on_next")
async def coroutine(count: int) -> int:
    return await Coroutine().sum_of(flow_range(count).map(increment).filter(even))
