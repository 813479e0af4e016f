"""Examples of operators that share one subscription."""

import asyncio

import reactive_aio as rx


async def share() -> None:
    prices = rx.interval(0.1).take(3).do_on_next(lambda n: print("price", n)).share()
    print(await asyncio.gather(prices.to_list(), prices.to_list()))


async def replay() -> None:
    news = rx.just("a", "b", "c").replay(2)
    await news.run()
    print(await news.to_list())


async def cache() -> None:
    settings = rx.just("a", "b").do_on_complete(lambda: print("read once")).cache()
    print(await settings.to_list(), await settings.to_list())
