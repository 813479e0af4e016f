"""What does a sequential ``map_async`` cost?"""

from reactive_aio import range as flow_range

from ..functions import double
from ..reactivex_calls import sum_of_calls
from ..runner.question import Question
from ..subscribers import Summing

question = Question("Sequential `map_async`", 500_000)


@question.handwritten("`on_next(await f(x))` in a for loop")
async def handwritten(count: int) -> int:
    subscriber = Summing()
    on_next, f = subscriber.on_next, double
    for element in range(count):
        on_next(await f(element))
    return subscriber.total


@question.ours("`map_async(f)` → `on_next`", goal=1.15)
async def sequential(count: int) -> int:
    return await Summing().sum_of(flow_range(count).map_async(double))


@question.peer("reactivex `concat_map(from_future)`", "reactivex", share=0.02)
async def reactivex(count: int) -> int:
    return await sum_of_calls(count, double, concurrency=1)
