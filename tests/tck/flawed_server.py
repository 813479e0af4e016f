"""A small server of RSocket for the kit's own tests: sound, but for the flaws that it is given.

As a command, ``python -m tests.tck.flawed_server PORT FLAW…``, it ends when its input does, or when it
dies of one of its flaws.

It is written against the protocol's text and the kit's frames, and shares nothing with
`reactive_aio.rsocket`; the flaws are named in `tests/tck/broken_servers.py`.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from websockets.asyncio.server import serve
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
    ParsedFrame,
)
from tests.tck.flawed_server_transports import Bytes, Messages
from tests.tck.flawed_server_streams import Asker, Sending

__all__ = ("listening",)

LOOK: Final = 0.05
PATIENCE: Final = 0.3
"""Seconds."""
REQUESTS = (REQUEST_RESPONSE, frames.FNF, REQUEST_STREAM, REQUEST_CHANNEL)


class Connection(Asker):
    """One client."""

    # -- the connection ----------------------------------------------------------------------------
    async def run(self) -> None:
        tasks = [asyncio.create_task(self.pump()), asyncio.create_task(self.watch())]
        try:
            while (raw := await self.link.receive()) is not None:
                self.heard += 1
                await self.take(raw)
                self.work.set()
        except (OSError, ConnectionClosed):
            pass
        finally:
            for task in tasks:
                task.cancel()
            self.link.close()

    async def watch(self) -> None:
        """Let go of who says nothing. Looks are counted: a machine may have stood still."""
        age, silence, heard = 0.0, 0.0, self.heard
        while not self.has("has all the patience there is"):
            await asyncio.sleep(LOOK)
            age += LOOK
            silence = silence + LOOK if heard == self.heard else 0.0
            heard = self.heard
            if not self.open and age > PATIENCE:
                self.link.close()
            if silence > self.lifetime or (self.link.half and silence > PATIENCE):
                self.link.close()

    async def take(self, raw: bytes) -> None:
        seen = ParsedFrame.of(raw)
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

    async def first(self, raw: bytes, seen: ParsedFrame) -> None:
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

    async def setup(self, raw: bytes, seen: ParsedFrame) -> None:
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

    async def other(self, raw: bytes, seen: ParsedFrame) -> None:
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

    async def keepalive(self, seen: ParsedFrame) -> None:
        if self.has("answers with other data") and seen.data[:3] != b"tck":
            await self.send(frames.keepalive(b"other", respond=False))
        else:
            await self.send(frames.keepalive(seen.data, respond=False))

    async def said_error(self, seen: ParsedFrame) -> None:
        if seen.number == Codes.CONNECTION_ERROR and not self.has("stays after CONNECTION_ERROR"):
            self.link.close()
        elif seen.number == Codes.CONNECTION_CLOSE:
            self.closing = True
            if self.has("cuts streams off") or not self.streams:
                self.link.close()

    async def unknown(self, seen: ParsedFrame) -> None:
        if seen.flags & frames.IGNORE:
            if self.has("ignores nothing"):
                await self.end(Codes.CONNECTION_ERROR)
        elif self.has("is at a loss"):
            await self.end(Codes.INVALID_SETUP)
        else:
            await self.end(Codes.CONNECTION_ERROR)

    async def senseless(self, seen: ParsedFrame) -> None:
        if self.has("minds what makes no sense"):
            await self.end(Codes.CONNECTION_ERROR)
        elif self.has("answers on streams never opened") and seen.kind == REQUEST_N:
            await self.send(frames.payload(seen.stream, b"?"))
        self.useless += 1
        if self.useless > 2000 and not self.has("bears any flood"):
            await self.end(Codes.CONNECTION_ERROR)

    # -- requests ----------------------------------------------------------------------------------
    async def request(self, seen: ParsedFrame) -> None:
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

    async def fragment(self, seen: ParsedFrame) -> None:
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

    async def serve(self, seen: ParsedFrame, metadata: bytes, data: bytes) -> None:
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

    async def fail(self, seen: ParsedFrame) -> None:
        code = 0x102 if self.has("fails by codes of connections") else Codes.APPLICATION_ERROR
        if self.has("completes what has failed"):
            await self.send(frames.payload(seen.stream, flags=COMPLETE))
            return
        if seen.kind == REQUEST_STREAM:
            await self.send(frames.payload(seen.stream, b"1"))
        await self.send(frames.error(seen.stream, code))
        if self.has("ends twice"):
            await self.send(frames.payload(seen.stream, flags=COMPLETE))

    async def echo(self, seen: ParsedFrame, data: bytes) -> None:
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
