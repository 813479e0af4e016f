"""Examples of sources made of what is asynchronous."""

import asyncio
from collections.abc import AsyncIterator

import anyio

import reactive_aio as rx


async def from_aiter() -> None:
    async def lines() -> AsyncIterator[str]:
        for line in ("tea", "milk"):
            await asyncio.sleep(0.1)
            yield line

    print(await rx.from_aiter(lines).map(str.upper).to_list())


async def from_awaitable() -> None:
    async def answer() -> int:
        await asyncio.sleep(0.1)
        return 42

    print(await rx.from_awaitable(answer).to_list())


async def from_queue() -> None:
    queue: asyncio.Queue[str] = asyncio.Queue(10)
    for job in ("a", "b", "end"):
        await queue.put(job)
    print(await rx.from_queue(queue, end="end").to_list())


async def from_anyio() -> None:
    send, receive = anyio.create_memory_object_stream[str](10)
    async with send:
        await send.send("a")
        await send.send("b")
    print(await rx.from_anyio(receive).to_list())


async def from_publisher() -> None:
    processor = rx.UnicastProcessor[str]()  # or that of another library
    processor.try_emit("a")
    processor.complete()
    print(await rx.from_publisher(processor).to_list())
