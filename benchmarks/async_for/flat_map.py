"""What does ``async for`` over ``flat_map`` of iterables cost?"""

from collections.abc import AsyncIterator

from reactive_aio import range as flow_range

from ..functions import INNER, hundred, total
from ..runner.peers import peer
from ..runner.question import Question

question = Question("`flat_map` of iterables", 500_000)


@question.handwritten("an async generator with nested for loops")
async def handwritten(count: int) -> int:
    async def flattened() -> AsyncIterator[int]:
        f = hundred
        for outer in range(count // INNER):
            for element in f(outer):
                yield element

    return await total(flattened())


@question.ours("`async for` over `flat_map(f)` of iterables", goal=1.6)
async def over(count: int) -> int:
    return await total(aiter(flow_range(count // INNER).flat_map(hundred)))


@question.peer("asyncstdlib `chain.from_iterable`", "asyncstdlib", share=0.2)
async def asyncstdlib(count: int) -> int:
    library = peer("asyncstdlib")
    inner = library.map(hundred, range(count // INNER))
    return await total(library.chain.from_iterable(inner))


@question.peer("aioitertools `chain.from_iterable`", "aioitertools", share=0.2)
async def aioitertools(count: int) -> int:
    library = peer("aioitertools")
    inner = library.map(hundred, range(count // INNER))
    return await total(library.chain.from_iterable(inner))


@question.peer("aiostream `flatmap`", "aiostream", share=0.05)
async def aiostream(count: int) -> int:
    stream, pipe = peer("aiostream.stream"), peer("aiostream.pipe")

    def inner(_: int) -> object:
        return stream.range(INNER)

    async with (stream.range(count // INNER) | pipe.flatmap(inner)).stream() as elements:
        return await total(elements)
