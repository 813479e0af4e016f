"""Examples of operators that transform each element."""

import operator

import reactive_aio as rx


async def map() -> None:
    words = rx.just("tea", "milk").map(str.upper)
    print(await words.to_list())


async def filter() -> None:
    even = rx.range(10).filter(lambda n: n % 2 == 0)
    print(await even.to_list())


async def filter_map() -> None:
    prices = {"tea": 3, "milk": 1}
    found = rx.just("tea", "salt", "milk").filter_map(prices.get)
    print(await found.to_list())


async def of_type() -> None:
    numbers = rx.just("a", 1, "b", 2).of_type(int)
    print(await numbers.to_list())


async def scan() -> None:
    balances = rx.just(100, -30, 50).scan(operator.add)
    print(await balances.to_list())


async def enumerate() -> None:
    async for number, name in rx.just("Ada", "Alan").enumerate(1):
        print(number, name)


async def pairwise() -> None:
    steps = rx.just(3, 5, 4).pairwise().map(lambda pair: pair[1] - pair[0])
    print(await steps.to_list())


async def start_with() -> None:
    table = rx.just("tea,3", "milk,1").start_with("name,price")
    print(await table.to_list())


async def default_if_empty() -> None:
    found = rx.just(1, 2).filter(lambda n: n > 5).default_if_empty(0)
    print(await found.to_list())


async def transform() -> None:
    def cleaned(lines: rx.Flow[str]) -> rx.Flow[str]:
        return lines.map(str.strip).filter(bool)

    print(await rx.just(" a ", "", "b ").transform(cleaned).to_list())
