"""Asynchronous Observables of aioreactive, and of what has their shape, as publishers."""

import asyncio
from collections.abc import Callable, Coroutine
from threading import get_ident
from typing import Any, Final, Generic, ParamSpec, TypeVar

from ...spec import Subscriber
from .shapes import DEAF, missing_subscriber, settle, shaped, tell

__all__ = ("ANSWERED", "from_aioreactive")

P = ParamSpec("P")
T = TypeVar("T")

ANSWERED: Final = DEAF | {"1.9", "2.12", "3.5", "3.7", "3.15"}

_alive: set[asyncio.Task[None]] = set()
"""The loop itself holds its tasks weakly."""


def from_aioreactive(make: Callable[P, Any]) -> Callable[P, "Pushed[Any]"]:
    """A publisher of what *make* returns: an AsyncObservable, or what has ``subscribe_async()``.

    Translated: ``subscribe(subscriber)`` is on_subscribe, and, when that has ended, in a task,
    ``await subscribe_async(send, throw, close)``; those three are coroutine functions, which await
    what on_next, on_error and on_complete return. ``cancel()`` is ``dispose_async()`` of what
    subscribe_async returned, in a task, once it has returned; a cancellation from inside
    on_subscribe keeps the AsyncObservable from starting, and one from another thread comes to the
    loop first.

    Not translated: demand. An AsyncObservable knows none, so ``request(n)`` does nothing, a wrong
    *n* included, and nothing is held back: such a subject says ``knows_demand=False``.
    """
    made = shaped("from_aioreactive", make, "subscribe_async", "an AsyncObservable")

    def publisher(*args: P.args, **kwargs: P.kwargs) -> Pushed[Any]:
        return Pushed(made(*args, **kwargs))

    return publisher


class Pushed(Generic[T]):
    """A publisher that pushes as the AsyncObservable pushes."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        if subscriber is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise missing_subscriber("from_aioreactive")
        link = _Link()
        try:
            opening = subscriber.on_subscribe(link)
        except Exception as error:
            tell(error)
            return
        link.spawn(link.begin(self._source, subscriber, opening))


class _Link:
    """One subscription."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._cancelled = False
        self._handle: Any = None

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        _alive.add(task)
        task.add_done_callback(_alive.discard)

    async def begin(self, source: Any, subscriber: Subscriber[Any], opening: object) -> None:
        try:
            await settle(opening)
        except Exception as error:
            self._cancelled = True
            tell(error)
        if self._over():
            return

        async def send(element: Any) -> None:
            await settle(subscriber.on_next(element))

        async def throw(error: Exception) -> None:
            await settle(subscriber.on_error(error))

        async def close() -> None:
            await settle(subscriber.on_complete())

        self._handle = await source.subscribe_async(send, throw, close)
        if self._over():
            await self._end()

    def _over(self) -> bool:
        return self._cancelled

    async def _end(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            await handle.dispose_async()

    def request(self, n: int, /) -> None:
        """There is nobody to tell."""

    def cancel(self) -> None:
        if get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.cancel)
            return
        self._cancelled = True
        if self._handle is not None:
            self.spawn(self._end())
