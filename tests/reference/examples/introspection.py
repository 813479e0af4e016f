"""Examples of reports about a flow."""

import asyncio

import reactive_aio as rx


async def bound() -> None:
    batches = rx.range(100).boundary(32).buffer(10)
    print(batches.bound())


async def explain() -> None:
    async def save(n: int) -> int:
        await asyncio.sleep(0)
        return n

    print(rx.range(100).filter(bool).boundary(32).map_async(save).explain())
