"""Examples of operators that observe the signals that pass."""

import logging
import sys

import reactive_aio as rx


async def do_on_next() -> None:
    seen: list[int] = []
    await rx.range(3).do_on_next(seen.append).run()
    print(seen)


async def do_on_error() -> None:
    numbers = rx.just("x").map(int).do_on_error(lambda error: print("failed:", error))
    print(await numbers.on_error_return(0).to_list())


async def do_on_complete() -> None:
    print(await rx.range(3).do_on_complete(lambda: print("complete")).to_list())


async def do_on_cancel() -> None:
    numbers = rx.range(100).do_on_cancel(lambda: print("cancelled"))
    print(await numbers.take(2).to_list())


async def do_on_request() -> None:
    flow = rx.range(100).do_on_request(lambda n: print("requested:", n))
    print(await flow.boundary(8).take(2).to_list())


async def do_on_discard() -> None:
    rooms = rx.from_iterable(["a", "b", "c", "d"]).boundary(4)
    async for room in rooms.do_on_discard(lambda room: print("give back", room)):
        print("enter", room)
        if room == "b":
            break


async def do_finally() -> None:
    async for n in rx.range(100).do_finally(print):
        if n == 2:
            break
    print("the loop has ended")


async def log() -> None:
    logger = logging.Logger("shop")
    logger.addHandler(logging.StreamHandler(sys.stdout))
    await rx.just("tea", "milk").log("orders", logger=logger).run()


async def name() -> None:
    orders = rx.just("3", "x").map(int).name("orders")
    try:
        await orders.run()
    except ValueError as error:
        print(error.__notes__[-1])
