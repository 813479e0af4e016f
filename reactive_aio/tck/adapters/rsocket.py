"""Publishers of PyPI's rsocket as publishers."""

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from ...spec import Subscriber, Subscription
from .support import published

P = ParamSpec("P")
T = TypeVar("T")


def from_rsocket(make: Callable[P, Any]) -> Callable[P, "RSocketPublisher[Any]"]:
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
    return published("from_rsocket", make, "subscribe", kind, RSocketPublisher[Any])


class RSocketPublisher(Generic[T]):
    """Passes translated subscribers to the publisher."""

    def __init__(self, publisher: Any) -> None:
        self._publisher = publisher

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        missing = subscriber is None  # pyright: ignore[reportUnnecessaryComparison]
        self._publisher.subscribe(None if missing else _TranslatedSubscriber(subscriber))


class _TranslatedSubscriber(Generic[T]):
    """A subscriber with the interface that rsocket's publishers expect."""

    def __init__(self, subscriber: Subscriber[T]) -> None:
        self._subscriber = subscriber

    def on_subscribe(self, subscription: Subscription) -> Any:
        return self._subscriber.on_subscribe(subscription)

    def on_next(self, value: T, is_complete: bool = False) -> Any:
        returned = self._subscriber.on_next(value)
        if is_complete:
            returned = self._subscriber.on_complete()
        return returned

    def on_error(self, exception: Exception) -> Any:
        return self._subscriber.on_error(exception)

    def on_complete(self) -> Any:
        return self._subscriber.on_complete()
