"""Observables of reactivex, and of what has their shape, as publishers."""

from collections.abc import Callable
from typing import Any, Final, Generic, ParamSpec, TypeVar

from ...spec import Subscriber
from .shapes import DEAF, missing_subscriber, shaped, tell

__all__ = ("ANSWERED", "from_reactivex")

P = ParamSpec("P")
T = TypeVar("T")

ANSWERED: Final = DEAF | {"1.9", "2.12", "3.15"}


def from_reactivex(
    make: Callable[P, Any], *, scheduler: Callable[[], Any] | None = None
) -> Callable[P, "Pushed[Any]"]:
    """A publisher of what *make* returns: an Observable, or what has its ``subscribe()``.

    Translated: ``subscribe(subscriber)`` is on_subscribe, and then ``subscribe(on_next, on_error,
    on_completed, scheduler=…)``; without ``scheduler()`` there is no such argument. ``cancel()``
    is ``dispose()`` of what that returned; so a cancellation from inside a signal takes effect when
    subscribe has returned, and one from inside on_subscribe keeps the Observable from starting.

    Not translated: demand. An Observable knows none, so ``request(n)`` does nothing, a wrong *n*
    included. Nothing is held back, and what a signal returns is not awaited, for the Observable
    does not either: such a subject says ``knows_demand=False, awaits_signals=False``.
    """
    made = shaped("from_reactivex", make, "subscribe", "an Observable")

    def publisher(*args: P.args, **kwargs: P.kwargs) -> Pushed[Any]:
        return Pushed(made(*args, **kwargs), scheduler)

    return publisher


class Pushed(Generic[T]):
    """A publisher that pushes as the Observable pushes."""

    def __init__(self, source: Any, scheduler: Callable[[], Any] | None) -> None:
        self._source = source
        self._scheduler = scheduler

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        if subscriber is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise missing_subscriber("from_reactivex")
        link = _Link()
        try:
            subscriber.on_subscribe(link)
        except Exception as error:
            tell(error)
            return
        if not link.cancelled:
            on = {} if self._scheduler is None else {"scheduler": self._scheduler()}
            signals = (subscriber.on_next, subscriber.on_error, subscriber.on_complete)
            link.holds(self._source.subscribe(*signals, **on))


class _Link:
    """One subscription."""

    def __init__(self) -> None:
        self.cancelled: bool = False
        self._handle: Any = None

    def holds(self, handle: Any) -> None:
        if self.cancelled:
            handle.dispose()
        else:
            self._handle = handle

    def request(self, n: int, /) -> None:
        """There is nobody to tell."""

    def cancel(self) -> None:
        self.cancelled = True
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.dispose()
