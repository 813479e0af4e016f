"""A WebSocket server that stops reading, as a frozen process does: its connections stay open."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from websockets.asyncio.server import ServerConnection, serve

MORE_THAN_BUFFERS: Final = "x" * 2**24
"""A message that does not fit into all buffers between a client and a server that does not read."""


@asynccontextmanager
async def unread(
    greet: Callable[[ServerConnection], Awaitable[object]],
) -> AsyncGenerator[str]:
    """The URL of a server that calls *greet* for each client, which may call `stop_reading`."""
    is_over = asyncio.Event()

    async def handle(connection: ServerConnection) -> None:
        await greet(connection)
        await is_over.wait()
        connection.transport.abort()

    async with serve(
        handle,
        "127.0.0.1",
        0,
        max_size=None,
        ping_interval=None,
        select_subprotocol=lambda _, offered: offered[0] if offered else None,
    ) as opened:
        try:
            yield f"ws://127.0.0.1:{next(iter(opened.sockets)).getsockname()[1]}/"
        finally:
            is_over.set()


def stop_reading(connection: ServerConnection) -> None:
    """Read nothing more from now on."""
    connection.transport.pause_reading()
