"""The part of WebSocket (RFC 6455) that a client needs to send frames, valid or not."""

import asyncio
import base64
import hashlib
import os
import struct
from typing import Final

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


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
