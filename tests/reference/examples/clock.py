"""Examples of operators that read the clock."""

import asyncio

import reactive_aio as rx


async def timestamp() -> None:
    start = asyncio.get_running_loop().time()
    async for at, n in rx.interval(0.1).take(2).timestamp():
        print(n, f"after {at - start:.1f} s")


async def elapsed() -> None:
    gaps = rx.concat(rx.timer(0.1, "a"), rx.timer(0.2, "b")).elapsed()
    async for seconds, name in gaps:
        print(name, f"{seconds:.1f} s")
