"""Memory object streams of anyio as publishers."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from .pulled import ANSWERED as PULLED, Pulled
from .shapes import need

__all__ = ("ANSWERED", "from_anyio_stream")

ANSWERED: Final = PULLED

Send = Callable[..., Awaitable[object]]


def from_anyio_stream(send: Send, *, max_buffer_size: float = 0) -> Callable[..., Pulled[Any]]:
    """A publisher of what ``await send(stream, *args)`` sends into a memory object stream.

    Translated: a subscription is one pair of streams and one task group, in which *send* has a task
    of its own, from the first demand on; each requested element is one ``receive()``. The end of
    the stream is on_complete, so it is found by demand only. A cancellation cancels the task group.
    A stream carries no error: what *send* raises comes out of the task group, in an
    ExceptionGroup, and that is on_error.

    Not translated: *send* runs ahead by *max_buffer_size* elements, and by one in its hand.
    """
    if not callable(send):
        raise TypeError(f"from_anyio_stream: send must be an async function, got {send!r:.60}")
    need("from_anyio_stream", "anyio", "anyio")

    def publisher(*args: Any) -> Pulled[Any]:
        return Pulled("from_anyio_stream", lambda: _received(send, args, max_buffer_size))

    return publisher


@asynccontextmanager
async def _received(
    send: Send, args: tuple[Any, ...], max_buffer_size: float
) -> AsyncGenerator[AsyncIterator[Any]]:
    anyio = need("from_anyio_stream", "anyio", "anyio")
    sending, receiving = anyio.create_memory_object_stream(max_buffer_size)

    async def run() -> None:
        async with sending:
            await send(sending, *args)

    async with receiving, anyio.create_task_group() as group:
        group.start_soon(run)
        yield receiving
        group.cancel_scope.cancel()
