"""Transports to a server: TCP, TLS, Unix sockets and WebSocket, with the standard library only.

A `Transport` sends and receives frames. It can also send bytes that are not frames.
"""

import asyncio
import ssl
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

from .websocket import WebSocketTransport, shake_hands

TRANSPORTS: Final = ("tcp", "tls", "unix", "ws", "wss")
END_ERRORS: Final = (OSError, EOFError, asyncio.IncompleteReadError)


class Transport(Protocol):
    """One connection that carries frames."""

    async def send(self, frame: bytes) -> None:
        """Send one frame; wait while the server does not read."""
        ...

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes without framing."""
        ...

    async def receive(self) -> bytes | None:
        """The next frame; None at the end."""
        ...

    def close(self) -> None:
        """Close at once."""
        ...

    @property
    def close_code(self) -> str:
        """The code by which a WebSocket was closed; else empty."""
        ...


@dataclass(frozen=True)
class ServerAddress:
    """The address of a server."""

    transport: str
    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def parse(cls, uri: str) -> "ServerAddress":
        """The address in *uri*; raises ValueError with the expected form."""
        parts = urlsplit(uri)
        transport = parts.scheme.removeprefix("rsocket+")
        if transport not in TRANSPORTS:
            known = ", ".join(f"{each}://" for each in TRANSPORTS)
            raise ValueError(f"{uri!r} is not an address: write one of {known}")
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


async def open_transport(address: ServerAddress, tls: ssl.SSLContext | None = None) -> Transport:
    """Connect; raises OSError, or EOFError if it is not a WebSocket server."""
    secure: ssl.SSLContext | None = None
    if address.transport in ("tls", "wss"):
        secure = tls or ssl.create_default_context()
    if address.transport == "unix":
        reader, writer = await asyncio.open_unix_connection(address.path)
    else:
        reader, writer = await asyncio.open_connection(address.host, address.port, ssl=secure)
    if not address.is_websocket:
        return StreamTransport(reader, writer)
    try:
        await shake_hands(reader, writer, f"{address.host}:{address.port}", address.path)
    except BaseException:
        writer.close()
        raise
    return WebSocketTransport(reader, writer)


class StreamTransport:
    """A stream of bytes: each frame follows its length."""

    close_code = ""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, frame: bytes) -> None:
        await self.send_bytes(len(frame).to_bytes(3, "big") + frame)

    async def send_bytes(self, data: bytes) -> None:
        if self._writer.is_closing():
            raise ConnectionResetError("the server has closed the connection")
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self) -> bytes | None:
        try:
            length = int.from_bytes(await self._reader.readexactly(3), "big")
            return await self._reader.readexactly(length)
        except END_ERRORS:
            return None

    def close(self) -> None:
        self._writer.close()
