"""Publishers that push: observables of aioreactive and reactivex, publishers of rsocket."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident
from typing import Any, ParamSpec

from ...spec import Subscriber
from .support import (
    await_if_needed,
    published,
    report_subscriber_error,
    send_on_subscribe,
    start_task,
)

P = ParamSpec("P")


# -- aioreactive -----------------------------------------------------------------------------------
def from_aioreactive(make: Callable[P, Any]) -> Callable[P, "AioreactivePublisher"]:
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
    return published("from_aioreactive", make, "subscribe_async", kind, AioreactivePublisher)


@dataclass(frozen=True, eq=False)
class AioreactivePublisher:
    """A publisher that sends what the AsyncObservable sends."""

    source: Any

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        subscription = _AioreactiveSubscription()
        is_open, opening = send_on_subscribe("from_aioreactive", subscriber, subscription)
        if is_open:
            start_task(subscription.run(self.source, subscriber, opening))


class _AioreactiveSubscription:
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


# -- reactivex -------------------------------------------------------------------------------------
def from_reactivex(
    make: Callable[P, Any], *, scheduler: Callable[[], Any] | None = None
) -> Callable[P, "ReactivexPublisher"]:
    """A publisher of the Observable that *make* returns, or any object with its ``subscribe()``.

    Translated: ``subscribe(subscriber)`` sends on_subscribe and then calls ``subscribe(on_next,
    on_error, on_completed, scheduler=…)``, without a scheduler if none is given. ``cancel()`` calls
    ``dispose()`` of the result; so a cancellation inside a signal takes effect when subscribe has
    returned, and one inside on_subscribe prevents the Observable from starting.

    Not translated: demand. An Observable has no demand, so ``request(n)`` does nothing, even for an
    invalid *n*. No element is held back, and awaitables that signals return are not awaited, as by
    the Observable: set ``knows_demand=False, awaits_signals=False``.
    """

    def publish(source: Any) -> ReactivexPublisher:
        return ReactivexPublisher(source, scheduler)

    return published("from_reactivex", make, "subscribe", "an Observable", publish)


@dataclass(frozen=True, eq=False)
class ReactivexPublisher:
    """A publisher that sends what the Observable sends."""

    source: Any
    scheduler: Callable[[], Any] | None

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        subscription = _ReactivexSubscription()
        is_open, _ = send_on_subscribe("from_reactivex", subscriber, subscription)
        if is_open and not subscription.is_cancelled:
            on = {} if self.scheduler is None else {"scheduler": self.scheduler()}
            signals = (subscriber.on_next, subscriber.on_error, subscriber.on_complete)
            subscription.set_disposable(self.source.subscribe(*signals, **on))


class _ReactivexSubscription:
    def __init__(self) -> None:
        self.is_cancelled: bool = False
        self._handle: Any = None

    def set_disposable(self, handle: Any) -> None:
        if self.is_cancelled:
            handle.dispose()
        else:
            self._handle = handle

    def request(self, n: int, /) -> None:
        """It has no demand."""

    def cancel(self) -> None:
        self.is_cancelled = True
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.dispose()


# -- rsocket ---------------------------------------------------------------------------------------
def from_rsocket(make: Callable[P, Any]) -> Callable[P, "RSocketPublisher"]:
    """A publisher of the rsocket publisher (``reactivestreams.publisher``) that *make* returns.

    Its interfaces are those of Reactive Streams with one exception, which is translated:
    ``on_next(value, is_complete)`` becomes ``on_next(value)`` and, if it is complete,
    ``on_complete()``. Subscriptions are passed on unchanged. Elements are rsocket's Payloads,
    unless *make* sends something else.

    Not translated: awaitables that signals return. rsocket's publishers do not await them: set
    ``awaits_signals=False``.

    Its subscribers need no adapter: their ``is_complete`` has a default.
    """
    kind = "a publisher of rsocket"
    return published("from_rsocket", make, "subscribe", kind, RSocketPublisher)


@dataclass(frozen=True, eq=False)
class RSocketPublisher:
    """Passes translated subscribers to the publisher."""

    publisher: Any

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        missing = subscriber is None  # pyright: ignore[reportUnnecessaryComparison]
        self.publisher.subscribe(None if missing else _TranslatedSubscriber(subscriber))


class _TranslatedSubscriber:
    """A subscriber with the interface that rsocket's publishers expect."""

    def __init__(self, subscriber: Subscriber[Any]) -> None:
        self._subscriber = subscriber
        self.on_subscribe = subscriber.on_subscribe
        self.on_error = subscriber.on_error
        self.on_complete = subscriber.on_complete

    def on_next(self, value: Any, is_complete: bool = False) -> Any:
        returned = self._subscriber.on_next(value)
        return self._subscriber.on_complete() if is_complete else returned
