"""What does ``try_emit(x)`` cost, delivery to ``on_next`` included?"""

from collections import deque
from contextvars import copy_context
from threading import get_ident

from reactive_aio import UnicastProcessor

from ..runner.peers import peer
from ..runner.question import Question
from ..subscribers import UNBOUNDED, Summing

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


class _Hub:
    """One subscriber: its signals run one at a time, in its context, and within its demand."""

    def __init__(self, subscriber: Summing) -> None:
        self.on_next = subscriber.on_next
        self.context, self.thread = copy_context(), get_ident()
        self.waiting: deque[int] = deque()
        self.demand, self.is_running = UNBOUNDED, False

    def emit(self, element: int) -> None:
        if get_ident() != self.thread:
            raise RuntimeError("another thread")
        self.waiting.append(element)
        if not self.is_running:
            self.context.run(self.drain)

    def drain(self) -> None:
        self.is_running = True
        while self.waiting and self.demand:
            self.demand -= 1
            self.on_next(self.waiting.popleft())
        self.is_running = False


@question.other("a queue, which is emptied in the subscriber's context")
async def in_its_context(count: int) -> int:
    subscriber = Summing()
    hub = _Hub(subscriber)
    for element in range(count):
        hub.emit(element)
    return subscriber.total


@question.peer("reactivex `Subject`", "reactivex")
async def reactivex(count: int) -> int:
    subject, subscriber = peer("reactivex.subject").Subject(), Summing()
    subject.subscribe(subscriber.on_next)
    for element in range(count):
        subject.on_next(element)
    return subscriber.total
