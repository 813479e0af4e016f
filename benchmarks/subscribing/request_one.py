"""What does ``request(1)`` cost, one after another from outside of ``on_next``?"""

from collections.abc import Iterator
from contextvars import copy_context
from threading import get_ident

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


class _Resumed:
    """A subscription: its generator runs in its context, on its thread, and within its demand."""

    def __init__(self, count: int, subscriber: Passive) -> None:
        self.context, self.thread = copy_context(), get_ident()
        self.demand, self.is_running = 0, False
        self.drain = self.deliver(count, subscriber)

    def deliver(self, count: int, subscriber: Passive) -> Iterator[None]:
        on_next = subscriber.on_next
        for delivered in range(count):
            while delivered >= self.demand:
                yield
            on_next(delivered)

    def request(self, n: int) -> None:
        if n < 1 or get_ident() != self.thread:
            raise ValueError(n)
        self.demand += n
        if not self.is_running:
            self.is_running = True
            self.context.run(next, self.drain, None)
            self.is_running = False


@question.other("a generator that each request resumes, in its context")
async def resumed(count: int) -> int:
    subscriber = Passive()
    subscription = _Resumed(count, subscriber)
    for _ in range(count):
        subscription.request(1)
    return subscriber.total
