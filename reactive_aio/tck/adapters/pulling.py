"""Publishers that pull: asynchronous iterables, and the streams of aiostream and anyio.

A publisher calls ``anext()`` once for each requested element. An iterator has no signals. So the
publisher implements the rules about demand, cancellation and the order of signals itself, and
correctly: any violation is the iterator's.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from threading import get_ident
from typing import Any, Final, Generic, ParamSpec, TypeVar

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

Send = Callable[..., Awaitable[object]]
OpenIteration = Callable[[], AbstractAsyncContextManager[AsyncIterator[T]]]
"""Starts an iteration; exiting the context ends it."""

_SIGNALS: Final = ("1.1", "1.3", "1.6", "1.7", "1.8", "1.9", "2.12", "2.13")
_REQUESTS: Final = ("2.7", "3.1", "3.2", "3.3", "3.8", "3.9", "3.10", "3.11", "3.16", "3.17")
_CANCELS: Final = ("3.6", "3.7", "3.12", "3.13", "3.15")
_LIBRARY: Final = ("L.2", "L.4", "L.8", "L.9")
KEPT_BY_PULLING: Final = frozenset((*_SIGNALS, *_REQUESTS, *_CANCELS, *_LIBRARY))
"""The rules that this publisher keeps for any iterator."""


@dataclass(frozen=True, eq=False)
class PullPublisher(Generic[T]):
    """Each subscription starts an iteration in its own task, at its first demand."""

    adapter: str
    open_iteration: OpenIteration[T]

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        subscription = _PullSubscription(self.open_iteration, subscriber)
        is_open, opening = send_on_subscribe(self.adapter, subscriber, subscription)
        if is_open:
            start_task(subscription.run(opening))


class _PullSubscription(Generic[T]):
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


# -- asynchronous iterables ------------------------------------------------------------------------
def from_async_iterable(make: Callable[P, AsyncIterable[T]]) -> Callable[P, PullPublisher[T]]:
    """A publisher of the asynchronous iterable that *make* returns.

    Translated: a subscription is one iteration, ``aiter(made)``, begun at the first demand; each
    requested element is one ``anext()``. The end of the iteration becomes on_complete, so it takes
    demand to find it. An exception becomes on_error. A cancellation cancels the current ``anext()``
    and awaits ``aclose()``, if there is one, as ``contextlib.aclosing`` does.

    Not translated: as with `async for`, a generator *object* can be iterated only once; an object
    whose ``__aiter__`` is a generator function starts again for each subscription. The loop has no
    turn between two calls of ``anext()`` that do not wait.
    """

    def publish(iterable: AsyncIterable[T]) -> PullPublisher[T]:
        return PullPublisher("from_async_iterable", lambda: _iteration(iterable))

    kind = "an asynchronous iterable"
    return published("from_async_iterable", make, "__aiter__", kind, publish)


@asynccontextmanager
async def _iteration(iterable: AsyncIterable[T]) -> AsyncGenerator[AsyncIterator[T]]:
    iterator: Any = aiter(iterable)
    try:
        yield iterator
    finally:
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()


# -- aiostream -------------------------------------------------------------------------------------
def from_aiostream(make: Callable[P, Any]) -> Callable[P, PullPublisher[Any]]:
    """A publisher of the aiostream stream that *make* returns, or any object with its ``stream()``.

    Translated: a subscription enters ``made.stream()`` at the first demand; each requested element
    is one ``anext()``. The end of the iteration becomes on_complete, so it takes demand to find it.
    An exception becomes on_error. A cancellation cancels the current ``anext()`` and exits the
    context, which closes the operators.

    Not translated: the prefetching of an aiostream operator.
    """

    def publish(made: Any) -> PullPublisher[Any]:
        return PullPublisher("from_aiostream", made.stream)

    return published("from_aiostream", make, "stream", "a stream of aiostream", publish)


# -- anyio -----------------------------------------------------------------------------------------
def from_anyio_stream(
    send: Send, *, max_buffer_size: float = 0
) -> Callable[..., PullPublisher[Any]]:
    """A publisher of what ``await send(stream, *args)`` sends into a memory object stream.

    Translated: at its first demand a subscription opens a pair of streams and a task group in which
    *send* runs; each requested element is one ``receive()``. The end of the stream becomes
    on_complete, so it takes demand to find it. A cancellation cancels the task group. A stream does
    not carry errors: what *send* raises comes out of the task group, in an ExceptionGroup that
    becomes on_error.

    Not translated: *send* runs ahead by *max_buffer_size* elements, and by the one it is sending.
    """
    if not callable(send):
        raise TypeError(f"from_anyio_stream: send must be an async function, got {send!r:.60}")
    _anyio()

    def publisher(*args: Any) -> PullPublisher[Any]:
        return PullPublisher("from_anyio_stream", lambda: _received(send, args, max_buffer_size))

    return publisher


@asynccontextmanager
async def _received(
    send: Send, args: tuple[Any, ...], max_buffer_size: float
) -> AsyncGenerator[AsyncIterator[Any]]:
    anyio = _anyio()
    sending, receiving = anyio.create_memory_object_stream(max_buffer_size)

    async def run() -> None:
        async with sending:
            await send(sending, *args)

    async with receiving, anyio.create_task_group() as group:
        group.start_soon(run)
        yield receiving
        group.cancel_scope.cancel()


def _anyio() -> Any:
    try:
        return import_module("anyio")
    except ModuleNotFoundError as error:
        if error.name != "anyio":
            raise  # a dependency of the package is missing
        raise ModuleNotFoundError(
            "from_anyio_stream needs the package anyio, which is not installed: pip install anyio",
            name="anyio",
        ) from None
