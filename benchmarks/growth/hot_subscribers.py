"""What does an element of a hot flow cost with more subscribers, which request 16 at a time?"""

import asyncio

from reactive_aio import MulticastProcessor, Subscription, range as flow_range

from ..subscribers import Summing
from .sizes import growth, nanoseconds

ELEMENTS, AT_A_TIME = 64, 16


class Later(Summing):
    """Requests 16 elements, in a turn of the loop of its own, whenever 16 have been received."""

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.remaining = 0
        self.request_later()

    def request_later(self) -> None:
        self.remaining += AT_A_TIME
        asyncio.get_running_loop().call_soon(self.subscription.request, AT_A_TIME)

    def on_next(self, element: int) -> None:
        self.total += element
        self.remaining -= 1
        if not self.remaining:
            self.request_later()


async def measure(count: int, _: int) -> float:
    hub = MulticastProcessor[int](64)
    subscribers = [Later() for _ in range(count)]
    for each in subscribers:
        hub.subscribe(each)
    flow_range(ELEMENTS).subscribe(hub)
    ends = asyncio.gather(*(each.done for each in subscribers))
    return await nanoseconds(ends, count * ELEMENTS)


question = growth(
    "Subscribers of a `MulticastProcessor`, 16 requested at a time",
    "an element for each of {n} subscribers",
    (10, 100, 1_000, 10_000),
    measure,
)
