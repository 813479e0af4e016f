"""What tests of lost connections do with each broker: send numbers, and be cut off meanwhile."""

import asyncio
from typing import Any

from reactive_aio import DrainReport, RetryPolicy
from reactive_aio.connectors import Message
from reactive_aio.delivery import DeliveryFlow
from tests.harness.outages import Proxy
from tests.recipes.waiting import until

AGAIN = RetryPolicy(attempts=None, delay=0.05, maximum=0.2)  # however long a busy machine takes
NUMBERS = range(100)


async def work_through_losses(proxy: Proxy, numbers: DeliveryFlow[int], send: Any) -> DrainReport:
    """Send `NUMBERS`, and work on them until all are done; meanwhile the broker is lost twice."""
    done: list[int] = []

    async def write(number: int) -> None:
        await asyncio.sleep(0.01)
        done.append(number)

    async def produce() -> None:
        for first in NUMBERS[::10]:
            await send([Message(str(n).encode()) for n in range(first, first + 10)])
            await asyncio.sleep(0.02)

    async with numbers.ack_after(write, concurrency=5).running() as run:
        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            for _ in range(2):
                enough = len(done) + 20
                await until(lambda: len(done) > enough)  # noqa: B023
                await proxy.stop()
                await asyncio.sleep(0.1)
                await proxy.start()
        await until(lambda: {*done} == {*NUMBERS})
        return await run.drain()
