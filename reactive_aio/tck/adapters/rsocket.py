"""Publishers of the package rsocket as publishers."""

from collections.abc import Callable
from typing import Any, Final, Generic, ParamSpec, TypeVar

from ...spec import Subscriber, Subscription
from .shapes import shaped

__all__ = ("ANSWERED", "from_rsocket")

P = ParamSpec("P")
T = TypeVar("T")

ANSWERED: Final[frozenset[str]] = frozenset()


def from_rsocket(make: Callable[P, Any]) -> Callable[P, "Told[Any]"]:
    """A publisher of what *make* returns: a Publisher of rsocket (``reactivestreams.publisher``).

    Its interfaces are those of Reactive Streams, but for one thing, and only that is translated:
    ``on_next(value, is_complete)``, which becomes ``on_next(value)`` and then, if it is complete,
    ``on_complete()``. Subscriptions are handed over as they are. Elements are rsocket's own
    Payloads, unless *make* sends something else.

    Not translated: what a signal returns. rsocket's publishers await nothing: such a subject says
    ``awaits_signals=False``.

    Its subscribers need no adapter: their ``is_complete`` has a default.
    """
    made = shaped("from_rsocket", make, "subscribe", "a publisher of rsocket")

    def publisher(*args: P.args, **kwargs: P.kwargs) -> Told[Any]:
        return Told(made(*args, **kwargs))

    return publisher


class Told(Generic[T]):
    """The publisher itself, in front of which the subscribers are translated."""

    def __init__(self, publisher: Any) -> None:
        self._publisher = publisher

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        missing = subscriber is None  # pyright: ignore[reportUnnecessaryComparison]
        self._publisher.subscribe(None if missing else _Translated(subscriber))


class _Translated(Generic[T]):
    """A subscriber as rsocket's publishers want it."""

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
