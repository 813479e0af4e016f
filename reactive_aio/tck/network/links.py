"""Ways to a server: TCP, TLS, Unix sockets and WebSocket, by the standard library alone.

A `Link` takes frames and gives frames. It can also send bytes that are no frames.
"""

import asyncio
import ssl
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

from .websocket import WebSocketLink, shake_hands

__all__ = ("Link", "Place", "dial")

TRANSPORTS: Final = ("tcp", "tls", "unix", "ws", "wss")
ENDS: Final = (OSError, EOFError, asyncio.IncompleteReadError)


class Link(Protocol):
    """One connection, on which frames stand apart."""

    async def send(self, frame: bytes) -> None:
        """Send one frame; waits while the other end does not read."""
        ...

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        ...

    async def receive(self) -> bytes | None:
        """The next frame; None at the end."""
        ...

    def close(self) -> None:
        """Leave at once."""
        ...

    @property
    def ended(self) -> str:
        """How it ended, if that can be said: a WebSocket's code."""
        ...


@dataclass(frozen=True)
class Place:
    """Where a server is."""

    transport: str
    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def parse(cls, uri: str) -> "Place":
        """Read *uri*; raise ValueError that says what is wrong with it."""
        parts = urlsplit(uri)
        transport = parts.scheme.removeprefix("rsocket+")
        if transport not in TRANSPORTS:
            known = ", ".join(f"{each}://" for each in TRANSPORTS)
            raise ValueError(f"{uri!r} is no address: write one of {known}")
        if transport == "unix":
            if parts.netloc or not parts.path:
                raise ValueError(f"{uri!r}: write unix:///path/of/the/socket")
            return cls(transport, path=unquote(parts.path))
        standard = {"ws": 80, "wss": 443}.get(transport)
        port = parts.port or standard
        if not parts.hostname or port is None:
            raise ValueError(f"{uri!r}: write {transport}://host:port")
        path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
        return cls(transport, parts.hostname, port, path)

    @property
    def is_websocket(self) -> bool:
        return self.transport in ("ws", "wss")


async def dial(place: Place, trusted: ssl.SSLContext | None = None) -> Link:
    """Connect; raises OSError, or EOFError if there is no such server."""
    secure: ssl.SSLContext | None = None
    if place.transport in ("tls", "wss"):
        secure = trusted or ssl.create_default_context()
    if place.transport == "unix":
        reader, writer = await asyncio.open_unix_connection(place.path)
    else:
        reader, writer = await asyncio.open_connection(place.host, place.port, ssl=secure)
    if not place.is_websocket:
        return ByteLink(reader, writer)
    try:
        await shake_hands(reader, writer, f"{place.host}:{place.port}", place.path)
    except BaseException:
        writer.close()
        raise
    return WebSocketLink(reader, writer)


class ByteLink:
    """A stream of bytes: each frame stands behind its length."""

    ended = ""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, frame: bytes) -> None:
        await self.send_bytes(len(frame).to_bytes(3, "big") + frame)

    async def send_bytes(self, data: bytes) -> None:
        if self._writer.is_closing():
            raise ConnectionResetError("the other end has closed the connection")
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self) -> bytes | None:
        try:
            length = int.from_bytes(await self._reader.readexactly(3), "big")
            return await self._reader.readexactly(length)
        except ENDS:
            return None

    def close(self) -> None:
        self._writer.close()
