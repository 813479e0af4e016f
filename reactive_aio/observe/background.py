"""Work that accompanies the block of an asynchronous context manager."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
from anyio.abc import Listener, SocketStream, TaskGroup

from ..stage import LoopHandle

__all__ = ("in_background", "serve_connections")

_Answer = Callable[[SocketStream], Awaitable[None]]
_PAUSE: Final = 1.0
"""Seconds until the next attempt to accept a connection, as in the servers of asyncio."""


@asynccontextmanager
async def in_background(
    work: Callable[..., Coroutine[Any, Any, object]], *arguments: Any
) -> AsyncGenerator[None]:
    """Run *work* beside the block, and cancel it at the end of the block.

    An exception of the block is raised as it is; a task group would wrap it.
    """
    failure: Exception | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(work, *arguments)
            try:
                yield
            except Exception as error:
                failure = error
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure
    finally:
        failure = None  # it refers to this frame


async def serve_connections(
    listeners: "Iterable[Listener[SocketStream]]", answer: _Answer, what: str
) -> None:
    """Let *answer* serve each connection of *listeners*, until it is cancelled.

    An error of a connection, or of the system when it has no more file descriptors, is reported to
    the event loop: it must not end the program that is observed.
    """
    loop_handle = LoopHandle(what)

    async def accept(listener: Any, group: TaskGroup) -> None:
        while True:
            try:
                stream = await listener.accept()
            except (OSError, anyio.BrokenResourceError) as error:  # the latter for Unix sockets
                loop_handle.report(f"{what} cannot accept a connection", error.__cause__ or error)
                await anyio.sleep(_PAUSE)
            else:
                group.start_soon(serve, stream)

    async def serve(stream: SocketStream) -> None:
        try:
            await answer(stream)
        except Exception as error:
            loop_handle.report(f"a connection of {what} failed", error)

    async with anyio.create_task_group() as group:
        for each in listeners:
            group.start_soon(accept, each, group)
