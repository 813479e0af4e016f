"""Asynchronous iterables, generators among them, as publishers."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, ParamSpec, TypeVar

from .pull_publisher import KEPT_BY_ADAPTER as PULL_RULES, PullPublisher
from .support import checked_factory

P = ParamSpec("P")
T = TypeVar("T")

KEPT_BY_ADAPTER: Final = PULL_RULES


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
    made = checked_factory("from_async_iterable", make, "__aiter__", "an asynchronous iterable")

    def publisher(*args: P.args, **kwargs: P.kwargs) -> PullPublisher[T]:
        iterable = made(*args, **kwargs)
        return PullPublisher("from_async_iterable", lambda: _iteration(iterable))

    return publisher


@asynccontextmanager
async def _iteration(iterable: AsyncIterable[T]) -> AsyncGenerator[AsyncIterator[T]]:
    iterator: Any = aiter(iterable)
    try:
        yield iterator
    finally:
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()
