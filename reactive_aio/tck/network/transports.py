"""Transports to a server: TCP, TLS, Unix sockets and WebSocket, with the standard library only.

A `Transport` sends and receives frames. It can also send bytes that are not frames.
"""

import asyncio
import base64
import hashlib
import os
import ssl
import struct
import sys
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

TRANSPORTS: Final = ("tcp", "tls", "unix", "ws", "wss")
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


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


async def open_transport(address: ServerAddress, tls: ssl.SSLContext | None = None) -> "Transport":
    """Connect; raises OSError, or EOFError if it is not a WebSocket server."""
    secure: ssl.SSLContext | None = None
    if address.transport in ("tls", "wss"):
        secure = tls or ssl.create_default_context()
    if address.transport == "unix":
        if sys.platform == "win32":
            raise OSError("asyncio has no Unix sockets on Windows: write tcp://host:port")
        reader, writer = await asyncio.open_unix_connection(address.path)
    else:
        reader, writer = await asyncio.open_connection(address.host, address.port, ssl=secure)
    if not address.is_websocket:
        return Transport(reader, writer)
    try:
        await _shake_hands(reader, writer, f"{address.host}:{address.port}", address.path)
    except BaseException:
        writer.close()
        raise
    return WebSocketTransport(reader, writer)


class Transport:
    """One connection that carries frames: each frame follows its length."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.close_code: str = ""
        """The code by which a WebSocket was closed; else empty."""

    async def send(self, frame: bytes) -> None:
        """Send one frame; wait while the server does not read."""
        await self.send_bytes(len(frame).to_bytes(3, "big") + frame)

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes without framing."""
        if self._writer.is_closing():
            raise ConnectionResetError("the server has closed the connection")
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self) -> bytes | None:
        """The next frame; None at the end."""
        try:
            return await self._receive()
        except (OSError, EOFError):
            return None

    async def _receive(self) -> bytes | None:
        length = int.from_bytes(await self._reader.readexactly(3), "big")
        return await self._reader.readexactly(length)

    def close(self) -> None:
        """Close at once."""
        self._writer.close()


class WebSocketTransport(Transport):
    """Each frame of RSocket is one binary message."""

    async def send(self, frame: bytes) -> None:
        await self.send_bytes(message(BINARY, frame))

    async def _receive(self) -> bytes | None:
        parts: list[bytes] = []
        while True:
            last, opcode, data = await self._message_frame()
            if opcode == CLOSE:
                self.close_code: str = str(int.from_bytes(data[:2], "big")) if data else "1005"
                self._writer.write(message(CLOSE, data[:2]))
                return None
            if opcode == PING:
                self._writer.write(message(PONG, data))
            elif opcode != PONG:
                # A text message becomes an invalid frame.
                parts.append(data if opcode != TEXT else b"")
                if last:
                    return b"".join(parts)

    async def _message_frame(self) -> tuple[bool, int, bytes]:
        one, two = await self._reader.readexactly(2)
        size = two & 0x7F
        if size > 125:
            size = int.from_bytes(await self._reader.readexactly(2 if size == 126 else 8), "big")
        return bool(one & 0x80), one & 0x0F, await self._reader.readexactly(size)


# -- WebSocket (RFC 6455) --------------------------------------------------------------------------
async def _shake_hands(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, path: str
) -> None:
    """Open a WebSocket; raises EOFError if the server refuses."""
    key = base64.b64encode(os.urandom(16))
    lines = (
        f"GET {path} HTTP/1.1",
        f"Host: {host}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key.decode()}",
        "Sec-WebSocket-Version: 13",
        "",
        "",
    )
    writer.write("\r\n".join(lines).encode())
    try:
        answer = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        raise EOFError(f"no WebSocket: the server sent {error.partial[:80]!r} and closed") from None
    status = answer.split(b"\r\n", 1)[0]
    accept = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
    if b" 101 " not in status + b" " or accept not in answer:
        raise EOFError(f"no WebSocket: the server sent {status.decode('latin-1')}")


def message(opcode: int, data: bytes, *, last: bool = True) -> bytes:
    """One frame of a message, masked as a client's must be."""
    size = len(data)
    first = bytes(((0x80 if last else 0) | opcode,))
    if size < 126:
        first += bytes((0x80 | size,))
    elif size < 65536:
        first += struct.pack(">BH", 0x80 | 126, size)
    else:
        first += struct.pack(">BQ", 0x80 | 127, size)
    # A mask of zeros is valid and costs nothing.
    return first + bytes(4) + data
