"""Asynchronous iterables, generators among them, as publishers."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, ParamSpec, TypeVar

from .pulled import ANSWERED as PULLED, Pulled
from .shapes import shaped

__all__ = ("ANSWERED", "from_async_iterable")

P = ParamSpec("P")
T = TypeVar("T")

ANSWERED: Final = PULLED


def from_async_iterable(make: Callable[P, AsyncIterable[T]]) -> Callable[P, Pulled[T]]:
    """A publisher of what *make* returns: an asynchronous iterable.

    Translated: a subscription is one iteration, ``aiter(made)``, from the first demand on; each
    requested element is one ``anext()``. The end of the iteration is on_complete, so it is found
    by demand only. What it raises is on_error. A cancellation cancels the pull that is under way,
    and awaits ``aclose()``, if there is one, as ``contextlib.aclosing`` does.

    Not translated: nothing makes one iterator serve two subscriptions, as with `async for`. A
    generator *object* can be iterated once; a class whose ``__aiter__`` is a generator function
    begins anew. Nothing gives the loop a turn between two pulls that do not wait.
    """
    made = shaped("from_async_iterable", make, "__aiter__", "an asynchronous iterable")

    def publisher(*args: P.args, **kwargs: P.kwargs) -> Pulled[T]:
        iterable = made(*args, **kwargs)
        return Pulled("from_async_iterable", lambda: _iteration(iterable))

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
