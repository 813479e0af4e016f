"""What does an ``async def on_next`` cost?"""

from reactive_aio import range as flow_range

from ..functions import even, increment
from ..runner.question import Question
from ..subscribers import Coroutine

question = Question("An `async def on_next`", 1_000_000)


@question.handwritten("a for loop that awaits `on_next`")
async def handwritten(count: int) -> int:
    subscriber = Coroutine()
    on_next, f, p = subscriber.on_next, increment, even
    for element in range(count):
        element = f(element)
        if p(element):
            await on_next(element)
    return subscriber.total


@question.ours("`map`, `filter` → `async def on_next`", goal=1.4)
async def awaited(count: int) -> int:
    return await Coroutine().sum_of(flow_range(count).map(increment).filter(even))
