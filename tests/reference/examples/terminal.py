"""Examples of sinks that return one result."""

import operator

import reactive_aio as rx


async def first() -> None:
    print(await rx.just("a", "b").first(), await rx.empty().first(default="none"))


async def last() -> None:
    print(await rx.just("a", "b").last())


async def single() -> None:
    print(await rx.just("Ada", "Alan").filter(lambda name: len(name) == 3).single())


async def element_at() -> None:
    print(await rx.just("gold", "silver", "bronze").element_at(1))


async def min() -> None:
    print(await rx.just("tea", "milk", "coffee").min(key=len))


async def max() -> None:
    print(await rx.just(2, 3, 1).max())


async def reduce() -> None:
    print(await rx.range(1, 6).reduce(operator.mul))


async def count() -> None:
    print(await rx.just("tea", "milk").count())


async def any() -> None:
    print(await rx.just(1, 4, 9).any(lambda n: n % 2 == 0))


async def all() -> None:
    print(await rx.just(1, 4, 9).all(lambda n: n % 2 == 0))


async def sum() -> None:
    print(await rx.range(5).sum())


async def run() -> None:
    await rx.just("a", "b").do_on_next(print).run()
