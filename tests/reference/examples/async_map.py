"""Examples of operators that await a coroutine function per element."""

import asyncio

import reactive_aio as rx


async def map_async() -> None:
    async def fetch(page: int) -> str:
        await asyncio.sleep(0.1)
        return f"page {page}"

    pages = rx.range(1, 4).map_async(fetch, concurrency=3)  # takes 0.1 s in all
    print(await pages.to_list())


async def filter_async() -> None:
    async def is_free(name: str) -> bool:
        await asyncio.sleep(0.1)
        return name != "ada"

    print(await rx.just("ada", "alan").filter_async(is_free).to_list())
