"""Observables of reactivex as publishers."""

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from ...spec import Subscriber
from .support import published, send_on_subscribe

P = ParamSpec("P")
T = TypeVar("T")


def from_reactivex(
    make: Callable[P, Any], *, scheduler: Callable[[], Any] | None = None
) -> Callable[P, "ReactivexPublisher[Any]"]:
    """A publisher of the Observable that *make* returns, or any object with its ``subscribe()``.

    Translated: ``subscribe(subscriber)`` sends on_subscribe and then calls ``subscribe(on_next,
    on_error, on_completed, scheduler=…)``, without a scheduler if none is given. ``cancel()`` calls
    ``dispose()`` of the result; so a cancellation inside a signal takes effect when subscribe has
    returned, and one inside on_subscribe prevents the Observable from starting.

    Not translated: demand. An Observable has no demand, so ``request(n)`` does nothing, even for an
    invalid *n*. No element is held back, and awaitables that signals return are not awaited, as by
    the Observable: set ``knows_demand=False, awaits_signals=False``.
    """

    def publish(source: Any) -> ReactivexPublisher[Any]:
        return ReactivexPublisher(source, scheduler)

    return published("from_reactivex", make, "subscribe", "an Observable", publish)


class ReactivexPublisher(Generic[T]):
    """A publisher that sends what the Observable sends."""

    def __init__(self, source: Any, scheduler: Callable[[], Any] | None) -> None:
        self._source = source
        self._scheduler = scheduler

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        subscription = _ReactivexSubscription()
        is_open, _ = send_on_subscribe("from_reactivex", subscriber, subscription)
        if is_open and not subscription.is_cancelled:
            on = {} if self._scheduler is None else {"scheduler": self._scheduler()}
            signals = (subscriber.on_next, subscriber.on_error, subscriber.on_complete)
            subscription.set_disposable(self._source.subscribe(*signals, **on))


class _ReactivexSubscription:
    """One subscription."""

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
