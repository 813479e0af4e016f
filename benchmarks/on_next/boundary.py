"""What does an asynchronous boundary cost per element?"""

import asyncio

from reactive_aio import range as flow_range

from ..runner.peers import peer
from ..runner.question import Question
from ..subscribers import Summing
from ..swap import Swap

SIZE = 256

question = Question("An asynchronous boundary of 256", 1_000_000, counted=1024)


@question.handwritten("two tasks that hand over lists of 256")
async def handwritten(count: int) -> int:
    subscriber, swap = Summing(), Swap()
    task = asyncio.create_task(swap.fill(range(count), SIZE))
    on_next = subscriber.on_next
    while chunk := await swap.take():
        for element in chunk:
            on_next(element)
    await task
    return subscriber.total


@question.ours("`boundary(256)` → `on_next`", goal=1.25)
async def fused(count: int) -> int:
    return await Summing().sum_of(flow_range(count).boundary(SIZE))


@question.peer("`asyncio.Queue(256)`", share=0.2)
async def queue(count: int) -> int:
    subscriber = Summing()
    elements: asyncio.Queue[int] = asyncio.Queue(SIZE)

    async def fill() -> None:
        for element in range(count):
            await elements.put(element)

    task = asyncio.create_task(fill())
    for _ in range(count):
        subscriber.on_next(await elements.get())
    await task
    return subscriber.total


@question.peer("anyio memory stream of 256", "anyio", share=0.05)
async def anyio(count: int) -> int:
    library, subscriber = peer("anyio"), Summing()
    send, receive = library.create_memory_object_stream(SIZE)

    async def fill() -> None:
        async with send:
            for element in range(count):
                await send.send(element)

    async with library.create_task_group() as group:
        group.start_soon(fill)
        async with receive:
            async for element in receive:
                subscriber.on_next(element)
    return subscriber.total
