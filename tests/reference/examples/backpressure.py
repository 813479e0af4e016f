"""Examples of operators with a queue in place of demand that is passed on."""

import reactive_aio as rx
from reactive_aio.errors import Overflow


async def boundary() -> None:
    squares = rx.range(1_000_000).map(lambda n: n * n).boundary(32)
    print(await squares.take(3).to_list())
    print(squares.bound())


async def limit_rate() -> None:
    rows = rx.range(20).do_on_request(lambda n: print("requested:", n)).limit_rate(10)
    print(await rows.count(), "rows")


async def on_backpressure_buffer() -> None:
    ticks = rx.interval(0.03).take(9).on_backpressure_buffer(2, overflow="drop_oldest")
    print(await ticks.delay(0.1, capacity=1).to_list())  # one element each 0.1 s


async def on_backpressure_drop() -> None:
    dropped: list[int] = []
    ticks = rx.interval(0.03).take(9).on_backpressure_drop(on_drop=dropped.append)
    print(await ticks.delay(0.1, capacity=1).to_list())  # one element each 0.1 s
    print("dropped:", dropped)


async def on_backpressure_latest() -> None:
    ticks = rx.interval(0.03).take(9).on_backpressure_latest()
    print(await ticks.delay(0.1, capacity=1).to_list())  # one element each 0.1 s


async def on_backpressure_error() -> None:
    ticks = rx.interval(0.03).on_backpressure_error()
    try:
        await ticks.delay(0.1, capacity=1).run()  # one element each 0.1 s
    except Overflow:
        print("an element arrived without demand")
