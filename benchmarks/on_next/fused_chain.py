"""What does a fused chain cost, delivery to ``on_next`` included?"""

from reactive_aio import range as flow_range

from ..functions import even, increment
from ..runner.peers import peer
from ..runner.question import Question
from ..subscribers import Batches, SlottedSumming, Summing

question = Question("`map`, `filter`", 1_000_000)


@question.by_hand("a for loop that calls `on_next`")
async def by_hand(count: int) -> int:
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
    return await SlottedSumming().sum_of(flow_range(count).map(increment).filter(even))


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
