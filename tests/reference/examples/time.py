"""Examples of operators with time limits."""

import reactive_aio as rx


async def timeout() -> None:
    try:
        await rx.timer(0.5, "answer").timeout(0.1).run()
    except TimeoutError:
        print("no answer within 0.1 s")


async def buffer_timeout() -> None:
    rows = rx.concat([1, 2, 3, 4], rx.timer(0.3, 5))
    print(await rows.buffer_timeout(3, 0.1).to_list())
