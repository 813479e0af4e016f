"""Examples of operators that answer errors."""

import reactive_aio as rx


async def on_error_resume() -> None:
    numbers = rx.just("1", "2", "x").map(int)
    print(await numbers.on_error_resume([0]).to_list())


async def on_error_return() -> None:
    numbers = rx.just("1", "x", "3").map(int)
    print(await numbers.on_error_return(-1).to_list())


async def on_error_map() -> None:
    numbers = rx.just("x").map(int)
    try:
        await numbers.on_error_map(lambda error: RuntimeError("not a number")).run()
    except RuntimeError as error:
        print(error, "because:", error.__cause__)


async def on_error_complete() -> None:
    numbers = rx.just("1", "x", "3").map(int)
    print(await numbers.on_error_complete(only=ValueError).to_list())


async def retry() -> None:
    attempts = iter([1, 2, 3])

    def ask() -> str:
        attempt = next(attempts)
        if attempt < 3:
            raise OSError("busy")
        return f"answered at attempt {attempt}"

    policy = rx.RetryPolicy(attempts=5, delay=0.1, only=OSError)
    print(await rx.from_callable(ask).retry(policy).to_list())
