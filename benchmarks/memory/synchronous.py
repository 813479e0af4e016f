"""How many bytes does an idle subscription to a synchronous chain hold?"""

from collections.abc import AsyncGenerator

from reactive_aio import range as flow_range

from ..functions import even, increment
from .idle import Waiting, bytes_each, idle

question = idle("A synchronous chain")

FLOW = flow_range(1000).map(increment).filter(even)


class Suspended:
    """An async generator that has started, and waits for its consumer."""

    __slots__ = ("elements",)

    def __init__(self, elements: AsyncGenerator[int, None]) -> None:
        self.elements = elements

    async def close(self) -> None:
        await self.elements.aclose()


async def _suspended(_: Waiting) -> Suspended:
    async def fused() -> AsyncGenerator[int, None]:
        for element in range(1000):
            element = increment(element)
            if even(element):
                yield element

    elements = fused()
    await anext(elements)
    return Suspended(elements)


def _subscribed(subscriber: Waiting) -> Waiting:
    FLOW.subscribe(subscriber)
    return subscriber


@question.handwritten("a suspended async generator")
async def handwritten(count: int) -> float:
    return await bytes_each(_suspended, count)


@question.ours("idle subscription to `map`, `filter`", goal=700)
async def subscribed(count: int) -> float:
    return await bytes_each(_subscribed, count)
