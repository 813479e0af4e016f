"""The part of WebSocket (RFC 6455) that a client needs to send frames, valid or not."""

import asyncio
import base64
import hashlib
import os
import struct
from typing import Final

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_END_ERRORS: Final = (OSError, EOFError, asyncio.IncompleteReadError)


async def shake_hands(
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


class WebSocketTransport:
    """Each frame of RSocket is one binary message."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.close_code: str = ""

    async def send(self, frame: bytes) -> None:
        await self.send_bytes(message(BINARY, frame))

    async def send_bytes(self, data: bytes) -> None:
        if self._writer.is_closing():
            raise ConnectionResetError("the server has closed the connection")
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self) -> bytes | None:
        parts: list[bytes] = []
        try:
            while True:
                last, opcode, data = await self._frame()
                if opcode == CLOSE:
                    self.close_code = str(int.from_bytes(data[:2], "big")) if data else "1005"
                    self._writer.write(message(CLOSE, data[:2]))
                    return None
                if opcode == PING:
                    self._writer.write(message(PONG, data))
                elif opcode != PONG:
                    # A text message becomes an invalid frame.
                    parts.append(data if opcode != TEXT else b"")
                    if last:
                        return b"".join(parts)
        except _END_ERRORS:
            return None

    async def _frame(self) -> tuple[bool, int, bytes]:
        one, two = await self._reader.readexactly(2)
        size = two & 0x7F
        if size == 126:
            size = int.from_bytes(await self._reader.readexactly(2), "big")
        elif size == 127:
            size = int.from_bytes(await self._reader.readexactly(8), "big")
        return bool(one & 0x80), one & 0x0F, await self._reader.readexactly(size)

    def close(self) -> None:
        self._writer.close()
