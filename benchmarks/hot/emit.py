"""What does an element cost that is emitted by ``await emit(x)``, and read by ``async for``?"""

import asyncio

from reactive_aio import UnicastProcessor

from ..functions import total
from ..runner.peers import peer
from ..runner.question import Question
from ..swap import Swap

question = Question("`await emit(x)`, read by `async for`", 200_000, counted=1024)


@question.handwritten("two tasks that hand over lists of 256")
async def handwritten(count: int) -> int:
    swap = Swap()
    task = asyncio.create_task(swap.fill(range(count), 256))
    found = await total(swap.elements())
    await task
    return found


@question.ours("`await processor.emit(x)`, read by `async for`", goal=4)
async def emitted(count: int) -> int:
    processor = UnicastProcessor[int]()

    async def produce() -> None:
        for element in range(count):
            await processor.emit(element)
        processor.complete()

    task = asyncio.create_task(produce())
    found = await total(aiter(processor))
    await task
    return found


@question.peer("`asyncio.Queue(256)`")
async def queue(count: int) -> int:
    elements: asyncio.Queue[int] = asyncio.Queue(256)

    async def produce() -> None:
        for element in range(count):
            await elements.put(element)

    task = asyncio.create_task(produce())
    found = 0
    for _ in range(count):
        found += await elements.get()
    await task
    return found


@question.peer("anyio memory stream of 256", "anyio", share=0.1)
async def anyio(count: int) -> int:
    library, found = peer("anyio"), 0
    send, receive = library.create_memory_object_stream(256)

    async def produce() -> None:
        async with send:
            for element in range(count):
                await send.send(element)

    async with library.create_task_group() as group:
        group.start_soon(produce)
        async with receive:
            found = await total(receive)
    return found


@question.peer("reactivex `Subject` into an `asyncio.Queue`, unbounded", "reactivex")
async def reactivex(count: int) -> int:
    subject = peer("reactivex.subject").Subject()
    elements: asyncio.Queue[int] = asyncio.Queue()
    subject.subscribe(elements.put_nowait)

    async def produce() -> None:
        for element in range(count):
            subject.on_next(element)

    task = asyncio.create_task(produce())
    found = 0
    for _ in range(count):
        found += await elements.get()
    await task
    return found
