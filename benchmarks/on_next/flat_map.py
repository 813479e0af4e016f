"""What does ``flat_map`` of iterables cost?"""

from reactive_aio import range as flow_range

from ..functions import INNER, hundred
from ..runner.peers import peer
from ..runner.question import Question
from ..subscribers import Summing

question = Question("`flat_map` of iterables", 1_000_000)


@question.handwritten("nested for loops that call `on_next`")
async def handwritten(count: int) -> int:
    subscriber = Summing()
    on_next, f = subscriber.on_next, hundred
    for outer in range(count // INNER):
        for element in f(outer):
            on_next(element)
    return subscriber.total


@question.ours("`flat_map(f)` of iterables → `on_next`", goal=1.3)
async def flattened(count: int) -> int:
    return await Summing().sum_of(flow_range(count // INNER).flat_map(hundred))


@question.peer("reactivex", "reactivex", share=0.2)
async def reactivex(count: int) -> int:
    rx, operators = peer("reactivex"), peer("reactivex.operators")
    subscriber = Summing()
    source = rx.from_iterable(range(count // INNER))

    def inner(outer: int) -> object:
        return rx.from_iterable(hundred(outer))

    source.pipe(operators.flat_map(inner)).subscribe(subscriber.on_next)
    return subscriber.total
