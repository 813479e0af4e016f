"""How many bytes does an idle subscription to a merge of two asynchronous sources hold?"""

import asyncio
from collections.abc import AsyncIterator

from reactive_aio import from_aiter, merge

from .idle import Tasks, Waiting, bytes_each, idle

question = idle("A merge of two")


async def _silent() -> AsyncIterator[int]:
    await asyncio.get_running_loop().create_future()
    yield 1


def _tasks(_: Waiting) -> Tasks:
    filled: list[int] = []
    news = asyncio.get_running_loop().create_future()

    async def fill() -> None:
        async for element in _silent():
            filled.append(element)
            news.set_result(None)

    async def consume() -> None:
        await news

    return Tasks(*(asyncio.create_task(each) for each in (fill(), fill(), consume())))


def _subscribed(subscriber: Waiting) -> Waiting:
    # Flows of generator functions: they can be read by many.
    FLOW.subscribe(subscriber)
    return subscriber


FLOW = merge(from_aiter(_silent), from_aiter(_silent))


@question.handwritten("two tasks that fill a list, and one that reads it")
async def handwritten(count: int) -> float:
    return await bytes_each(_tasks, count)


@question.ours("idle subscription to `merge` of two asynchronous sources", goal=6144)
async def subscribed(count: int) -> float:
    return await bytes_each(_subscribed, count)
