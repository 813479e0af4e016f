"""What does ``request(1)`` cost, one after another from outside of ``on_next``?"""

from collections.abc import Iterator

from reactive_aio import range as flow_range

from ..runner.question import Question
from ..subscribers import Passive

question = Question("`request(1)` from outside, one after another", 200_000)


class Pulling:
    """A subscription by hand, which pulls an element for each request."""

    def __init__(self, elements: Iterator[int], subscriber: Passive) -> None:
        self._elements = elements
        self._on_next = subscriber.on_next

    def request(self, n: int) -> None:
        for _ in range(n):
            self._on_next(next(self._elements))


@question.by_hand("an object whose `request` pulls an element and calls `on_next`")
async def by_hand(count: int) -> int:
    subscriber = Passive()
    subscription = Pulling(iter(range(count)), subscriber)
    for _ in range(count):
        subscription.request(1)
    return subscriber.total


@question.ours("`request(1)` from outside, one after another", goal=5)
async def outside(count: int) -> int:
    subscriber = Passive()
    flow_range(count).subscribe(subscriber)
    subscription = subscriber.subscription
    for _ in range(count):
        subscription.request(1)
    return subscriber.total
