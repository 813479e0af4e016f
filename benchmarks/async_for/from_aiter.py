"""What does ``async for`` over a chain of an async generator cost?"""

from collections.abc import AsyncIterator

from reactive_aio import from_aiter

from ..functions import even, increment, numbers, odd, total
from ..runner.peers import peer
from ..runner.question import Question
from ..swap import total_beside

question = Question("`map`, `filter` of an async generator", 500_000)


async def fused(count: int) -> AsyncIterator[int]:
    f, p = increment, even
    async for element in numbers(count):
        element = f(element)
        if p(element):
            yield element


@question.handwritten("one async generator around the source")
async def handwritten(count: int) -> int:
    return await total(fused(count))


@question.ours("`async for` over `from_aiter(g).map(f).filter(p)`", goal=1.3)
async def over(count: int) -> int:
    return await total(aiter(from_aiter(numbers(count)).map(increment).filter(even)))


@question.other("that generator in a task of its own, which hands over lists")
async def handed_over(count: int) -> int:
    return await total_beside(fused(count))


@question.peer("asyncstdlib", "asyncstdlib", share=0.2)
async def asyncstdlib(count: int) -> int:
    library = peer("asyncstdlib")
    return await total(library.filter(even, library.map(increment, numbers(count))))


@question.peer("aioitertools", "aioitertools", share=0.2)
async def aioitertools(count: int) -> int:
    library = peer("aioitertools")
    mapped = library.map(increment, numbers(count))
    return await total(library.filterfalse(odd, mapped))


@question.peer("aiostream", "aiostream", share=0.05)
async def aiostream(count: int) -> int:
    stream, pipe = peer("aiostream.stream"), peer("aiostream.pipe")
    source = stream.iterate(numbers(count)) | pipe.map(increment) | pipe.filter(even)
    async with source.stream() as elements:
        return await total(elements)
