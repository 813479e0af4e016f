"""What does ``request(1)`` from inside ``on_next`` cost?"""

from reactive_aio import range as flow_range

from ..runner.question import Question
from ..subscribers import OneByOne, Summing

question = Question("`request(1)` in each `on_next`", 1_000_000)


class Requesting(Summing):
    """Calls one method that adds to a number, which is the least that request does."""

    def __init__(self) -> None:
        super().__init__()
        self.me: Requesting = self
        self.demand = 0

    def request(self, n: int) -> None:
        self.demand += n

    def on_next(self, element: int) -> None:
        self.total += element
        self.me.request(1)


@question.handwritten("a for loop, `on_next` and one method call")
async def handwritten(count: int) -> int:
    subscriber = Requesting()
    on_next = subscriber.on_next
    for element in range(count):
        on_next(element)
    return subscriber.total


@question.ours("`request(1)` inside of `on_next`", goal=1.45)
async def inside(count: int) -> int:
    return await OneByOne().sum_of(flow_range(count))
