"""What does ``async for`` over ``merge`` of 8 asynchronous sources cost?"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from reactive_aio import Flow, from_aiter, merge

from ..functions import PARTS, pausing, total
from ..runner.peers import peer
from ..runner.question import Question


def _sources(count: int) -> list[Flow[int]]:
    return [from_aiter(pausing(count // PARTS)) for _ in range(PARTS)]


question = Question("`merge` of 8 asynchronous sources", 400_000)


@question.handwritten("8 tasks that fill a list, which is swapped for an empty one")
async def handwritten(count: int) -> int:
    async def merged() -> AsyncIterator[int]:
        loop = asyncio.get_running_loop()
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
        while filled or running:
            if not filled:
                news = loop.create_future()
                await news
            chunk = filled[:]
            filled.clear()
            for element in chunk:
                yield element
        await asyncio.gather(*tasks)

    return await total(merged())


@question.ours("`async for` over `merge` of 8 asynchronous sources", goal=1.8)
async def over(count: int) -> int:
    merged: Flow[int] = merge(*_sources(count))
    return await total(aiter(merged))


@question.peer("8 tasks and `asyncio.Queue(256)`", share=0.2)
async def queue(count: int) -> int:
    elements: asyncio.Queue[int | None] = asyncio.Queue(256)

    async def fill() -> None:
        async for element in pausing(count // PARTS):
            await elements.put(element)
        await elements.put(None)

    tasks = [asyncio.create_task(fill()) for _ in range(PARTS)]
    running, found = PARTS, 0
    while running:
        element = await elements.get()
        if element is None:
            running -= 1
        else:
            found += element
    await asyncio.gather(*tasks)
    return found


@question.peer("anyio, 8 tasks and a memory stream of 256", "anyio", share=0.1)
async def anyio(count: int) -> int:
    library, found = peer("anyio"), 0
    send, receive = library.create_memory_object_stream(256)

    async def fill(elements: Any) -> None:
        async with elements:
            async for element in pausing(count // PARTS):
                await elements.send(element)

    async with library.create_task_group() as group:
        for _ in range(PARTS):
            group.start_soon(fill, send.clone())
        send.close()
        async with receive:
            found = await total(receive)
    return found


@question.peer("aiostream", "aiostream", share=0.05)
async def aiostream(count: int) -> int:
    merged = peer("aiostream.stream").merge(*(pausing(count // PARTS) for _ in range(PARTS)))
    async with merged.stream() as elements:
        return await total(elements)
