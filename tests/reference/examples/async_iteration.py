"""Examples of the iteration of a flow."""

import reactive_aio as rx


async def stream() -> None:
    async with rx.interval(0.1).stream() as ticks:
        async for n in ticks:
            print(n)
            if n == 1:
                break
    print("the source is closed")
