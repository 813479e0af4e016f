"""Examples of operators that choose between sources, or end one by another."""

import asyncio

import reactive_aio as rx


async def race() -> None:
    slow, fast = rx.timer(0.3, "mirror 1"), rx.timer(0.1, "mirror 2")
    print(await rx.race(slow, fast).to_list())


async def switch_if_empty() -> None:
    cached = rx.just("a", "b").filter(lambda key: key == "c")
    print(await cached.switch_if_empty(rx.just("from the database")).to_list())


async def take_until() -> None:
    closing = asyncio.Event()
    asyncio.get_running_loop().call_later(0.25, closing.set)
    print(await rx.interval(0.1).take_until(closing).to_list())
