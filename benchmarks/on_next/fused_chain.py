"""What does a fused chain cost, delivery to ``on_next`` included?"""

import asyncio

from reactive_aio import Subscription, range as flow_range

from ..functions import even, increment
from ..runner.peers import peer
from ..runner.question import Question
from ..subscribers import UNBOUNDED, Batches, Summing


class Slotted:
    """Adds up the elements as `Summing` does, in a class with slots."""

    __slots__ = ("done", "subscription", "total")

    def __init__(self) -> None:
        self.total = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        subscription.request(UNBOUNDED)

    def on_next(self, element: int) -> None:
        self.total += element

    def on_error(self, error: BaseException) -> None:
        self.done.set_exception(error)

    def on_complete(self) -> None:
        self.done.set_result(None)


question = Question("`map`, `filter`", 1_000_000)


@question.handwritten("a for loop that calls `on_next`")
async def handwritten(count: int) -> int:
    subscriber = Summing()
    on_next, f, p = subscriber.on_next, increment, even
    for element in range(count):
        element = f(element)
        if p(element):
            on_next(element)
    return subscriber.total


@question.ours("`map`, `filter` → `on_next` of a plain class", goal=1.15)
async def plain(count: int) -> int:
    return await Summing().sum_of(flow_range(count).map(increment).filter(even))


@question.ours("`map`, `filter` → `on_next` of a class with slots")
async def slotted(count: int) -> int:
    subscriber = Slotted()
    flow_range(count).map(increment).filter(even).subscribe(subscriber)
    await subscriber.done
    return subscriber.total


@question.ours("`map`, `filter` → `on_next`, `request(256)` in batches")
async def batches(count: int) -> int:
    return await Batches().sum_of(flow_range(count).map(increment).filter(even))


@question.peer("reactivex", "reactivex")
async def reactivex(count: int) -> int:
    rx, operators = peer("reactivex"), peer("reactivex.operators")
    subscriber = Summing()
    source = rx.from_iterable(range(count))
    source.pipe(operators.map(increment), operators.filter(even)).subscribe(subscriber.on_next)
    return subscriber.total
