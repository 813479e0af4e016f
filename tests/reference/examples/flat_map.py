"""Examples of operators that make a source of each element."""

import reactive_aio as rx


async def flat_map() -> None:
    def ticks(name: str) -> rx.Flow[str]:
        return rx.interval(0.1).take(2).map(lambda n: f"{name}{n}")

    print(await rx.just("a", "b").flat_map(ticks).to_list())


async def concat_map() -> None:
    def ticks(name: str) -> rx.Flow[str]:
        return rx.interval(0.1).take(2).map(lambda n: f"{name}{n}")

    print(await rx.just("a", "b").concat_map(ticks).to_list())
