"""What does it cost to acknowledge each element when its work is done?"""

from reactive_aio.delivery import deliveries

from ..functions import double
from ..runner.question import Question

question = Question("Deliveries: an element is acknowledged when its work is done", 100_000)


class Source:
    """Notes what is acknowledged."""

    def __init__(self) -> None:
        self.total = 0

    def ack(self, element: int) -> None:
        self.total += element

    def ack_many(self, elements: list[int]) -> None:
        self.total += sum(elements)


@question.handwritten("`await write(x); ack(x)` in a for loop")
async def handwritten(count: int) -> int:
    source = Source()
    ack, write = source.ack, double
    for element in range(count):
        await write(element)
        ack(element)
    return source.total


@question.ours("`deliveries(…, ack=f).ack_after(write)`", goal=20)
async def each(count: int) -> int:
    source = Source()
    await deliveries(range(count), ack=source.ack).ack_after(double).run()
    return source.total


@question.ours("`deliveries(…, ack_many=f).buffer(100).ack_after(write)`")
async def lists(count: int) -> int:
    source = Source()
    written = deliveries(range(count), ack_many=source.ack_many).buffer(100).ack_after(write_all)
    await written.run()
    return source.total


async def write_all(elements: list[int]) -> None:
    """The same work on a list."""
    for element in elements:
        await double(element)
