"""Examples of operators that pass on some elements."""

import reactive_aio as rx


async def take() -> None:
    print(await rx.range(1_000_000).take(3).to_list())


async def take_while() -> None:
    print(await rx.just(1, 4, 9, 2).take_while(lambda n: n < 5).to_list())


async def take_last() -> None:
    print(await rx.range(10).take_last(2).to_list())


async def skip() -> None:
    rows = rx.just("name,price", "tea,3", "milk,1").skip(1)
    print(await rows.to_list())


async def skip_while() -> None:
    body = rx.just("# a", "# b", "text", "# c").skip_while(lambda line: line.startswith("#"))
    print(await body.to_list())


async def skip_last() -> None:
    body = rx.just("tea", "milk", "(2 rows)").skip_last(1)
    print(await body.to_list())


async def distinct() -> None:
    people = rx.just("Ada", "Alan", "ada", "Grace").distinct(str.lower)
    print(await people.to_list())


async def distinct_until_changed() -> None:
    states = rx.just("up", "up", "down", "up").distinct_until_changed()
    print(await states.to_list())
