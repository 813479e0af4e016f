"""How many bytes does an idle subscription to a boundary hold?"""

import asyncio

from reactive_aio import never

from ..swap import Swap
from .idle import Tasks, Waiting, bytes_each, idle

question = idle("A boundary of 256")

FLOW = never().boundary(256)


def _tasks(_: Waiting) -> Tasks:
    swap = Swap()

    async def produce() -> None:
        await asyncio.get_running_loop().create_future()
        await swap.put([])

    async def consume() -> None:
        async for _ in swap.elements():
            pass

    return Tasks(asyncio.create_task(produce()), asyncio.create_task(consume()))


def _subscribed(subscriber: Waiting) -> Waiting:
    FLOW.subscribe(subscriber)
    return subscriber


@question.handwritten("two tasks that hand over lists")
async def handwritten(count: int) -> float:
    return await bytes_each(_tasks, count)


@question.ours("idle subscription to `boundary(256)`", goal=2048)
async def subscribed(count: int) -> float:
    return await bytes_each(_subscribed, count)
