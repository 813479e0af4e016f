"""What does ``async for`` over an asynchronous boundary cost, large and small?"""

import asyncio

from reactive_aio import range as flow_range

from ..functions import total
from ..runner.peers import peer
from ..runner.question import Question
from ..swap import Swap


def boundary_of(size: int, elements: int, goal: float) -> Question:
    """Return the question for boundaries of *size*."""
    question = Question(f"An asynchronous boundary of {size}", elements, counted=1024)

    @question.handwritten(f"two tasks that hand over lists of {size}")
    async def handwritten(count: int) -> int:
        swap = Swap()
        task = asyncio.create_task(swap.fill(range(count), size))
        found = await total(swap.elements())
        await task
        return found

    @question.ours(f"`async for` over `boundary({size})`", goal=goal)
    async def over(count: int) -> int:
        return await total(aiter(flow_range(count).boundary(size)))

    @question.peer(f"`asyncio.Queue({size})`", share=0.2)
    async def queue(count: int) -> int:
        elements: asyncio.Queue[int] = asyncio.Queue(size)

        async def fill() -> None:
            for element in range(count):
                await elements.put(element)

        task = asyncio.create_task(fill())
        found = 0
        for _ in range(count):
            found += await elements.get()
        await task
        return found

    @question.peer(f"anyio memory stream of {size}", "anyio", share=0.05)
    async def anyio(count: int) -> int:
        library, found = peer("anyio"), 0
        send, receive = library.create_memory_object_stream(size)

        async def fill() -> None:
            async with send:
                for element in range(count):
                    await send.send(element)

        async with library.create_task_group() as group:
            group.start_soon(fill)
            async with receive:
                found = await total(receive)
        return found

    return question


large = boundary_of(256, 500_000, 2)
small = boundary_of(16, 200_000, 3)
