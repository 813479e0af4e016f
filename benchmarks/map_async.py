"""What does a sequential ``map_async`` cost?"""

from reactive_aio import range as flow_range

from .runner import Question
from .subscribers import Summing

question = Question("Sequential map_async to on_next", 500_000)


async def double(element: int) -> int:
    return element * 2


@question.case("limit: on_next(await f(x))")
async def limit(count: int) -> int:
    subscriber = Summing()
    on_next, f = subscriber.on_next, double
    for element in range(count):
        on_next(await f(element))
    return subscriber.total


@question.case("map_async to on_next", goal=1.4)
async def sequential(count: int) -> int:
    return await Summing().sum_of(flow_range(count).map_async(double))
