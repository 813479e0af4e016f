"""Asynchronous Observables of aioreactive as publishers."""

import asyncio
from collections.abc import Callable
from threading import get_ident
from typing import Any, Generic, ParamSpec, TypeVar

from ...spec import Subscriber
from .support import (
    await_if_needed,
    published,
    report_subscriber_error,
    send_on_subscribe,
    start_task,
)

P = ParamSpec("P")
T = TypeVar("T")


def from_aioreactive(make: Callable[P, Any]) -> Callable[P, "AioreactivePublisher[Any]"]:
    """A publisher of the AsyncObservable that *make* returns, or any object with its method.

    Translated: ``subscribe(subscriber)`` sends on_subscribe and, after that has ended, awaits
    ``subscribe_async(send, throw, close)`` in a task; these three are coroutine functions that
    await what on_next, on_error and on_complete return. ``cancel()`` calls ``dispose_async()`` of
    the result of subscribe_async, in a task, once there is one; a cancellation inside on_subscribe
    prevents the AsyncObservable from starting, and one from another thread goes through the loop.

    Not translated: demand. An AsyncObservable has no demand, so ``request(n)`` does nothing, even
    for an invalid *n*, and no element is held back: set ``knows_demand=False``.
    """
    kind = "an AsyncObservable"
    return published("from_aioreactive", make, "subscribe_async", kind, AioreactivePublisher[Any])


class AioreactivePublisher(Generic[T]):
    """A publisher that sends what the AsyncObservable sends."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        subscription = _AioreactiveSubscription()
        is_open, opening = send_on_subscribe("from_aioreactive", subscriber, subscription)
        if is_open:
            start_task(subscription.run(self._source, subscriber, opening))


class _AioreactiveSubscription:
    """One subscription."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._cancelled = False
        self._handle: Any = None

    async def run(self, source: Any, subscriber: Subscriber[Any], opening: object) -> None:
        try:
            await await_if_needed(opening)
        except Exception as error:
            self._cancelled = True
            report_subscriber_error(error)
        if self._is_cancelled():
            return

        async def send(element: Any) -> None:
            await await_if_needed(subscriber.on_next(element))

        async def throw(error: Exception) -> None:
            await await_if_needed(subscriber.on_error(error))

        async def close() -> None:
            await await_if_needed(subscriber.on_complete())

        self._handle = await source.subscribe_async(send, throw, close)
        if self._is_cancelled():
            await self._dispose()

    def _is_cancelled(self) -> bool:
        return self._cancelled

    async def _dispose(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            await handle.dispose_async()

    def request(self, n: int, /) -> None:
        """It has no demand."""

    def cancel(self) -> None:
        if get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.cancel)
            return
        self._cancelled = True
        if self._handle is not None:
            start_task(self._dispose())
