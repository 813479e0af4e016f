"""A small server of RSocket for the kit's own tests: sound, but for the flaws that it is given.

As a command, ``python -m tests.tck.servers PORT FLAW…``, it ends when its input does, or when it
dies of one of its flaws.

It is written against the protocol's text and the kit's frames, and shares nothing with
`reactive_aio.rsocket`; the flaws are named in `tests/tck/broken_servers.py`.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from reactive_aio.tck.network import frames
from reactive_aio.tck.network.frames import (
    COMPLETE,
    ERROR,
    FOLLOWS,
    NEXT,
    PAYLOAD,
    REQUEST_CHANNEL,
    REQUEST_N,
    REQUEST_RESPONSE,
    REQUEST_STREAM,
    Codes,
    Seen,
)

__all__ = ("listening",)

REQUESTS = (REQUEST_RESPONSE, frames.FNF, REQUEST_STREAM, REQUEST_CHANNEL)


class Sending:
    """One stream that is answered."""

    def __init__(self, seen: Seen, route: str, data: bytes) -> None:
        self.id = seen.stream
        self.kind = seen.kind
        self.route = route
        self.credit = seen.number
        self.sent = 0
        self.kept = [data]
        """Of a channel: what is to be sent back."""
        self.asked = 0
        self.ended = seen.complete

    @property
    def length(self) -> float:
        return float(self.route.rpartition(".")[2]) if "stream" in self.route else float("inf")


class Asking:
    """What this side asks for, by a script."""

    def __init__(self, answers: int, words: list[str]) -> None:
        self.answers = answers
        self.words = words
        self.due = self.count = self.size = 0
        self.over = False


class Connection:
    """One client."""

    def __init__(self, flaws: frozenset[str], link: Any) -> None:
        self.flaws = flaws
        self.link = link
        self.streams: dict[int, Sending] = {}
        self.half: dict[int, tuple[Seen, bytes, bytearray, int]] = {}
        self.asking: dict[int, Asking] = {}
        self.next_id = 2
        self.useless = 0
        self.open = False
        self.closing = False
        self.heard = asyncio.get_running_loop().time()
        self.lifetime = float("inf")
        self.work = asyncio.Event()
        self.hoard: list[bytes] = []
        self.die: Callable[[], object] = self.link.close

    def has(self, flaw: str) -> bool:
        return flaw in self.flaws

    async def send(self, *sent: bytes) -> None:
        for each in sent:
            await self.link.send(each)

    async def end(self, code: int, message: bytes = b"") -> None:
        if not self.has("leaves without a word"):
            await self.send(frames.error(0, code, message))
        if not self.has("leaves the connection open"):
            self.link.close()

    # -- the connection ----------------------------------------------------------------------------
    async def run(self) -> None:
        tasks = [asyncio.create_task(self.pump()), asyncio.create_task(self.watch())]
        try:
            while (raw := await self.link.receive()) is not None:
                self.heard = asyncio.get_running_loop().time()
                await self.take(raw)
                self.work.set()
        except (OSError, ConnectionClosed):
            pass
        finally:
            for task in tasks:
                task.cancel()
            self.link.close()

    async def watch(self) -> None:
        """Let go of who says nothing."""
        began = asyncio.get_running_loop().time()
        while not self.has("has all the patience there is"):
            await asyncio.sleep(0.05)
            now = asyncio.get_running_loop().time()
            if not self.open and now > began + 0.3:
                self.link.close()
            if now > self.heard + self.lifetime or (self.link.half and now > self.heard + 0.3):
                self.link.close()

    async def take(self, raw: bytes) -> None:
        seen = Seen.of(raw)
        if not self.open:
            await self.first(raw, seen)
        elif len(raw) < 6:
            if not self.has("passes over what is no frame"):
                await self.end(Codes.CONNECTION_ERROR)
        elif "metadata" in seen.wrong and not self.has("reads metadata that is not there"):
            await self.end(Codes.CONNECTION_ERROR)
        elif seen.kind in REQUESTS:
            await self.request(seen)
        elif seen.stream % 2 == 0 and seen.stream:
            await self.answer(seen)
        else:
            await self.other(raw, seen)

    async def first(self, raw: bytes, seen: Seen) -> None:
        if seen.kind == frames.RESUME and not seen.stream:
            code = Codes.INVALID_SETUP if self.has("knows no RESUME") else Codes.REJECTED_RESUME
            await self.end(code)
        elif seen.kind != frames.SETUP and self.has("serves without SETUP"):
            self.open = True
            await self.take(raw)
        elif seen.kind != frames.SETUP or (seen.stream and not self.has("takes SETUP anywhere")):
            await self.end(Codes.INVALID_SETUP)
        else:
            await self.setup(raw, seen)

    async def setup(self, raw: bytes, seen: Seen) -> None:
        version, times = raw[6:10], (raw[10:14], raw[14:18])
        wrong = len(raw) < 40 or bytes(4) in times
        if len(raw) < 40 and self.has("reads a SETUP that is cut short"):
            return
        if len(raw) < 40 and self.has("dies of nonsense"):
            self.die()
        if wrong and not (self.has("takes times of 0") and len(raw) >= 40):
            await self.end(Codes.INVALID_SETUP)
        elif version != b"\0\1\0\0" and not self.has("takes any version"):
            await self.end(Codes.UNSUPPORTED_SETUP)
        elif seen.flags & frames.RESUMED and not self.has("promises to resume"):
            await self.end(Codes.REJECTED_SETUP)
        elif seen.flags & frames.LEASED and not self.has("promises leases"):
            await self.end(Codes.UNSUPPORTED_SETUP)
        elif b"wrong" in raw and self.has("serves whom it refuses"):
            await self.send(frames.error(0, Codes.REJECTED_SETUP))
            self.open = True
        elif b"wrong" in raw:
            await self.end(Codes.REJECTED_SETUP)
        else:
            self.open = True
            self.lifetime = int.from_bytes(times[1], "big") / 1000

    async def other(self, raw: bytes, seen: Seen) -> None:
        """What is neither a request nor an answer to one."""
        stream = self.streams.get(seen.stream)
        if seen.kind == frames.KEEPALIVE and seen.flags & frames.RESPOND:
            await self.keepalive(seen)
        elif seen.kind == frames.KEEPALIVE and self.has("answers all signs of life"):
            await self.send(frames.keepalive(seen.data, respond=False))
        elif seen.kind == PAYLOAD and seen.stream in self.half:
            await self.fragment(seen)
        elif seen.kind == frames.CANCEL and seen.stream in self.half:
            if not self.has("serves what was cancelled half-way"):
                del self.half[seen.stream]
        elif seen.kind == ERROR and not seen.stream:
            await self.said_error(seen)
        elif seen.kind == frames.SETUP and self.has("takes no second SETUP"):
            await self.end(Codes.CONNECTION_ERROR)
        elif seen.kind not in frames.NAMES or seen.kind == frames.EXT:
            await self.unknown(seen)
        elif stream is None:
            await self.senseless(seen)
        else:
            await self.on_stream(stream, seen)

    async def keepalive(self, seen: Seen) -> None:
        if self.has("answers with other data") and seen.data[:3] != b"tck":
            await self.send(frames.keepalive(b"other", respond=False))
        else:
            await self.send(frames.keepalive(seen.data, respond=False))

    async def said_error(self, seen: Seen) -> None:
        if seen.number == Codes.CONNECTION_ERROR and not self.has("stays after CONNECTION_ERROR"):
            self.link.close()
        elif seen.number == Codes.CONNECTION_CLOSE:
            self.closing = True
            if self.has("cuts streams off") or not self.streams:
                self.link.close()

    async def unknown(self, seen: Seen) -> None:
        if seen.flags & frames.IGNORE:
            if self.has("ignores nothing"):
                await self.end(Codes.CONNECTION_ERROR)
        elif self.has("is at a loss"):
            await self.end(Codes.INVALID_SETUP)
        else:
            await self.end(Codes.CONNECTION_ERROR)

    async def senseless(self, seen: Seen) -> None:
        if self.has("minds what makes no sense"):
            await self.end(Codes.CONNECTION_ERROR)
        elif self.has("answers on streams never opened") and seen.kind == REQUEST_N:
            await self.send(frames.payload(seen.stream, b"?"))
        self.useless += 1
        if self.useless > 2000 and not self.has("bears any flood"):
            await self.end(Codes.CONNECTION_ERROR)

    # -- requests ----------------------------------------------------------------------------------
    async def request(self, seen: Seen) -> None:
        if not seen.stream and not self.has("serves stream 0"):
            await self.end(Codes.CONNECTION_ERROR)
        elif (seen.stream % 2 == 0 and not self.has("serves any stream")) or (
            seen.flags & 0x1F and self.has("minds flags")
        ):
            await self.send(frames.error(seen.stream, Codes.INVALID))
        elif seen.stream in self.streams and not self.has("takes a request for a stream in use"):
            pass
        elif seen.follows and seen.kind != REQUEST_CHANNEL:
            if len(self.half) >= 300 and not self.has("keeps any number of halves"):
                await self.send(frames.error(seen.stream, Codes.INVALID))
                return
            self.half[seen.stream] = (seen, seen.metadata or b"", bytearray(seen.data), 0)
        else:
            await self.serve(seen, seen.metadata or b"", seen.data)

    async def fragment(self, seen: Seen) -> None:
        first, metadata, data, empty = self.half.pop(seen.stream)
        if self.has("mixes fragments up") and self.half:
            self.half = {}
            data[:] = b"mixed"
        if not self.has("reads metadata once"):
            metadata += seen.metadata or b""
        if self.has("keeps the last fragment"):
            data.clear()
        data += seen.data
        empty += not seen.data and not seen.metadata
        too_much = len(data) > 32 * 2**20 and not self.has("gathers without end")
        if too_much or (empty > 16 and not self.has("gathers nothing without end")):
            await self.send(frames.error(seen.stream, Codes.INVALID))
        elif seen.follows:
            self.half[seen.stream] = (first, metadata, data, empty)
        else:
            await self.serve(first, metadata, bytes(data))

    async def serve(self, seen: Seen, metadata: bytes, data: bytes) -> None:
        route = metadata[5:].decode("latin-1")
        if seen.kind == frames.FNF:
            if self.has("answers fire-and-forget"):
                await self.send(frames.payload(seen.stream, b"", flags=NEXT | COMPLETE))
        elif len(self.streams) >= 1000 and not self.has("opens any number of streams"):
            await self.send(frames.error(seen.stream, Codes.REJECTED))
        elif route == "tck.fail":
            await self.fail(seen)
        elif route == "tck.echo":
            await self.echo(seen, data)
        elif route == "tck.ask":
            await self.ask(seen.stream, data.decode().split())
        elif route == "tck.never":
            self.streams[seen.stream] = Sending(seen, route, b"")
            if self.has("waits for each other"):
                await asyncio.sleep(3600)
        elif route == "tck.channel" or route.startswith(("tck.stream", "tck.endless")):
            await self.stream(seen, route, data)
        elif not self.has("knows any route"):
            await self.send(frames.error(seen.stream, Codes.INVALID, b"no such route"))
        else:
            await self.send(frames.payload(seen.stream, b"", flags=COMPLETE))

    async def fail(self, seen: Seen) -> None:
        code = 0x102 if self.has("fails by codes of connections") else Codes.APPLICATION_ERROR
        if self.has("completes what has failed"):
            await self.send(frames.payload(seen.stream, flags=COMPLETE))
            return
        if seen.kind == REQUEST_STREAM:
            await self.send(frames.payload(seen.stream, b"1"))
        await self.send(frames.error(seen.stream, code))
        if self.has("ends twice"):
            await self.send(frames.payload(seen.stream, flags=COMPLETE))

    async def echo(self, seen: Seen, data: bytes) -> None:
        on = seen.stream
        if self.has("changes bytes"):
            data = data.replace(b"\0", b"")
        if self.has("sends odd frames"):
            await self.send(frames.payload(on, data, flags=0))
        if self.has("forgets to complete"):
            await self.send(frames.payload(on, data, flags=NEXT))
        elif not data and self.has("loses what is empty"):
            await self.send(frames.payload(on, flags=COMPLETE))
        elif len(data) > frames.LARGEST and self.has("cuts what is long"):
            await self.send(frames.payload(on, data[:1000], flags=NEXT | COMPLETE))
        else:
            while len(data) > 2**20:
                await self.send(frames.payload(on, data[: 2**20], flags=NEXT | FOLLOWS))
                data = data[2**20 :]
            await self.send(frames.payload(on, data, flags=NEXT | COMPLETE))

    # -- streams -----------------------------------------------------------------------------------
    async def stream(self, seen: Seen, route: str, data: bytes) -> None:
        if seen.wrong and not self.has("opens streams for nothing"):
            await self.send(frames.error(seen.stream, Codes.INVALID))
            return
        stream = Sending(seen, route, data)
        if self.has("sends one too many"):
            stream.credit += 1
        self.streams[stream.id] = stream
        if stream.kind == REQUEST_CHANNEL and not stream.ended and not self.has("asks for nothing"):
            many = 100 if self.has("asks for many") else stream.credit - 1
            await self.want(stream, max(1, many))

    async def want(self, stream: Sending, n: int) -> None:
        stream.asked += n
        await self.send(frames.request_n(stream.id, n))

    async def on_stream(self, stream: Sending, seen: Seen) -> None:
        if seen.kind == REQUEST_N:
            await self.more(stream, seen.number)
        elif seen.kind == frames.CANCEL:
            if self.has("does not stop") and stream.kind != REQUEST_CHANNEL:
                return
            del self.streams[stream.id]
            if self.has("answers CANCEL"):
                await self.send(frames.payload(stream.id, flags=COMPLETE))
            if self.closing and not self.streams and not self.has("never leaves"):
                self.link.close()
            if self.has("goes on with channels") and stream.kind == REQUEST_CHANNEL:
                self.streams[stream.id] = stream
        elif seen.kind == ERROR:
            if not self.has("goes on with channels that fail"):
                del self.streams[stream.id]
        elif seen.kind == PAYLOAD:
            await self.channel(stream, seen)

    async def more(self, stream: Sending, n: int) -> None:
        if self.has("gives none for later requests"):
            n = 0
        if self.has("forgets requests that come together") and stream.credit:
            n = 0
        if self.has("gives one for nothing") and not n:
            n = 1
        if self.has("overflows") and stream.credit + n > frames.MAX_31:
            stream.credit = -(2**40)
            return
        stream.credit += n
        if stream.kind == REQUEST_CHANNEL and not stream.ended:
            await self.want(stream, n)

    async def channel(self, stream: Sending, seen: Seen) -> None:
        stream.asked -= seen.next
        if stream.asked < 0 and not self.has("takes what it did not ask for"):
            del self.streams[stream.id]
            await self.send(frames.error(stream.id, Codes.INVALID))
            return
        if seen.next:
            stream.kept.append(seen.data)
        stream.ended = stream.ended or seen.complete
        if stream.ended and self.has("closes both halves at once"):
            stream.kept.clear()

    async def pump(self) -> None:
        """Send what is due, a few of each stream at a time."""
        with suppress(OSError, ConnectionClosed):
            while True:
                if not any([await self.some(each) for each in list(self.streams.values())]):
                    self.work.clear()
                    await self.work.wait()
                await asyncio.sleep(0)

    async def some(self, stream: Sending) -> bool:
        """Send some elements; whether there may be more."""
        if stream.route == "tck.never":
            return False
        for _ in range(10_000 if self.has("serves one stream at a time") else 16):
            if self.streams.get(stream.id) is not stream:
                return False
            if self.is_whole(stream):
                del self.streams[stream.id]
                if not self.has("does not complete"):
                    await self.send(frames.payload(stream.id, flags=COMPLETE))
                if self.has("goes on after its end"):
                    await self.send(frames.payload(stream.id, b"more"))
                return False
            if stream.credit < 1 or (stream.kind == REQUEST_CHANNEL and not stream.kept):
                return False
            stream.credit -= 1
            await self.emit(stream)
        return True

    def is_whole(self, stream: Sending) -> bool:
        if stream.kind == REQUEST_CHANNEL:
            return stream.ended and not stream.kept
        if self.has("completes on demand only") and not stream.credit:
            return False
        return stream.sent >= stream.length

    async def emit(self, stream: Sending) -> None:
        data = bytes(1000) if "endless" in stream.route else b"%d" % stream.sent
        if stream.kind == REQUEST_CHANNEL:
            data = stream.kept.pop(0)
        stream.sent += 1
        if self.has("loses elements") and stream.sent == 1000:
            return
        if self.has("hoards for who does not read") and "endless" in stream.route:
            self.hoard.append(bytes(100_000))
            return
        await self.send(frames.payload(stream.id, data))

    # -- asking ------------------------------------------------------------------------------------
    async def ask(self, answers: int, words: list[str]) -> None:
        model, *words = words
        for _ in range(2 if model == "twice" else 1):
            asking = Asking(answers, list(words))
            on = self.next_id
            if not (model == "twice" and self.has("asks on one stream for two")):
                self.next_id += 1 if self.has("counts by one") else 2
            self.asking[on] = asking
            metadata = frames.composite(frames.routing("tck.answer"))
            if model == "response":
                await self.send(frames.request(REQUEST_RESPONSE, on, metadata=metadata))
                continue
            first = int(asking.words.pop(0))
            if first < 1 and not self.has("sends any number"):
                await self.told(asking, "error 0")
                continue
            asking.due = first
            n = min(first, frames.MAX_31) % 2**32
            if self.has("asks for all at first"):
                n = frames.MAX_31
            if self.has("cuts large requests"):
                n &= 0xFFFF
            await self.send(frames.request(REQUEST_STREAM, on, n=n, metadata=metadata))
            if self.has("asks twice at first"):
                await self.send(frames.request_n(on, n))

    async def answer(self, seen: Seen) -> None:
        asking = self.asking.get(seen.stream)
        if asking is None or (asking.over and not self.has("speaks behind the end")):
            return
        if seen.kind == ERROR:
            code = seen.number if not self.has("loses codes") else 0
            if not (self.has("loses errors of applications") and seen.number > 0x300):
                await self.told(asking, f"error {code}")
        elif seen.kind == PAYLOAD:
            await self.element(asking, seen)

    async def element(self, asking: Asking, seen: Seen) -> None:
        asking.size += len(seen.data)
        asking.count += seen.next and not seen.follows
        if not seen.data and self.has("counts no empty elements"):
            asking.count = 0
        response = not asking.due
        if asking.count > asking.due > 0 and not self.has("takes more than requested"):
            asking.count = asking.due
            await self.send(frames.cancel(seen.stream))
            await self.told(asking, "error 0")
        elif (seen.complete or (response and not seen.follows)) and not asking.over:
            await self.told(asking, "complete")
            if self.has("cancels what has ended"):
                await self.send(frames.cancel(seen.stream))
        elif asking.count == asking.due and asking.words:
            await self.step(asking, seen.stream)

    async def step(self, asking: Asking, on: int) -> None:
        word = asking.words.pop(0)
        if word == "cancel":
            await self.send(frames.cancel(on))
            if self.has("speaks behind CANCEL"):
                await self.send(frames.cancel(on))
            await self.told(asking, "cancel")
        else:
            asking.due += int(word)
            if not self.has("keeps later requests"):
                await self.send(frames.request_n(on, int(word)))

    async def told(self, asking: Asking, how: str) -> None:
        asking.over = True
        text = f"{asking.count} {asking.size} {how}"
        await self.send(frames.payload(asking.answers, text.encode(), flags=NEXT | COMPLETE))


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


@asynccontextmanager
async def listening(*flaws: str, websocket: bool = False, port: int = 0) -> AsyncGenerator[str]:
    """A server with some flaws, at any free port if none is named; where it is."""
    has = frozenset(flaws)
    if websocket:
        # Wrong bytes are what it is sent; none of that is worth a word.
        async with serve(
            lambda each: Connection(has, Messages(each, has)).run(), "127.0.0.1", 0
        ) as server:
            yield f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/"
        return
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(has, Bytes(reader, writer))
        connection.die = listener.close if __name__ != "__main__" else lambda: os._exit(3)
        tasks.add(asyncio.ensure_future(connection.run()))

    listener = await asyncio.start_server(connected, "127.0.0.1", port)
    try:
        yield f"tcp://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def main() -> None:
    over = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    async with listening(*sys.argv[2:], port=int(sys.argv[1])):
        await over


if __name__ == "__main__":
    asyncio.run(main())
