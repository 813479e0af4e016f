"""The limit: length-prefixed frames of 32 bytes over asyncio, written in batches.

There are no streams, no demand and no states: a stream is pushed as long as the kernel accepts it.
With ``--buffer``, both ends read into a buffer of their own, while asyncio otherwise allocates
256 KiB for each read. With ``--credit``, a client sends a frame for every 192 elements received,
and the server pushes no more than 256 ahead: what demand on the wire costs in hand-written code.
"""

import asyncio
import sys
from abc import ABC, abstractmethod
from collections import deque
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, ClassVar

from .command import CREDIT, IN_FLIGHT, PAYLOAD, REFILL, Work, concurrently, main

if TYPE_CHECKING:
    from collections.abc import Iterator

FRAME = PAYLOAD + b"..."  # with its length, 32 bytes
HEAD = len(FRAME).to_bytes(3, "big")
MORE = b"more".ljust(len(FRAME))  # all frames have one length


class Frames(asyncio.Protocol, ABC):
    """Splits received data into frames."""

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
        self.process(frames)

    @abstractmethod
    def process(self, frames: list[bytes]) -> None:
        """Process *frames*."""

    def send(self, frames: list[bytes]) -> None:
        self.transport.write(b"".join([HEAD + frame for frame in frames]))


class Server(Frames):
    connections: ClassVar[set["Server"]] = set()

    def __init__(self) -> None:
        super().__init__()
        self.source: Iterator[bytes] = iter(())
        self.paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections.discard(self)

    def process(self, frames: list[bytes]) -> None:
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
        self.received = self.expected = self.unsent = 0
        self.waiting: deque[asyncio.Future[bytes]] = deque()
        self.requests: list[bytes] = []

    async def stream(self, count: int) -> int:
        self.received, self.expected, self.unsent = 0, count, 0
        return await self.exchange([b"stream%23d" % count])

    async def awaited(self, count: int, limit: int) -> int:
        """Send requests whose callers await each response."""
        loop = asyncio.get_running_loop()

        def flush() -> None:
            requests, self.requests = self.requests, []
            self.send(requests)

        async def request() -> bytes:
            answer: asyncio.Future[bytes] = loop.create_future()
            self.waiting.append(answer)
            if not self.requests:
                loop.call_soon(flush)
            self.requests.append(FRAME)
            return await answer

        return await concurrently(count, request, limit)

    async def batched(self, count: int, limit: int) -> int:
        self.received, self.expected, self.unsent = 0, count, count - limit
        return await self.exchange([FRAME] * limit)

    async def exchange(self, frames: list[bytes]) -> int:
        self.done = asyncio.get_running_loop().create_future()
        self.send(frames)
        await self.done
        return self.received

    def process(self, frames: list[bytes]) -> None:
        if self.waiting:
            for frame in frames:
                self.waiting.popleft().set_result(frame)
            return
        self.received += len(frames)
        if self.unsent:
            count = min(self.unsent, len(frames))
            self.unsent -= count
            self.send(frames[:count])
        if self.received >= self.expected and self.done is not None:
            self.done.set_result(None)


class LentServer(Server):
    """A server that pushes what was requested."""

    def process(self, frames: list[bytes]) -> None:
        for frame in frames:
            if frame.startswith(b"stream"):
                self.source = repeat(FRAME, int(frame[6:]))
            if pushed := list(islice(self.source, REFILL if frame == MORE else CREDIT)):
                self.send(pushed)


class LentClient(Client):
    """A client that requests 192 elements whenever it has received as many."""

    refill = REFILL

    def process(self, frames: list[bytes]) -> None:
        self.refill -= len(frames)
        while self.refill <= 0:
            self.refill += REFILL
            self.send([MORE])
        super().process(frames)


class WriteEach(Server):
    """A server that writes each frame separately."""

    def send(self, frames: list[bytes]) -> None:
        for frame in frames:
            self.transport.write(HEAD + frame)


class IntoBuffer(asyncio.BufferedProtocol):
    """Reads into a buffer; to be mixed into a protocol."""

    buffer = memoryview(bytearray(64 * 1024))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self.buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        raise NotImplementedError("the protocol that it is mixed into defines it")


class BufferServer(Server, IntoBuffer):
    """A server that reads into a buffer."""


class BufferClient(Client, IntoBuffer):
    """A client that reads into a buffer."""


class Raw:
    def __init__(self, server: type[Server], client: type[Client] = Client) -> None:
        self._server = server
        self._client = client

    async def serve(self) -> int:
        loop = asyncio.get_running_loop()
        self.listener = await loop.create_server(self._server, "127.0.0.1", 0, backlog=1024)
        return int(self.listener.sockets[0].getsockname()[1])

    async def connect(self, port: int) -> dict[str, Work]:
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(self._client, "127.0.0.1", port)
        return {
            "stream": client.stream,
            "many": lambda count: client.batched(count, IN_FLIGHT),
            "one": lambda count: client.batched(count, 1),
            "many-awaited": lambda count: client.awaited(count, IN_FLIGHT),
            "one-awaited": lambda count: client.awaited(count, 1),
        }

    def commands(self) -> dict[str, Work]:
        return {"fan": self.fan}

    async def fan(self, count: int) -> int:
        """Write *count* frames to each connection, whether its client reads them or not."""
        for _ in range(count):
            for connection in [*self._server.connections]:
                connection.send([FRAME])
            await asyncio.sleep(0)
        return count


if __name__ == "__main__":
    variants = {
        "--each": Raw(WriteEach),
        "--buffer": Raw(BufferServer, BufferClient),
        "--credit": Raw(LentServer, LentClient),
    }
    chosen = next((each for each in sys.argv if each in variants), None)
    if chosen is not None:
        sys.argv.remove(chosen)
    main(variants[chosen] if chosen else Raw(Server))
