"""The limit: frames of 32 bytes behind their length over asyncio, written in batches by hand.

No streams, no demand, no states: a stream is pushed for as long as the kernel takes it.
"""

import asyncio
import sys
from collections import deque
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

from .command import AT_ONCE, CREDIT, PAYLOAD, Work, at_once, main

if TYPE_CHECKING:
    from collections.abc import Iterator

FRAME = PAYLOAD + b"..."  # with its length, 32 bytes
HEAD = len(FRAME).to_bytes(3, "big")
ECHO, STREAM = 0, 1


class Frames(asyncio.Protocol):
    """Takes frames out of what comes."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.rest:
            data = self.rest + data
        at, end = 0, len(data)
        frames: list[bytes] = []
        while at + 3 <= end:
            stop = at + 3 + int.from_bytes(data[at : at + 3], "big")
            if stop > end:
                break
            frames.append(data[at + 3 : stop])
            at = stop
        self.rest = data[at:]
        self.take(frames)

    def take(self, frames: list[bytes]) -> None:
        """Do something with *frames*: each end has its own way."""
        raise NotImplementedError

    def send(self, frames: list[bytes]) -> None:
        self.transport.write(b"".join([HEAD + frame for frame in frames]))


class Server(Frames):
    def __init__(self) -> None:
        super().__init__()
        self.source: Iterator[bytes] = iter(())
        self.paused = False

    def take(self, frames: list[bytes]) -> None:
        if frames and frames[0].startswith(b"stream"):
            self.source = repeat(FRAME, int(frames[0][6:]))
            self.push()
        else:
            self.send(frames)

    def push(self) -> None:
        while not self.paused and (frames := list(islice(self.source, CREDIT))):
            self.send(frames)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self.push()


class Client(Frames):
    def __init__(self) -> None:
        super().__init__()
        self.done: asyncio.Future[None] | None = None
        self.came = self.to_come = self.to_ask = 0
        self.waiting: deque[asyncio.Future[bytes]] = deque()
        self.asked: list[bytes] = []

    async def stream(self, count: int) -> int:
        self.came, self.to_come, self.to_ask = 0, count, 0
        return await self.ask([b"stream%23d" % count])

    async def awaited(self, count: int, most: int) -> int:
        """The same, but every answer is awaited by who asked."""
        loop = asyncio.get_running_loop()

        def flush() -> None:
            asked, self.asked = self.asked, []
            self.send(asked)

        async def ask() -> bytes:
            answer: asyncio.Future[bytes] = loop.create_future()
            self.waiting.append(answer)
            if not self.asked:
                loop.call_soon(flush)
            self.asked.append(FRAME)
            return await answer

        return await at_once(count, ask, most)

    async def at_once(self, count: int, most: int) -> int:
        self.came, self.to_come, self.to_ask = 0, count, count - most
        return await self.ask([FRAME] * most)

    async def ask(self, frames: list[bytes]) -> int:
        self.done = asyncio.get_running_loop().create_future()
        self.send(frames)
        await self.done
        return self.came

    def take(self, frames: list[bytes]) -> None:
        if self.waiting:
            for frame in frames:
                self.waiting.popleft().set_result(frame)
            return
        self.came += len(frames)
        if self.to_ask:
            again = min(self.to_ask, len(frames))
            self.to_ask -= again
            self.send(frames[:again])
        if self.came >= self.to_come and self.done is not None:
            self.done.set_result(None)


class WriteEach(Server):
    """What it costs not to batch."""

    def send(self, frames: list[bytes]) -> None:
        for frame in frames:
            self.transport.write(HEAD + frame)


class Raw:
    def __init__(self, server: type[Server]) -> None:
        self._server = server

    async def serve(self) -> int:
        loop = asyncio.get_running_loop()
        self.listener = await loop.create_server(self._server, "127.0.0.1", 0)
        return int(self.listener.sockets[0].getsockname()[1])

    async def connect(self, port: int) -> dict[str, Work]:
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(Client, "127.0.0.1", port)
        return {
            "stream": client.stream,
            "many": lambda count: client.at_once(count, AT_ONCE),
            "one": lambda count: client.at_once(count, 1),
            "many-awaited": lambda count: client.awaited(count, AT_ONCE),
            "one-awaited": lambda count: client.awaited(count, 1),
        }


if __name__ == "__main__":
    each = "--each" in sys.argv
    if each:
        sys.argv.remove("--each")
    main(Raw(WriteEach if each else Server))
