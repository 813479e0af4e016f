"""Examples of sources of known values."""

import reactive_aio as rx


async def just() -> None:
    print(await rx.just("tea", "milk").to_list())


async def empty() -> None:
    print(await rx.empty().to_list())


async def never() -> None:
    print(await rx.never().take_until(rx.timer(0.1)).to_list())


async def error() -> None:
    payments = rx.just(10, -1).concat_map(
        lambda amount: [amount] if amount > 0 else rx.error(ValueError("negative"))
    )
    print(await payments.on_error_complete().to_list())


async def from_iterable() -> None:
    print(await rx.from_iterable({"tea": 3, "milk": 1}.items()).to_list())


async def from_callable() -> None:
    numbers = iter([1, 2])
    counted = rx.from_callable(lambda: next(numbers))
    print(await counted.first(), await counted.first())


async def defer() -> None:
    today = rx.defer(lambda: rx.just("computed", "for each subscriber"))
    print(await today.to_list())


async def generate() -> None:
    fibonacci = rx.generate(lambda state: (state[0], (state[1], sum(state))), (0, 1))
    print(await fibonacci.take(8).to_list())


async def range() -> None:
    print(await rx.range(0, 10, 3).to_list())
