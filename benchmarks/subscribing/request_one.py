"""What does ``request(1)`` cost, one after another from outside of ``on_next``?"""

from reactive_aio import range as flow_range

from ..on_next.request_one import Requesting
from ..runner.question import Question
from ..subscribers import Passive

question = Question("`request(1)` from outside, one after another", 200_000)


@question.handwritten("a for loop, `on_next` and one method call")
async def handwritten(count: int) -> int:
    subscriber = Requesting()
    on_next = subscriber.on_next
    for element in range(count):
        on_next(element)
    return subscriber.total


@question.ours("`request(1)` from outside, one after another", goal=5)
async def outside(count: int) -> int:
    subscriber = Passive()
    flow_range(count).subscribe(subscriber)
    subscription = subscriber.subscription
    for _ in range(count):
        subscription.request(1)
    return subscriber.total
