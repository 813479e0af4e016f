"""Examples of operators that collect elements into lists."""

import reactive_aio as rx


async def buffer() -> None:
    print(await rx.range(5).buffer(2).to_list())


async def buffer_until() -> None:
    words = rx.just("To", "be.", "Or", "not.")
    print(await words.buffer_until(lambda word: word.endswith(".")).to_list())


async def sliding_window() -> None:
    means = rx.just(1, 2, 6, 4).sliding_window(3).map(lambda window: sum(window) / 3)
    print(await means.to_list())
