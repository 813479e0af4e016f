"""What the servers of the kit's tests are reached by: TCP and WebSocket, frame by frame."""

import asyncio

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from reactive_aio.tck.network import frames

__all__ = ("Bytes", "Messages")


class Bytes:
    """A TCP connection, frame by frame."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.half = False

    async def receive(self) -> bytes | None:
        try:
            length = int.from_bytes(await self.reader.readexactly(3), "big")
            self.half = True
            raw = await self.reader.readexactly(length)
            self.half = False
        except (OSError, asyncio.IncompleteReadError):
            return None
        return raw

    async def send(self, raw: bytes) -> None:
        if self.writer.is_closing():
            raise ConnectionResetError
        self.writer.write(len(raw).to_bytes(3, "big") + raw)
        await self.writer.drain()

    def close(self) -> None:
        self.writer.close()


class Messages:
    """A WebSocket."""

    half = False

    def __init__(self, connection: ServerConnection, flaws: frozenset[str]) -> None:
        self.connection = connection
        self.flaws = flaws
        self.pieces: list[str | bytes] = []

    async def receive(self) -> bytes | None:
        try:
            if "takes pieces of messages for frames" in self.flaws:
                while not self.pieces:
                    self.pieces = [each async for each in self.connection.recv_streaming()]
                piece = self.pieces.pop(0)
                return piece if isinstance(piece, bytes) else piece.encode()
            got = await self.connection.recv()
        except ConnectionClosed:
            return None
        if isinstance(got, str):
            if "takes text" not in self.flaws:
                await self.connection.close(1003)
                return None
            return frames.cancel(99)
        return got

    async def send(self, raw: bytes) -> None:
        await self.connection.send(raw)

    def close(self) -> None:
        self.connection.transport.close()
