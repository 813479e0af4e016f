"""Serving the connections of listening sockets, whatever becomes of one of them."""

from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, Final

import anyio
from anyio.abc import Listener, SocketStream, TaskGroup

from ..stage import LoopHandle

__all__ = ("Newcomers", "serve_connections")

_Answer = Callable[[SocketStream], Awaitable[None]]
_PAUSE: Final = 1.0
"""Seconds until the next attempt to accept a connection, as in the servers of asyncio."""


async def serve_connections(
    listeners: "Iterable[Listener[SocketStream]]", answer: _Answer, what: str
) -> None:
    """Let *answer* serve each connection of *listeners*, until it is cancelled.

    An error of a connection, or of the system when it has no more file descriptors, is reported to
    the event loop: it must not end the program.
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


class Newcomers:
    """Connections that have not said yet what they want: at most *most*, for *seconds* each.

    For one more, the one that has waited longest leaves: whoever opens many is in nobody's way.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._waiting: dict[anyio.CancelScope, None] = {}
        """The scopes of those that are there, the oldest first."""

    @contextmanager
    def wait(self) -> Generator[None]:
        """Let a connection say what it wants inside the block, which is left when it has to go."""
        with anyio.move_on_after(self._seconds) as scope:
            if len(self._waiting) >= self._most:
                oldest = next(iter(self._waiting))
                del self._waiting[oldest]
                oldest.cancel()
            self._waiting[scope] = None
            try:
                yield
            finally:
                self._waiting.pop(scope, None)
