"""Does an element cost more beside idle inner flows, or beside timers?"""

from contextlib import AsyncExitStack

from reactive_aio import Flow, from_aiter, from_iterable, never, range as flow_range

from ..functions import numbers, total
from ..memory.idle import Waiting
from ..subscribers import Summing
from .sizes import growth, nanoseconds

IDLE = (1, 100, 10_000)


async def beside_inner_flows(idle: int, elements: int) -> float:
    """The cost of an element of an inner flow that pushes, while *idle* others are silent."""
    busy = from_aiter(numbers(elements))
    inner: list[Flow[int]] = [*(never() for _ in range(idle)), busy]
    flow = from_iterable(inner).flat_map(_itself, concurrency=idle + 1).take(elements)
    return await nanoseconds(Summing().sum_of(flow), elements)


def _itself(flow: Flow[int]) -> Flow[int]:
    return flow


async def beside_timers(timers: int, elements: int) -> float:
    """The cost of an element with a timeout, while *timers* other timeouts run."""
    async with AsyncExitStack() as stack:
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
