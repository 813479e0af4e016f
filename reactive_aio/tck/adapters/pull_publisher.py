"""A publisher that pulls from an asynchronous iterator, one ``anext()`` per requested element.

An iterator has no signals. So this publisher implements the rules about demand, cancellation and
the order of signals itself, and correctly: any violation is the iterator's.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from threading import get_ident
from typing import Final, Generic, TypeVar

from ...spec import Subscriber
from .support import await_if_needed, report_subscriber_error, send_on_subscribe, start_task

T = TypeVar("T")

OpenIteration = Callable[[], AbstractAsyncContextManager[AsyncIterator[T]]]
"""Starts an iteration; exiting the context ends it."""

_SIGNALS: Final = ("1.1", "1.3", "1.6", "1.7", "1.8", "1.9", "2.12", "2.13")
_REQUESTS: Final = ("2.7", "3.1", "3.2", "3.3", "3.8", "3.9", "3.10", "3.11", "3.16", "3.17")
_CANCELS: Final = ("3.6", "3.7", "3.12", "3.13", "3.15")
_LIBRARY: Final = ("L.2", "L.4", "L.8", "L.9")
KEPT_BY_PULLING: Final = frozenset((*_SIGNALS, *_REQUESTS, *_CANCELS, *_LIBRARY))
"""The rules that this publisher keeps for any iterator."""


class PullPublisher(Generic[T]):
    """Each subscription starts an iteration in its own task, at its first demand."""

    def __init__(self, adapter: str, open_iteration: OpenIteration[T]) -> None:
        self._adapter = adapter
        self._open_iteration = open_iteration

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        subscription = _PullSubscription(self._open_iteration, subscriber)
        is_open, opening = send_on_subscribe(self._adapter, subscriber, subscription)
        if is_open:
            start_task(subscription.run(opening))


class _PullSubscription(Generic[T]):
    """One subscription."""

    def __init__(self, open_iteration: OpenIteration[T], subscriber: Subscriber[T]) -> None:
        self._open_iteration = open_iteration
        self._subscriber: Subscriber[T] | None = subscriber
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._has_news = asyncio.Event()
        self._demand = 0
        self._refused: ValueError | None = None
        self._pulling_task: asyncio.Task[None] | None = None

    # -- the subscription -------------------------------------------------------------------------
    def request(self, n: int, /) -> None:
        if get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.request, n)
        elif type(n) is not int or n < 1:
            text = f"rule 3.9: non-positive subscription request: request({n!r})"
            self._refused = self._refused or ValueError(text)
            self._wake()
        else:
            self._demand += n
            self._has_news.set()

    def cancel(self) -> None:
        if get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.cancel)
        elif self._subscriber is not None:
            self._subscriber = None
            self._wake()

    def _wake(self) -> None:
        self._has_news.set()
        if self._pulling_task is not None:
            self._pulling_task.cancel()

    @property
    def _is_ended(self) -> bool:
        return self._subscriber is None or self._refused is not None

    # -- the task ---------------------------------------------------------------------------------
    async def run(self, opening: object) -> None:
        try:
            await await_if_needed(opening)
            failure = await self._iterate()
            subscriber, self._subscriber = self._subscriber, None
            if subscriber is not None:
                await await_if_needed(
                    subscriber.on_error(failure) if failure else subscriber.on_complete()
                )
        except Exception as error:  # raised by a signal; all others have been caught
            self._report(error)

    async def _iterate(self) -> Exception | None:
        """Iterate as long as there is demand; return the error that ends the iteration, if any."""
        await self._wait_for_demand()
        task = asyncio.current_task()
        assert task is not None
        try:
            if not self._is_ended:
                async with self._open_iteration() as iterator:
                    await self._pull_all(iterator, task)
        except asyncio.CancelledError:
            if not self._is_ended:
                raise  # of something else than this subscription
            task.uncancel()
        except Exception as error:
            return self._refused or error
        return self._refused

    async def _pull_all(self, iterator: AsyncIterator[T], task: asyncio.Task[None]) -> None:
        while not self._is_ended:
            self._pulling_task = task
            try:
                element = await anext(iterator)
            except StopAsyncIteration:
                return
            finally:
                self._pulling_task = None
            if not self._is_ended:
                self._demand -= 1
                await self._deliver(element)
                await self._wait_for_demand()

    async def _deliver(self, element: T) -> None:
        assert self._subscriber is not None
        try:
            await await_if_needed(self._subscriber.on_next(element))
        except Exception as error:
            self._report(error)

    def _report(self, error: Exception) -> None:
        self._subscriber = None
        report_subscriber_error(error)

    async def _wait_for_demand(self) -> None:
        """Wait for demand, or for the end of this subscription."""
        while not self._demand and not self._is_ended:
            self._has_news.clear()
            await self._has_news.wait()
