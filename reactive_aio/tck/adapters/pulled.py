"""A publisher that pulls from an asynchronous iterator, one pull per requested element.

Whoever iterates asynchronously has no signals: there is a pull, and its result. So this publisher
does itself all that the rules say about demand, about cancelling and about the order of signals,
and it does so correctly, that what is found wrong is wrong in the iterator.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from threading import get_ident
from typing import Final, Generic, TypeVar

from ...spec import Subscriber
from .shapes import missing_subscriber, settle, tell

__all__ = ("ANSWERED", "Opened", "Pulled")

T = TypeVar("T")

Opened = Callable[[], AbstractAsyncContextManager[AsyncIterator[T]]]
"""Begins an iteration; leaving the context ends it."""

_SIGNALS: Final = ("1.1", "1.3", "1.6", "1.7", "1.8", "1.9", "2.12", "2.13")
_REQUESTS: Final = ("2.7", "3.1", "3.2", "3.3", "3.8", "3.9", "3.10", "3.11", "3.16", "3.17")
_CANCELS: Final = ("3.6", "3.7", "3.12", "3.13", "3.15")
_HOUSE: Final = ("L.2", "L.4", "L.8", "L.9")
ANSWERED: Final = frozenset((*_SIGNALS, *_REQUESTS, *_CANCELS, *_HOUSE))
"""The rules that are kept here, whatever the iterator does."""

_alive: set[asyncio.Task[None]] = set()
"""The loop itself holds its tasks weakly."""


class Pulled(Generic[T]):
    """Each subscription iterates anew, in a task of its own, from its first demand on."""

    def __init__(self, adapter: str, opened: Opened[T]) -> None:
        self._adapter = adapter
        self._opened = opened

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        if subscriber is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise missing_subscriber(self._adapter)
        _Pull(self._opened, subscriber).begin()


class _Pull(Generic[T]):
    """One subscription."""

    def __init__(self, opened: Opened[T], subscriber: Subscriber[T]) -> None:
        self._opened = opened
        self._subscriber: Subscriber[T] | None = subscriber
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._news = asyncio.Event()
        self._demand = 0
        self._refused: ValueError | None = None
        self._pulling: asyncio.Task[None] | None = None

    # -- the subscription -------------------------------------------------------------------------
    def request(self, n: int, /) -> None:
        if get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.request, n)
        elif type(n) is not int or n < 1:
            text = f"rule 3.9: non-positive subscription request: request({n!r})"
            self._refused = self._refused or ValueError(text)
            self._disturb()
        else:
            self._demand += n
            self._news.set()

    def cancel(self) -> None:
        if get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.cancel)
        elif self._subscriber is not None:
            self._subscriber = None
            self._disturb()

    def _disturb(self) -> None:
        self._news.set()
        if self._pulling is not None:
            self._pulling.cancel()

    @property
    def _over(self) -> bool:
        return self._subscriber is None or self._refused is not None

    # -- the task ---------------------------------------------------------------------------------
    def begin(self) -> None:
        assert self._subscriber is not None
        try:
            opening = self._subscriber.on_subscribe(self)
        except Exception as error:
            self._raised(error)
            return
        task = asyncio.get_running_loop().create_task(self._live(opening))
        _alive.add(task)
        task.add_done_callback(_alive.discard)

    async def _live(self, opening: object) -> None:
        try:
            await settle(opening)
            failure = await self._iterate()
            subscriber, self._subscriber = self._subscriber, None
            if subscriber is not None:
                await settle(subscriber.on_error(failure) if failure else subscriber.on_complete())
        except Exception as error:  # of a signal: all others have been caught
            self._raised(error)

    async def _iterate(self) -> Exception | None:
        """Iterate as long as there is demand; the error, if it ends by one."""
        await self._wanted()
        task = asyncio.current_task()
        assert task is not None
        try:
            if not self._over:
                async with self._opened() as iterator:
                    await self._pull_all(iterator, task)
        except asyncio.CancelledError:
            if not self._over:
                raise  # not by this subscription
            task.uncancel()
        except Exception as error:
            return self._refused or error
        return self._refused

    async def _pull_all(self, iterator: AsyncIterator[T], task: asyncio.Task[None]) -> None:
        while not self._over:
            self._pulling = task
            try:
                element = await anext(iterator)
            except StopAsyncIteration:
                return
            finally:
                self._pulling = None
            if not self._over:
                self._demand -= 1
                await self._deliver(element)
                await self._wanted()

    async def _deliver(self, element: T) -> None:
        assert self._subscriber is not None
        try:
            await settle(self._subscriber.on_next(element))
        except Exception as error:
            self._raised(error)

    def _raised(self, error: Exception) -> None:
        self._subscriber = None
        tell(error)

    async def _wanted(self) -> None:
        """Wait for demand, or for the end of this subscription."""
        while not self._demand and not self._over:
            self._news.clear()
            await self._news.wait()
