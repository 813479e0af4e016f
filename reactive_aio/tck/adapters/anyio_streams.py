"""Memory object streams of anyio as publishers."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from .pull_publisher import PullPublisher
from .support import import_or_explain

Send = Callable[..., Awaitable[object]]


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
    import_or_explain("from_anyio_stream", "anyio", "anyio")

    def publisher(*args: Any) -> PullPublisher[Any]:
        return PullPublisher("from_anyio_stream", lambda: _received(send, args, max_buffer_size))

    return publisher


@asynccontextmanager
async def _received(
    send: Send, args: tuple[Any, ...], max_buffer_size: float
) -> AsyncGenerator[AsyncIterator[Any]]:
    anyio = import_or_explain("from_anyio_stream", "anyio", "anyio")
    sending, receiving = anyio.create_memory_object_stream(max_buffer_size)

    async def run() -> None:
        async with sending:
            await send(sending, *args)

    async with receiving, anyio.create_task_group() as group:
        group.start_soon(run)
        yield receiving
        group.cancel_scope.cancel()
