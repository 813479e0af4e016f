"""The subscribers that benchmarks deliver to.

They have slots: an instance dict would blur what is measured.
"""

import asyncio

from reactive_aio import Flow, Subscription

UNBOUNDED = 2**63 - 1


class Summing:
    """Adds the elements up, under unbounded demand."""

    __slots__ = ("ended", "subscription", "total")

    def __init__(self) -> None:
        self.total: int = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        subscription.request(UNBOUNDED)

    def on_next(self, element: int) -> None:
        self.total += element

    def on_error(self, error: BaseException) -> None:
        self.ended.set_exception(error)

    def on_complete(self) -> None:
        self.ended.set_result(None)

    async def over(self, flow: Flow[int]) -> int:
        """Subscribe, wait for the end and return the sum."""
        flow.subscribe(self)
        await self.ended
        return self.total


class OneByOne(Summing):
    """Asks for one more element from inside each on_next: stop and wait."""

    __slots__ = ()

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        subscription.request(1)

    def on_next(self, element: int) -> None:
        self.total += element
        self.subscription.request(1)


class Batches(Summing):
    """Asks for 256 more whenever 256 have come."""

    __slots__ = ("left",)

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.left = 256
        subscription.request(256)

    def on_next(self, element: int) -> None:
        self.total += element
        self.left -= 1
        if not self.left:
            self.left = 256
            self.subscription.request(256)


class Coroutine(Summing):
    """Takes elements in an ``async def``."""

    __slots__ = ()

    async def on_next(  # type: ignore[override]  # each method is def or async def
        self, element: int
    ) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.total += element
