"""What does ``zip`` of two synchronous flows cost?"""

import builtins

from reactive_aio import range as flow_range, zip as flow_zip

from ..runner.peers import peer
from ..runner.question import Question
from ..subscribers import Pairs

question = Question("`zip` of two", 1_000_000)


@question.handwritten("a for loop over the builtin `zip` that calls `on_next`")
async def handwritten(count: int) -> int:
    subscriber = Pairs()
    on_next = subscriber.on_next
    for pair in builtins.zip(range(count), range(count), strict=False):
        on_next(pair)
    return subscriber.total


@question.ours("`zip(a, b)` → `on_next`", goal=1.2)
async def zipped(count: int) -> int:
    return await Pairs().sum_of(flow_zip(flow_range(count), flow_range(count)))


@question.peer("reactivex, unbounded", "reactivex", share=0.1)
async def reactivex(count: int) -> int:
    rx, operators = peer("reactivex"), peer("reactivex.operators")
    subscriber = Pairs()
    source = rx.from_iterable(range(count)).pipe(operators.zip(rx.from_iterable(range(count))))
    source.subscribe(subscriber.on_next)
    return subscriber.total
