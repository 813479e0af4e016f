"""What does ``merge`` of 8 asynchronous sources cost?"""

import asyncio

from reactive_aio import from_aiter, merge

from ..functions import PARTS, pausing
from ..runner.peers import peer
from ..runner.question import Question
from ..subscribers import Summing

question = Question("`merge` of 8 asynchronous sources", 400_000)


@question.handwritten("8 tasks that fill a list, which is swapped for an empty one")
async def handwritten(count: int) -> int:
    subscriber, loop = Summing(), asyncio.get_running_loop()
    filled: list[int] = []
    news: asyncio.Future[None] | None = None
    running = PARTS

    def wake() -> None:
        nonlocal news
        if news is not None:
            news.set_result(None)
            news = None

    async def fill() -> None:
        nonlocal running
        async for element in pausing(count // PARTS):
            filled.append(element)
            if news is not None:
                wake()
        running -= 1
        wake()

    tasks = [asyncio.create_task(fill()) for _ in range(PARTS)]
    on_next = subscriber.on_next
    while filled or running:
        if not filled:
            news = loop.create_future()
            await news
        chunk = filled[:]
        filled.clear()
        for element in chunk:
            on_next(element)
    await asyncio.gather(*tasks)
    return subscriber.total


@question.ours("`merge` of 8 asynchronous sources → `on_next`", goal=1.35)
async def merged(count: int) -> int:
    sources = [from_aiter(pausing(count // PARTS)) for _ in range(PARTS)]
    return await Summing().sum_of(merge(*sources))


@question.peer("8 tasks and `asyncio.Queue(256)`", share=0.2)
async def queue(count: int) -> int:
    subscriber = Summing()
    elements: asyncio.Queue[int | None] = asyncio.Queue(256)

    async def fill() -> None:
        async for element in pausing(count // PARTS):
            await elements.put(element)
        await elements.put(None)

    tasks = [asyncio.create_task(fill()) for _ in range(PARTS)]
    running = PARTS
    while running:
        element = await elements.get()
        if element is None:
            running -= 1
        else:
            subscriber.on_next(element)
    await asyncio.gather(*tasks)
    return subscriber.total


@question.peer("aiostream", "aiostream", share=0.05)
async def aiostream(count: int) -> int:
    stream, subscriber = peer("aiostream.stream"), Summing()
    async with stream.merge(*(pausing(count // PARTS) for _ in range(PARTS))).stream() as elements:
        async for element in elements:
            subscriber.on_next(element)
    return subscriber.total
