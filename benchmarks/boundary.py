"""What does an asynchronous boundary cost per element?"""

import asyncio

from reactive_aio import range as flow_range

from .runner import Question
from .subscribers import Summing

question = Question("Async boundary of 256, to on_next", 1_000_000)


@question.case("limit: two tasks, a hand-written swap of lists of 256")
async def limit(count: int) -> int:
    subscriber = Summing()
    loop = asyncio.get_running_loop()
    full: list[int] = []
    ready: asyncio.Future[None] = loop.create_future()
    empty: asyncio.Future[None] = loop.create_future()

    async def produce() -> None:
        nonlocal full, empty
        chunk: list[int] = []
        for element in range(count):
            chunk.append(element)
            if len(chunk) == 256:
                full, chunk = chunk, []
                empty = loop.create_future()
                ready.set_result(None)
                await empty
        full = chunk
        ready.set_result(None)

    task = asyncio.create_task(produce())
    on_next = subscriber.on_next
    while True:
        await ready
        ready = loop.create_future()
        chunk = full
        for element in chunk:
            on_next(element)
        if len(chunk) < 256:
            break
        empty.set_result(None)
    await task
    return subscriber.total


@question.case("boundary(256) to on_next", goal=1.5)
async def fused(count: int) -> int:
    return await Summing().sum_of(flow_range(count).boundary(256))


@question.case("boundary(16) to on_next")
async def small(count: int) -> int:
    return await Summing().sum_of(flow_range(count).boundary(16))


@question.case("asyncio.Queue(256)")
async def queue(count: int) -> int:
    subscriber = Summing()
    elements: asyncio.Queue[int] = asyncio.Queue(256)

    async def produce() -> None:
        for element in range(count):
            await elements.put(element)

    task = asyncio.create_task(produce())
    for _ in range(count):
        subscriber.on_next(await elements.get())
    await task
    return subscriber.total
