"""What does ``async for`` over a flow with a timeout for each element cost?"""

import asyncio
from collections.abc import AsyncIterator

from reactive_aio import from_aiter

from ..functions import numbers, total
from ..runner.peers import peer
from ..runner.question import Question

SECONDS = 60

question = Question("`timeout` for each element", 200_000)


@question.handwritten("an async generator with one timer, and a deadline that moves")
async def handwritten(count: int) -> int:
    async def limited() -> AsyncIterator[int]:
        loop = asyncio.get_running_loop()
        now = loop.time
        deadline = now() + SECONDS
        consumer = asyncio.current_task()
        is_late = False
        timer: asyncio.TimerHandle

        def check() -> None:
            nonlocal timer, is_late
            if now() < deadline:
                timer = loop.call_at(deadline, check)
            elif consumer is not None:
                is_late = True
                consumer.cancel()

        timer = loop.call_at(deadline, check)
        try:
            async for element in numbers(count):
                deadline = now() + SECONDS
                yield element
        except asyncio.CancelledError:
            if is_late and consumer is not None and not consumer.uncancel():
                raise TimeoutError from None
            raise
        finally:
            timer.cancel()

    return await total(limited())


@question.ours("`async for` over `timeout(60)`", goal=1.6)
async def over(count: int) -> int:
    return await total(aiter(from_aiter(numbers(count)).timeout(SECONDS)))


@question.other("an async generator with `asyncio.timeout(60)` for each element", share=0.2)
async def timeouts(count: int) -> int:
    async def limited() -> AsyncIterator[int]:
        source = numbers(count)
        while True:
            try:
                async with asyncio.timeout(SECONDS):
                    element = await anext(source)
            except StopAsyncIteration:
                return
            yield element

    return await total(limited())


@question.peer("anyio `fail_after(60)` for each element", "anyio", share=0.1)
async def anyio(count: int) -> int:
    library, source, found = peer("anyio"), numbers(count), 0
    while True:
        try:
            with library.fail_after(SECONDS):
                found += await anext(source)
        except StopAsyncIteration:
            return found


@question.peer("aiostream", "aiostream", share=0.05)
async def aiostream(count: int) -> int:
    stream, pipe = peer("aiostream.stream"), peer("aiostream.pipe")
    async with (stream.iterate(numbers(count)) | pipe.timeout(SECONDS)).stream() as elements:
        return await total(elements)
