"""Iterations of the event loop, for tests that wait until the loop has nothing more to do."""

import asyncio

__all__ = ("turns",)


async def turns(count: int = 30) -> None:
    for _ in range(count):
        await asyncio.sleep(0)
