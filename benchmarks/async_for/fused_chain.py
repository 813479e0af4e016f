"""What does ``async for`` over a fused synchronous chain cost?"""

import asyncio
from collections.abc import AsyncIterator

from reactive_aio import range as flow_range

from ..functions import even, increment, numbers, odd, total
from ..runner.peers import peer
from ..runner.question import Question

question = Question("`map`, `filter` of a synchronous source", 1_000_000)


@question.handwritten("one async generator")
async def handwritten(count: int) -> int:
    async def fused() -> AsyncIterator[int]:
        f, p = increment, even
        for element in range(count):
            element = f(element)
            if p(element):
                yield element

    return await total(fused())


@question.ours("`async for` over `map`, `filter`", goal=1.2)
async def over(count: int) -> int:
    return await total(aiter(flow_range(count).map(increment).filter(even)))


@question.ours("`async with flow.stream(prefetch=256)`")
async def streamed(count: int) -> int:
    async with flow_range(count).map(increment).filter(even).stream(prefetch=256) as elements:
        return await total(elements)


@question.other("three chained async generators")
async def chained(count: int) -> int:
    async def mapped(upstream: AsyncIterator[int]) -> AsyncIterator[int]:
        async for element in upstream:
            yield increment(element)

    async def filtered(upstream: AsyncIterator[int]) -> AsyncIterator[int]:
        async for element in upstream:
            if even(element):
                yield element

    return await total(filtered(mapped(numbers(count))))


@question.peer("asyncstdlib", "asyncstdlib", share=0.2)
async def asyncstdlib(count: int) -> int:
    library = peer("asyncstdlib")
    return await total(library.filter(even, library.map(increment, range(count))))


@question.peer("aioitertools", "aioitertools", share=0.2)
async def aioitertools(count: int) -> int:
    library = peer("aioitertools")
    mapped = library.map(increment, range(count))
    return await total(library.filterfalse(odd, mapped))


@question.peer("aiostream", "aiostream", share=0.05)
async def aiostream(count: int) -> int:
    stream, pipe = peer("aiostream.stream"), peer("aiostream.pipe")
    async with (stream.range(count) | pipe.map(increment) | pipe.filter(even)).stream() as elements:
        return await total(elements)


@question.peer("reactivex into an `asyncio.Queue`, unbounded", "reactivex", share=0.2)
async def reactivex(count: int) -> int:
    rx, operators = peer("reactivex"), peer("reactivex.operators")
    queue: asyncio.Queue[int | None] = asyncio.Queue()
    source = rx.from_iterable(range(count)).pipe(operators.map(increment), operators.filter(even))
    source.subscribe(queue.put_nowait, None, lambda: queue.put_nowait(None))
    found = 0
    while (element := await queue.get()) is not None:
        found += element
    return found
