"""Examples of sources that emit without regard to demand."""

import asyncio

import reactive_aio as rx


async def create() -> None:
    def listen(to: rx.Emitter[str]) -> None:
        timer = asyncio.get_running_loop().call_later(0.1, to.try_emit, "clicked")
        to.on_cancel(timer.cancel)

    print(await rx.create(listen).first())
