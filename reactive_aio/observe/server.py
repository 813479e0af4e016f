"""A Unix socket at which a running process shows its report: for ``python -m reactive_aio top``."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
import anyio.to_thread
from anyio.abc import SocketStream

from .._shared.connections import serve_connections
from .._shared.unix_sockets import remove_unused_socket
from .background import in_background
from .reports import report

__all__ = ("serve",)

_SECONDS_FOR_READING: Final = 15


@asynccontextmanager
async def serve(path: "str | os.PathLike[str]") -> AsyncGenerator[None]:
    """Show reports of this process at the Unix socket *path*, inside the ``async with`` block.

    A client that may connect sees names of flows and operators, and no elements. The socket is for
    the user of the process alone (mode 0600), and is removed at the end. A socket that a process
    left there which has ended is replaced; any other file is not.
    """
    if sys.platform == "win32":
        raise NotImplementedError(
            "observe.serve: asyncio has no Unix sockets on Windows; observe.inspector() has a port"
        )
    name = os.fspath(path)
    await anyio.to_thread.run_sync(remove_unused_socket, "observe.serve", name)
    listener = await anyio.create_unix_listener(name, mode=0o600)
    try:
        serving = in_background(serve_connections, [listener], _answer, "observe.serve()")
        async with listener, serving:
            yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


async def _answer(stream: SocketStream) -> None:
    """Send one report to each client, which has to read it in time, and close."""
    async with stream:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            with anyio.move_on_after(_SECONDS_FOR_READING):
                await stream.send(report().encode())
