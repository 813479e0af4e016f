"""What does a sequential ``map_async`` cost?"""

import asyncio

from reactive_aio import range as flow_range

from ..functions import double
from ..runner.peers import peer
from ..runner.question import Question
from ..subscribers import Summing

question = Question("Sequential `map_async`", 500_000)


@question.by_hand("`on_next(await f(x))` in a for loop")
async def by_hand(count: int) -> int:
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
    rx, operators = peer("reactivex"), peer("reactivex.operators")
    subscriber = Summing()

    def call(element: int) -> object:
        return rx.defer(lambda _: rx.from_future(asyncio.ensure_future(double(element))))

    source = rx.from_iterable(range(count))
    source.pipe(operators.map(call), operators.merge(max_concurrent=1)).subscribe(
        subscriber.on_next, subscriber.on_error, subscriber.on_complete
    )
    await subscriber.done
    return subscriber.total
