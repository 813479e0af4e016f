"""Examples of operators that split a flow into windows."""

import reactive_aio as rx


async def window() -> None:
    def numbered(part: rx.Flow[str]) -> rx.Flow[tuple[int, str]]:
        return part.enumerate(1)

    print(await rx.just("a", "b", "c").window(2).concat_map(numbered).to_list())


async def window_timeout() -> None:
    counts = rx.interval(0.04).take(6).window_timeout(100, 0.1).map_async(rx.Flow.count)
    print(await counts.to_list())
