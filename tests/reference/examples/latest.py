"""Examples of operators that combine the latest elements."""

import reactive_aio as rx


async def combine_latest() -> None:
    price, amount = rx.LatestProcessor(10), rx.LatestProcessor(2)
    totals = rx.combine_latest(price, amount, combine=lambda p, n: p * n)
    async with totals.stream() as elements:
        print(await anext(elements))
        amount.try_emit(3)
        print(await anext(elements))


async def with_latest_from() -> None:
    rate = rx.LatestProcessor(1.5)
    orders = rx.just(10, 20).with_latest_from(rate, combine=lambda price, r: price * r)
    print(await orders.to_list())
