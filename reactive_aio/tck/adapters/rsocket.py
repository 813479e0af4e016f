"""Publishers of PyPI's rsocket as publishers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec

from ...spec import Subscriber, Subscription
from .support import published

__all__ = ("from_rsocket",)

P = ParamSpec("P")


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


@dataclass(frozen=True, eq=False)
class _TranslatedSubscriber:
    """A subscriber with the interface that rsocket's publishers expect."""

    subscriber: Subscriber[Any]

    def on_subscribe(self, subscription: Subscription) -> Any:
        return self.subscriber.on_subscribe(subscription)

    def on_next(self, value: Any, is_complete: bool = False) -> Any:
        returned = self.subscriber.on_next(value)
        if is_complete:
            returned = self.subscriber.on_complete()
        return returned

    def on_error(self, exception: Exception) -> Any:
        return self.subscriber.on_error(exception)

    def on_complete(self) -> Any:
        return self.subscriber.on_complete()
