"""What does it cost to subscribe, to receive one element, and to end?"""

import asyncio
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

from reactive_aio import just

from ..functions import increment, total
from ..runner.peers import peer
from ..runner.question import Question
from ..subscribers import UNBOUNDED

question = Question("Subscribe, run and end one element", 50_000, counted=64)


class Subscriber:
    """The least of a subscriber: it waits for nothing."""

    def __init__(self) -> None:
        self.total: int = 0
        self.is_completed = False

    def on_subscribe(self, subscription: Any) -> None:
        self.subscription = subscription
        subscription.request(UNBOUNDED)

    def on_next(self, element: int) -> None:
        self.total += element

    def on_error(self, error: BaseException) -> None:
        raise error

    def on_complete(self) -> None:
        self.is_completed = True


class Awaited(Subscriber):
    """The same with an ``async def``, and with the future that its caller waits for."""

    def __init__(self, done: Any) -> None:
        super().__init__()
        self.done = done

    async def on_next(  # type: ignore[override]  # each method is def or async def
        self, element: int
    ) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.total += element

    def on_complete(self) -> None:
        self.done.set_result(None)


class Subscription:
    """A hand-written subscription to one element."""

    def __init__(self, element: int, subscriber: Subscriber) -> None:
        self.demand = 0
        subscriber.on_subscribe(self)
        if self.demand:
            subscriber.on_next(increment(element))
        subscriber.on_complete()

    def request(self, n: int) -> None:
        self.demand += n


@question.handwritten("an object that calls the three signals")
async def handwritten(count: int) -> int:
    found = 0
    for _ in range(count):
        subscriber = Subscriber()
        Subscription(1, subscriber)
        found += subscriber.total
    return found


@question.ours("subscribe, run, end one element; the flow is reused", goal=4)
async def reused(count: int) -> int:
    flow, found = just(1).map(increment), 0
    for _ in range(count):
        subscriber = Subscriber()
        flow.subscribe(subscriber)
        found += subscriber.total
    return found


@question.ours("subscribe, run, end one element; the flow is built each time", goal=9)
async def built(count: int) -> int:
    found = 0
    for _ in range(count):
        subscriber = Subscriber()
        just(1).map(increment).subscribe(subscriber)
        found += subscriber.total
    return found


@question.ours("subscribe, run, end one element; `async def on_next`", goal=12)
async def awaited(count: int) -> int:
    loop, flow, found = asyncio.get_running_loop(), just(1).map(increment), 0
    for _ in range(count):
        subscriber = Awaited(loop.create_future())
        flow.subscribe(subscriber)
        await subscriber.done
        found += subscriber.total
    return found


@question.ours("`async for` over one element, the flow is built each time")
async def iterated(count: int) -> int:
    found = 0
    for _ in range(count):
        found += await total(aiter(just(1).map(increment)))
    return found


@question.other("an object with a context of its own, and a generator")
async def in_a_context(count: int) -> int:
    found = 0
    for _ in range(count):
        subscriber = Subscriber()
        copy_context().run(next, _signals(subscriber), None)
        found += subscriber.total
    return found


def _signals(subscriber: Subscriber) -> Iterator[Subscription]:
    for element in (1,):
        yield Subscription(element, subscriber)


@question.other("a task, and a future that is awaited")
async def in_a_task(count: int) -> int:
    loop, found = asyncio.get_running_loop(), 0

    async def receive(subscriber: Awaited) -> None:
        await subscriber.on_next(increment(1))
        subscriber.on_complete()

    for _ in range(count):
        subscriber = Awaited(loop.create_future())
        task = asyncio.create_task(receive(subscriber))
        await subscriber.done
        await task
        found += subscriber.total
    return found


@question.peer("asyncstdlib", "asyncstdlib", share=0.5)
async def asyncstdlib(count: int) -> int:
    library, found = peer("asyncstdlib"), 0
    for _ in range(count):
        found += await total(library.map(increment, [1]))
    return found


@question.peer("aioitertools", "aioitertools", share=0.5)
async def aioitertools(count: int) -> int:
    library, found = peer("aioitertools"), 0
    for _ in range(count):
        found += await total(library.map(increment, [1]))
    return found


@question.peer("reactivex", "reactivex", share=0.2)
async def reactivex(count: int) -> int:
    rx, operators, found = peer("reactivex"), peer("reactivex.operators"), 0
    for _ in range(count):
        subscriber = Subscriber()
        rx.of(1).pipe(operators.map(increment)).subscribe(subscriber.on_next)
        found += subscriber.total
    return found


@question.peer("aiostream", "aiostream", share=0.05)
async def aiostream(count: int) -> int:
    stream, pipe, found = peer("aiostream.stream"), peer("aiostream.pipe"), 0
    for _ in range(count):
        async with (stream.just(1) | pipe.map(increment)).stream() as elements:
            found += await total(elements)
    return found
