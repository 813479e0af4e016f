"""Examples of sinks that pass elements to something else."""

import asyncio

import anyio

import reactive_aio as rx


async def to_queue() -> None:
    queue: asyncio.Queue[int] = asyncio.Queue()
    print(await rx.range(3).to_queue(queue), queue.qsize())


async def to_anyio() -> None:
    send, receive = anyio.create_memory_object_stream[int](10)
    print(await rx.range(3).to_anyio(send))
    async with receive:
        print([n async for n in receive])


async def into() -> None:
    news = rx.just("a", "b").into(rx.ReplayProcessor[str](10))
    print(await news.to_list(), await news.to_list())
