"""Asynchronous iterables, generators among them, as publishers."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, TypeVar

from .pull_publisher import PullPublisher
from .support import published

P = ParamSpec("P")
T = TypeVar("T")


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
