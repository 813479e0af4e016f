"""Examples of operators that thin out elements by time."""

import reactive_aio as rx


async def debounce() -> None:
    typed = rx.concat(["r", "re", "rea"], rx.timer(0.3, "react"))
    print(await typed.debounce(0.1).to_list())


async def throttle_first() -> None:
    clicks = rx.interval(0.04).take(7)
    print(await clicks.throttle_first(0.1).to_list())


async def throttle_latest() -> None:
    positions = rx.interval(0.03).take(7)
    print(await positions.throttle_latest(0.1).to_list())


async def sample() -> None:
    temperatures = rx.interval(0.03).take(7)
    print(await temperatures.sample(0.1).to_list())
