"""Examples of operators that delay."""

import reactive_aio as rx


async def delay() -> None:
    late = rx.just("echo").delay(0.2)
    print(await late.merge_with(["call"]).to_list())


async def delay_subscription() -> None:
    poll = rx.from_callable(lambda: "polled").delay_subscription(0.2)
    print(await poll.merge_with(["waiting"]).to_list())


async def rate_limit() -> None:
    requests = rx.range(4).rate_limit(2, per=0.2).elapsed()
    print([f"{seconds:.1f}" async for seconds, _ in requests])
