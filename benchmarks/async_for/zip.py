"""What does ``async for`` over ``zip`` of two synchronous flows cost?"""

import builtins
from collections.abc import AsyncIterator
from typing import Any

from reactive_aio import range as flow_range, zip as flow_zip

from ..runner.peers import peer
from ..runner.question import Question

question = Question("`zip` of two", 500_000)


async def first_total(pairs: Any) -> int:
    """Add up the first elements of *pairs*."""
    found = 0
    async for pair in pairs:
        found += pair[0]
    return found


@question.handwritten("an async generator over the builtin `zip`")
async def handwritten(count: int) -> int:
    async def zipped() -> AsyncIterator[tuple[int, int]]:
        for pair in builtins.zip(range(count), range(count), strict=False):
            yield pair

    return await first_total(zipped())


@question.ours("`async for` over `zip(a, b)`", goal=1.3)
async def over(count: int) -> int:
    return await first_total(flow_zip(flow_range(count), flow_range(count)))


@question.peer("asyncstdlib", "asyncstdlib", share=0.2)
async def asyncstdlib(count: int) -> int:
    return await first_total(peer("asyncstdlib").zip(range(count), range(count)))


@question.peer("aioitertools", "aioitertools", share=0.05)
async def aioitertools(count: int) -> int:
    return await first_total(peer("aioitertools").zip(range(count), range(count)))


@question.peer("aiostream", "aiostream", share=0.05)
async def aiostream(count: int) -> int:
    stream = peer("aiostream.stream")
    async with stream.zip(stream.range(count), stream.range(count)).stream() as pairs:
        return await first_total(pairs)
