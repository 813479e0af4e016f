"""Probes: ends of a flow that are driven by hand and remember every signal.

A probe never asserts; it records. ``signals`` reads like a marble diagram: the elements, then
``"|"`` for completion or the exception itself.
"""

import asyncio
from typing import Any, Generic, TypeVar

from ..spec import Publisher, Subscriber, Subscription

__all__ = ("AsyncSubscriberProbe", "PublisherProbe", "SubscriberProbe")

T = TypeVar("T")

COMPLETE = "|"


class SubscriberProbe(Generic[T]):
    """A subscriber with ``def`` methods: requests *request* at once, *again* after each element."""

    def __init__(self, request: int = 0, *, again: int = 0) -> None:
        self._first = request
        self._again = again
        self.signals: list[Any] = []
        """Elements, then ``"|"`` or the exception."""
        self.subscriptions: list[Subscription] = []
        """Every subscription ever received; a second one is cancelled (rule 2.5)."""
        self._ended = asyncio.Event()

    # -- by hand -----------------------------------------------------------------------------------
    @property
    def subscription(self) -> Subscription:
        """The subscription; an AssertionError when on_subscribe has not come."""
        if not self.subscriptions:
            raise AssertionError("on_subscribe was not signalled (rule 1.9)")
        return self.subscriptions[0]

    def subscribed_to(self, publisher: Publisher[T]) -> "SubscriberProbe[T]":
        """Subscribe to *publisher* and return this probe."""
        publisher.subscribe(self)
        return self

    def request(self, n: int) -> None:
        self.subscription.request(n)

    def cancel(self) -> None:
        self.subscription.cancel()

    @property
    def elements(self) -> list[T]:
        """The elements received."""
        return self.signals[:-1] if self.ended else list(self.signals)

    @property
    def ended(self) -> bool:
        """Whether a terminal signal has come."""
        return self._ended.is_set()

    @property
    def completed(self) -> bool:
        return self.ended and self.signals[-1] == COMPLETE

    @property
    def error(self) -> BaseException | None:
        """The exception of on_error, if that has come."""
        last = self.signals[-1] if self.ended else None
        return last if isinstance(last, BaseException) else None

    async def end(self) -> list[Any]:
        """Wait for the terminal signal; return all signals."""
        await self._ended.wait()
        return self.signals

    async def received(self, count: int) -> list[Any]:
        """Wait until *count* signals have come, or the terminal one; return all signals."""
        while len(self.signals) < count and not self.ended:  # noqa: ASYNC110 - one turn at a time
            await asyncio.sleep(0)
        return self.signals

    # -- the subscriber ----------------------------------------------------------------------------
    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscriptions.append(subscription)
        if len(self.subscriptions) > 1:
            subscription.cancel()
        elif self._first:
            subscription.request(self._first)

    def on_next(self, element: T, /) -> None:
        self.signals.append(element)
        if self._again:
            self.subscription.request(self._again)

    def on_error(self, error: BaseException, /) -> None:
        self.signals.append(error)
        self._ended.set()

    def on_complete(self) -> None:
        self.signals.append(COMPLETE)
        self._ended.set()


class AsyncSubscriberProbe(SubscriberProbe[T]):
    """The same with ``async def`` methods; each signal takes *turns* turns of the loop.

    ``overlaps`` counts signals that began before the one before had ended (rule 1.3).
    """

    # A subscriber's methods are def or async def, each as it likes; but a type checker wants a
    # method to stay what it is in the class above. Hence the ignores.

    def __init__(self, request: int = 0, *, again: int = 0, turns: int = 1) -> None:
        super().__init__(request, again=again)
        self._turns = turns
        self._inside = 0
        self.overlaps: int = 0

    async def _take_time(self) -> None:
        self._inside += 1
        if self._inside > 1:
            self.overlaps += 1
        for _ in range(self._turns):
            await asyncio.sleep(0)
        self._inside -= 1

    async def on_subscribe(self, subscription: Subscription, /) -> None:  # type: ignore[override]
        await self._take_time()
        super().on_subscribe(subscription)

    async def on_next(self, element: T, /) -> None:  # type: ignore[override]
        await self._take_time()
        super().on_next(element)

    async def on_error(self, error: BaseException, /) -> None:  # type: ignore[override]
        await self._take_time()
        super().on_error(error)

    async def on_complete(self) -> None:  # type: ignore[override]
        await self._take_time()
        super().on_complete()


class PublisherProbe(Generic[T]):
    """A publisher that emits by hand only; it records the demand and the cancellations it gets."""

    def __init__(self) -> None:
        self.requested: int = 0
        self.requests: list[int] = []
        self.cancelled: int = 0
        self.subscribers: list[Subscriber[T]] = []

    @property
    def subscriber(self) -> Subscriber[T]:
        if not self.subscribers:
            raise AssertionError("nobody has subscribed")
        return self.subscribers[-1]

    # -- the publisher, which is its own subscription ----------------------------------------------
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        self.subscribers.append(subscriber)
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        self.requested += n
        self.requests.append(n)

    def cancel(self) -> None:
        self.cancelled += 1

    # -- by hand -----------------------------------------------------------------------------------
    def emit(self, *elements: T) -> None:
        for element in elements:
            self.subscriber.on_next(element)

    def complete(self) -> None:
        self.subscriber.on_complete()

    def fail(self, error: BaseException) -> None:
        self.subscriber.on_error(error)
