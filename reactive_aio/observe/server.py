"""A Unix socket at which a running process shows its report: for ``python -m reactive_aio top``."""

import os
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
import anyio.to_thread
from anyio.abc import SocketStream

from .._shared.connections import serve_connections
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
    await anyio.to_thread.run_sync(_remove_unused, name)
    listener = await anyio.create_unix_listener(name, mode=0o600)
    try:
        serving = in_background(serve_connections, [listener], _answer, "observe.serve()")
        async with listener, serving:
            yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def _remove_unused(name: str) -> None:
    """Remove the socket of a process that has ended; raise FileExistsError for anything else."""
    import socket

    try:
        is_socket = stat.S_ISSOCK(os.lstat(name).st_mode)
    except FileNotFoundError:
        return
    if sys.platform != "win32" and is_socket:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(name)
            except ConnectionRefusedError:
                os.unlink(name)
                return
    what = "another process serves there" if is_socket else "it is not a socket"
    raise FileExistsError(f"observe.serve: {name!r} exists, and {what}; give another path")


async def _answer(stream: SocketStream) -> None:
    """Send one report to each client, which has to read it in time, and close."""
    async with stream:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            with anyio.move_on_after(_SECONDS_FOR_READING):
                await stream.send(report().encode())
