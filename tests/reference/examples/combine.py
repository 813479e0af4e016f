"""Examples of operators that combine several sources."""

import reactive_aio as rx


async def concat() -> None:
    print(await rx.concat(rx.just("head"), ["a", "b"], rx.just("end")).to_list())


async def merge() -> None:
    slow = rx.interval(0.1).map(lambda n: f"slow {n}").take(2)
    fast = rx.interval(0.04).map(lambda n: f"fast {n}").take(3)
    print(await rx.merge(slow, fast).to_list())


async def zip() -> None:
    async for name, price in rx.zip(rx.just("tea", "milk"), [3, 1]):
        print(name, price)


async def concat_with() -> None:
    print(await rx.just("a", "b").concat_with(["the end"]).to_list())


async def merge_with() -> None:
    events = rx.timer(0.2, "saved").merge_with(rx.timer(0.1, "changed"))
    print(await events.to_list())


async def zip_with() -> None:
    print(await rx.just("tea", "milk").zip_with([3, 1]).to_list())


async def then() -> None:
    saved = rx.just(1, 2).do_on_next(lambda n: print("saved", n))
    print(await saved.then(["all saved"]).to_list())
