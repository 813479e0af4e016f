"""A server of a page: HTTP/1.1, GET, one request for each connection.

It runs one ASGI app in the event loop of the program that is looked at, without another package,
signal handler or timer. It is not meant for anything that strangers may reach: an app that is
mounted in a server of its own has TLS, keep-alive and the rest.
"""

import errno
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from .._shared.connections import Newcomers, serve_connections
from .background import in_background

if TYPE_CHECKING:
    from ..asgi.http import Receive, Scope, Send

__all__ = ("serve_page",)

_App = Callable[["Scope", "Receive", "Send"], Awaitable[None]]

_LONGEST_HEAD: Final = 16 * 1024
_SECONDS_FOR_HEAD: Final = 10
_SECONDS_FOR_READING: Final = 15
_MOST_CONNECTIONS: Final = 32
_LOST: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


@asynccontextmanager
async def serve_page(app: _App, host: str, port: int) -> AsyncGenerator[int]:
    """Serve *app* inside the block; the port is that which it listens at."""
    try:
        listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE or "address already in use" in str(error).lower():
            raise OSError(
                errno.EADDRINUSE,
                f"observe.inspector: port {port} of {host} is in use; port=0 chooses a free one",
            ) from error
        raise
    newcomers = Newcomers(_MOST_CONNECTIONS, _SECONDS_FOR_HEAD)
    pages = anyio.CapacityLimiter(_MOST_CONNECTIONS)
    taken: int = listener.extra(SocketAttribute.local_port)

    async def answer(stream: SocketStream) -> None:
        async with stream:
            with suppress(*_LOST):
                head = None
                with newcomers.wait():
                    head = await _head(stream)
                if head is not None:
                    await _answer(app, stream, head, pages)

    serving = in_background(serve_connections, listener.listeners, answer, "observe.inspector()")
    async with listener, serving:
        yield taken


async def _answer(
    app: _App, stream: SocketStream, head: bytes, pages: anyio.CapacityLimiter
) -> None:
    response = _Response(stream)
    try:
        pages.acquire_on_behalf_of_nowait(stream)
    except anyio.WouldBlock:
        await response.refuse(503, "too many pages are open")
        return
    try:
        scope = await _scope(stream, head, response)
        if scope is not None:
            await app(scope, _Request(stream).receive, response.send)
    finally:
        pages.release_on_behalf_of(stream)


# -- the request -----------------------------------------------------------------------------------
async def _head(stream: SocketStream) -> bytes | None:
    """The head of the request; None if the client has left or sends none."""
    try:
        return await BufferedByteReceiveStream(stream).receive_until(b"\r\n\r\n", _LONGEST_HEAD)
    except anyio.IncompleteRead:
        return None
    except anyio.DelimiterNotFound:
        await _Response(stream).refuse(431, "the head of the request is too long")
        return None


async def _scope(stream: SocketStream, head: bytes, response: "_Response") -> "Scope | None":
    """The scope of the request; None if it has been refused."""
    first, *lines = head.split(b"\r\n")
    words = first.split(b" ")
    fields = [line.partition(b":") for line in lines]
    if len(words) != 3 or not words[2].startswith(b"HTTP/1.") or not all(f[1] for f in fields):
        await response.refuse(400, "this is not a request of HTTP/1.1")
        return None
    path, _, query = words[1].partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": words[0].decode("latin-1"),
        "scheme": "http",
        "path": unquote(path.decode("latin-1")),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name.strip().lower(), value.strip()) for name, _, value in fields],
        "client": stream.extra(SocketAttribute.remote_address, None),
        "server": stream.extra(SocketAttribute.local_address, None),
    }


class _Request:
    """The messages of a request without a body, and the end of the connection."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._is_read = False

    async def receive(self) -> dict[str, Any]:
        if not self._is_read:
            self._is_read = True
            return {"type": "http.request", "body": b"", "more_body": False}
        with suppress(anyio.EndOfStream, *_LOST):
            while True:
                await self._stream.receive()  # a body, which nothing reads
        return {"type": "http.disconnect"}


# -- the response ----------------------------------------------------------------------------------
class _Response:
    """Writes a response that ends with the connection."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream

    async def send(self, message: Any) -> None:
        """Write a message of ASGI."""
        try:
            if message["type"] == "http.response.start":
                await self._start(message["status"], message["headers"])
            elif body := message.get("body", b""):
                await self._write(body)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise OSError("the client has disconnected") from error

    async def refuse(self, status: int, why: str) -> None:
        """Answer a request that no app sees."""
        await self._start(status, [(b"content-type", b"text/plain; charset=utf-8")])
        await self._write(f"{why}\n".encode())

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        lines = [f"HTTP/1.1 {status} ".encode(), *(b"%b: %b" % each for each in headers)]
        await self._write(b"\r\n".join([*lines, b"connection: close", b"", b""]))

    async def _write(self, data: bytes) -> None:
        """Write *data*, which the client has to read in time: TimeoutError is one of `_LOST`."""
        with anyio.fail_after(_SECONDS_FOR_READING):
            await self._stream.send(data)
