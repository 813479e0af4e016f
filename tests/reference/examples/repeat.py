"""Examples of operators that subscribe again."""

import reactive_aio as rx


async def repeat() -> None:
    print(await rx.just("tick", "tock").repeat(2).to_list())
