"""Examples of a function that is called with each element."""

import asyncio

import reactive_aio as rx


async def for_each() -> None:
    async def send(name: str) -> None:
        await asyncio.sleep(0.1)
        print("sent to", name)

    print(await rx.just("Ada", "Alan").for_each(send))
