"""What does lock-step cost: ``async for`` over a queue that holds one element?"""

import asyncio
from collections.abc import AsyncIterator

from reactive_aio import from_queue

from ..functions import total
from ..runner.peers import peer
from ..runner.question import Question

question = Question("Lock-step: a queue of one", 50_000)


@question.handwritten("two tasks that pass one element by a future")
async def handwritten(count: int) -> int:
    loop = asyncio.get_running_loop()
    taken: asyncio.Future[None] = loop.create_future()
    given: asyncio.Future[int | None] = loop.create_future()

    async def produce() -> None:
        nonlocal taken
        for element in range(count):
            given.set_result(element)
            await taken
            taken = loop.create_future()
        given.set_result(None)

    async def elements() -> AsyncIterator[int]:
        nonlocal given
        while (element := await given) is not None:
            given = loop.create_future()
            taken.set_result(None)
            yield element

    task = asyncio.create_task(produce())
    found = await total(elements())
    await task
    return found


@question.ours("`async for` over `from_queue(asyncio.Queue(1))`", goal=2.5)
async def over(count: int) -> int:
    queue: asyncio.Queue[int] = asyncio.Queue(1)
    task = asyncio.create_task(_fill(queue, count))
    found = await total(aiter(from_queue(queue, end=-1)))
    await task
    return found


@question.other("the same queue, without a flow")
async def plain(count: int) -> int:
    queue: asyncio.Queue[int] = asyncio.Queue(1)
    task = asyncio.create_task(_fill(queue, count))
    found = 0
    while (element := await queue.get()) != -1:
        found += element
    await task
    return found


@question.peer("anyio memory stream of 0", "anyio", share=0.5)
async def anyio(count: int) -> int:
    library, found = peer("anyio"), 0
    send, receive = library.create_memory_object_stream(0)

    async def fill() -> None:
        async with send:
            for element in range(count):
                await send.send(element)

    async with library.create_task_group() as group:
        group.start_soon(fill)
        async with receive:
            found = await total(receive)
    return found


async def _fill(queue: "asyncio.Queue[int]", count: int) -> None:
    for element in range(count):
        await queue.put(element)
    await queue.put(-1)
