"""What does ``async for`` over ``map_async`` cost with 16 calls at a time?"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from reactive_aio import range as flow_range

from ..functions import suspend_once, total
from ..runner.peers import peer
from ..runner.question import Question

CONCURRENCY = 16

question = Question("`map_async`, 16 at a time, suspending once", 100_000)


@question.handwritten("16 tasks that share an iterator and fill a list, which is swapped")
async def handwritten(count: int) -> int:
    async def mapped() -> AsyncIterator[int]:
        loop, f, elements = asyncio.get_running_loop(), suspend_once, iter(range(count))
        results: list[int] = []
        news: asyncio.Future[None] | None = None
        running = CONCURRENCY

        def wake() -> None:
            nonlocal news
            if news is not None:
                news.set_result(None)
                news = None

        async def work() -> None:
            nonlocal running
            for element in elements:
                results.append(await f(element))
                if news is not None:
                    wake()
            running -= 1
            wake()

        tasks = [asyncio.create_task(work()) for _ in range(CONCURRENCY)]
        while results or running:
            if not results:
                news = loop.create_future()
                await news
            chunk = results[:]
            results.clear()
            for result in chunk:
                yield result
        await asyncio.gather(*tasks)

    return await total(mapped())


@question.ours("`async for` over `map_async(f, concurrency=16)`", goal=1.4)
async def over(count: int) -> int:
    return await total(aiter(flow_range(count).map_async(suspend_once, concurrency=CONCURRENCY)))


@question.peer("aiostream `map(task_limit=16)`", "aiostream", share=0.1)
async def aiostream(count: int) -> int:
    stream, pipe = peer("aiostream.stream"), peer("aiostream.pipe")
    mapped = stream.range(count) | pipe.map(suspend_once, task_limit=CONCURRENCY)
    async with mapped.stream() as elements:
        return await total(elements)


@question.peer("aiostream, unordered", "aiostream", share=0.1)
async def aiostream_unordered(count: int) -> int:
    stream, pipe = peer("aiostream.stream"), peer("aiostream.pipe")
    mapped = pipe.map(suspend_once, task_limit=CONCURRENCY, ordered=False)
    async with (stream.range(count) | mapped).stream() as elements:
        return await total(elements)


@question.peer("anyio, 16 tasks and memory streams", "anyio", share=0.1)
async def anyio(count: int) -> int:
    library, found = peer("anyio"), 0
    send, receive = library.create_memory_object_stream(CONCURRENCY)
    send_result, receive_result = library.create_memory_object_stream(CONCURRENCY)

    async def work(elements: Any, results: Any) -> None:
        async with elements, results:
            async for element in elements:
                await results.send(await suspend_once(element))

    async def feed() -> None:
        async with send:
            for element in range(count):
                await send.send(element)

    async with library.create_task_group() as group:
        for _ in range(CONCURRENCY):
            group.start_soon(work, receive.clone(), send_result.clone())
        receive.close()
        send_result.close()
        group.start_soon(feed)
        async with receive_result:
            found = await total(receive_result)
    return found
