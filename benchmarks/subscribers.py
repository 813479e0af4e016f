"""The subscribers of the benchmarks: plain classes, as a person writes them first."""

import asyncio
from typing import Any

from reactive_aio import Flow, Subscription

UNBOUNDED = 2**63 - 1


class Summing:
    """Adds up the elements, with unbounded demand."""

    subscription: Subscription

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

    async def sum_of(self, flow: Flow[Any]) -> int:
        """Subscribe, wait for the end and return the sum."""
        flow.subscribe(self)
        await self.done
        return self.total


class OneByOne(Summing):
    """Requests one element from inside each on_next: stop and wait."""

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        subscription.request(1)

    def on_next(self, element: int) -> None:
        self.total += element
        self.subscription.request(1)


class Passive(Summing):
    """Requests nothing: another object requests for it."""

    def on_subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription


class Batches(Summing):
    """Requests 256 elements whenever 256 have been received."""

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


class Pairs(Summing):
    """Adds up the first elements of pairs."""

    def on_next(self, element: Any) -> None:
        self.total += element[0]


class Coroutine(Summing):
    """Receives elements in an ``async def``."""

    async def on_next(  # type: ignore[override]  # each method is def or async def
        self, element: int
    ) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.total += element
