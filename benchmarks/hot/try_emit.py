"""What does ``try_emit(x)`` cost, delivery to ``on_next`` included?"""

from reactive_aio import UnicastProcessor

from ..runner.peers import peer
from ..runner.question import Question
from ..subscribers import Summing

question = Question("`try_emit(x)`", 200_000)


@question.handwritten("a method call, `on_next(x)`")
async def handwritten(count: int) -> int:
    subscriber = Summing()
    for element in range(count):
        subscriber.on_next(element)
    return subscriber.total


@question.ours("`processor.try_emit(x)` → `on_next`", goal=8)
async def emitted(count: int) -> int:
    processor, subscriber = UnicastProcessor[int](), Summing()
    processor.subscribe(subscriber)
    for element in range(count):
        processor.try_emit(element)
    processor.complete()
    await subscriber.done
    return subscriber.total


@question.peer("reactivex `Subject`", "reactivex")
async def reactivex(count: int) -> int:
    subject, subscriber = peer("reactivex.subject").Subject(), Summing()
    subject.subscribe(subscriber.on_next)
    for element in range(count):
        subject.on_next(element)
    return subscriber.total
