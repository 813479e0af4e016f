"""What does ``async for`` over a sequential ``map_async`` cost?"""

from collections.abc import AsyncIterator

from reactive_aio import range as flow_range

from ..functions import double, total
from ..runner.peers import peer
from ..runner.question import Question
from ..swap import total_beside

question = Question("Sequential `map_async`", 500_000)


async def mapped(count: int) -> AsyncIterator[int]:
    f = double
    for element in range(count):
        yield await f(element)


@question.handwritten("an async generator: `yield await f(x)`")
async def handwritten(count: int) -> int:
    return await total(mapped(count))


@question.ours("`async for` over `map_async(f)`", goal=1.3)
async def over(count: int) -> int:
    return await total(aiter(flow_range(count).map_async(double)))


@question.other("that generator in a task of its own, which hands over lists")
async def handed_over(count: int) -> int:
    return await total_beside(mapped(count))


@question.peer("asyncstdlib", "asyncstdlib", share=0.2)
async def asyncstdlib(count: int) -> int:
    return await total(peer("asyncstdlib").map(double, range(count)))


@question.peer("aioitertools", "aioitertools", share=0.2)
async def aioitertools(count: int) -> int:
    return await total(peer("aioitertools").map(double, range(count)))


@question.peer("aiostream", "aiostream", share=0.05)
async def aiostream(count: int) -> int:
    stream, pipe = peer("aiostream.stream"), peer("aiostream.pipe")
    async with (stream.range(count) | pipe.map(double, task_limit=1)).stream() as elements:
        return await total(elements)
