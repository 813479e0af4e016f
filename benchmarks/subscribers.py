"""The subscribers of the benchmarks.

They have slots, since the cost of an instance dict would distort the results.
"""

import asyncio

from reactive_aio import Flow, Subscription

UNBOUNDED = 2**63 - 1


class Summing:
    """Adds up the elements, with unbounded demand."""

    __slots__ = ("done", "subscription", "total")

    def __init__(self) -> None:
        self.total: int = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        subscription.request(UNBOUNDED)

    def on_next(self, element: int) -> None:
        self.total += element

    def on_error(self, error: BaseException) -> None:
        self.done.set_exception(error)

    def on_complete(self) -> None:
        self.done.set_result(None)

    async def sum_of(self, flow: Flow[int]) -> int:
        """Subscribe, wait for the end and return the sum."""
        flow.subscribe(self)
        await self.done
        return self.total


class OneByOne(Summing):
    """Requests one element from inside each on_next: stop and wait."""

    __slots__ = ()

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        subscription.request(1)

    def on_next(self, element: int) -> None:
        self.total += element
        self.subscription.request(1)


class Batches(Summing):
    """Requests 256 elements whenever 256 have been received."""

    __slots__ = ("remaining",)

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.remaining = 256
        subscription.request(256)

    def on_next(self, element: int) -> None:
        self.total += element
        self.remaining -= 1
        if not self.remaining:
            self.remaining = 256
            self.subscription.request(256)


class Coroutine(Summing):
    """Receives elements in an ``async def``."""

    __slots__ = ()

    async def on_next(  # type: ignore[override]  # each method is def or async def
        self, element: int
    ) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.total += element
