"""Examples of sources that a clock drives."""

import reactive_aio as rx


async def interval() -> None:
    print(await rx.interval(0.1).take(3).to_list())


async def timer() -> None:
    print(await rx.timer(0.1, "time is up").to_list())
