"""What does ``async for`` over a fused chain cost?"""

from collections.abc import AsyncIterator

from reactive_aio import range as flow_range

from .fused_chain import even, increment
from .runner import Question

question = Question("Fused chain (map, filter) by async for", 1_000_000)


@question.case("limit: one hand-written fused async generator")
async def limit(count: int) -> int:
    async def fused() -> AsyncIterator[int]:
        f, p = increment, even
        for element in range(count):
            element = f(element)
            if p(element):
                yield element

    total = 0
    async for element in fused():
        total += element
    return total


@question.case("async for over the flow", goal=1.2)
async def over(count: int) -> int:
    total = 0
    async for element in flow_range(count).map(increment).filter(even):
        total += element
    return total


@question.case("three chained async generators")
async def chained(count: int) -> int:
    async def source() -> AsyncIterator[int]:
        for element in range(count):
            yield element

    async def mapped(upstream: AsyncIterator[int]) -> AsyncIterator[int]:
        async for element in upstream:
            yield increment(element)

    async def filtered(upstream: AsyncIterator[int]) -> AsyncIterator[int]:
        async for element in upstream:
            if even(element):
                yield element

    total = 0
    async for element in filtered(mapped(source())):
        total += element
    return total


@question.case("async with flow.stream(prefetch=256)")
async def streamed(count: int) -> int:
    total = 0
    async with flow_range(count).map(increment).filter(even).stream(prefetch=256) as elements:
        async for element in elements:
            total += element
    return total
