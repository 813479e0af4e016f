"""Does an element cost more beside idle inner flows, or beside timers?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack

from reactive_aio import Flow, from_aiter, from_iterable, never, range as flow_range

from ..functions import numbers, total
from ..memory.idle import Waiting
from ..subscribers import Summing
from .sizes import growth, nanoseconds

IDLE = (1, 100, 10_000)


class Counting(Summing):
    """Is done after a number of elements, before the flow ends."""

    def __init__(self, elements: int) -> None:
        super().__init__()
        self.remaining = elements

    def on_next(self, element: int) -> None:
        self.remaining -= 1
        if not self.remaining:
            self.done.set_result(None)


async def beside_inner_flows(idle: int, elements: int) -> float:
    """The cost of an element of an inner flow that pushes, while *idle* others are silent."""
    ready, begun = asyncio.Event(), asyncio.Event()

    async def busy() -> AsyncIterator[int]:
        ready.set()
        await begun.wait()
        async for number in numbers(elements):
            yield number
        await asyncio.Event().wait()

    inner: list[Flow[int]] = [*(never() for _ in range(idle)), from_aiter(busy)]
    subscriber = Counting(elements)
    from_iterable(inner).flat_map(_itself, concurrency=idle + 1).subscribe(subscriber)
    await ready.wait()  # all of them have been subscribed to
    begun.set()
    try:
        return await nanoseconds(subscriber.done, elements)
    finally:
        subscriber.subscription.cancel()


def _itself(flow: Flow[int]) -> Flow[int]:
    return flow


async def beside_timers(timers: int, elements: int) -> float:
    """The cost of an element with a timeout, while *timers* other timeouts run."""
    with ExitStack() as stack:
        for _ in range(timers):
            waiting = Waiting()
            never().timeout(3600).subscribe(waiting)
            stack.callback(waiting.close)
        limited = flow_range(elements).timeout(60)
        return await nanoseconds(total(aiter(limited)), elements)


inner_flows = growth(
    "Idle inner flows of `flat_map`",
    "an element beside {n} idle inner flows",
    IDLE,
    beside_inner_flows,
)
timers = growth(
    "Timers, beside a `timeout`", "an element with a timeout beside {n} timers", IDLE, beside_timers
)
