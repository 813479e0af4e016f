"""The transports of the flawed server: TCP and WebSocket, frame by frame."""

import asyncio

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from reactive_aio.tck.network import frames

__all__ = ("TcpTransport", "WebSocketTransport")


class TcpTransport:
    """A TCP connection, frame by frame."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.is_in_frame = False

    async def receive(self) -> bytes | None:
        try:
            length = int.from_bytes(await self.reader.readexactly(3), "big")
            self.is_in_frame = True
            raw = await self.reader.readexactly(length)
            self.is_in_frame = False
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


class WebSocketTransport:
    """A WebSocket connection, frame by frame."""

    is_in_frame = False

    def __init__(self, connection: ServerConnection, flaws: frozenset[str]) -> None:
        self.connection = connection
        self.flaws = flaws
        self.fragments: list[str | bytes] = []

    async def receive(self) -> bytes | None:
        try:
            if "reads message fragments as frames" in self.flaws:
                while not self.fragments:
                    self.fragments = [each async for each in self.connection.recv_streaming()]
                fragment = self.fragments.pop(0)
                return fragment if isinstance(fragment, bytes) else fragment.encode()
            got = await self.connection.recv()
        except ConnectionClosed:
            return None
        if isinstance(got, str):
            if "accepts text" not in self.flaws:
                await self.connection.close(1003)
                return None
            return frames.cancel(99)
        return got

    async def send(self, raw: bytes) -> None:
        await self.connection.send(raw)

    def close(self) -> None:
        self.connection.transport.close()
