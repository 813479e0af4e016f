"""Examples of sinks that collect the elements in a container."""

import reactive_aio as rx


async def to_list() -> None:
    print(await rx.range(3).to_list())


async def to_dict() -> None:
    print(await rx.just("tea", "milk").to_dict(key=str.upper, value=len))
