"""An RSocket server with any of a set of flaws; without one it conforms.

As a command, ``python -m tests.tck.flawed_server PORT FLAW…``, it ends when its standard input
ends, or when it crashes by one of its flaws.

It is written from the protocol's text with the kit's frames, and shares nothing with
`reactive_aio.rsocket`; `tests/tck/broken_servers.py` lists the flaws.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
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
from tests.tck.flawed_server_transports import TcpTransport, WebSocketTransport

__all__ = ("running_server",)

INTERVAL: Final = 0.05
PATIENCE: Final = 0.3
"""Seconds."""
REQUESTS = (REQUEST_RESPONSE, frames.FNF, REQUEST_STREAM, REQUEST_CHANNEL)
FRESH = 40 * 1024 * 1024
"""An allocation of this size always comes from the system, not from freed memory."""


class ServedStream:
    """One stream or channel that the server serves."""

    def __init__(self, frame: ParsedFrame, route: str, data: bytes) -> None:
        self.id = frame.stream
        self.kind = frame.kind
        self.route = route
        self.demand = frame.number
        self.sent = 0
        self.kept = [data]
        """Elements of a channel to send back."""
        self.requested = 0
        self.is_complete = frame.is_complete

    @property
    def length(self) -> float:
        return float(self.route.rpartition(".")[2]) if "stream" in self.route else float("inf")


class ScriptedRequest:
    """A request that the server sends by a script."""

    def __init__(self, reply_to: int, words: list[str]) -> None:
        self.reply_to = reply_to
        self.words = words
        self.due = self.count = self.size = 0
        self.is_done = False


class Connection:
    """The connection of one client."""

    def __init__(self, flaws: frozenset[str], transport: TcpTransport | WebSocketTransport) -> None:
        self.flaws = flaws
        self.transport = transport
        self.streams: dict[int, ServedStream] = {}
        self.fragments: dict[int, tuple[ParsedFrame, bytes, bytearray, int]] = {}
        self.scripted: dict[int, ScriptedRequest] = {}
        self.next_id = 2
        self.useless_frames = 0
        self.is_set_up = False
        self.is_closing = False
        self.received: int = 0
        """How many frames have come."""
        self.lifetime = float("inf")
        self.has_work = asyncio.Event()
        self.unsent: list[bytes] = []
        self.crash: Callable[[], object] = self.transport.close

    def has_flaw(self, flaw: str) -> bool:
        return flaw in self.flaws

    async def send(self, *sent: bytes) -> None:
        for each in sent:
            await self.transport.send(each)

    async def fail_connection(self, code: int, message: bytes = b"") -> None:
        if not self.has_flaw("closes without an error"):
            await self.send(frames.error(0, code, message))
        if not self.has_flaw("leaves the connection open"):
            self.transport.close()

    # -- the connection ----------------------------------------------------------------------------
    async def run(self) -> None:
        tasks = [asyncio.create_task(self.pump()), asyncio.create_task(self.watch())]
        try:
            while (raw := await self.transport.receive()) is not None:
                self.received += 1
                await self.take(raw)
                self.has_work.set()
        except (OSError, ConnectionClosed):
            pass
        finally:
            for task in tasks:
                task.cancel()
            self.transport.close()

    async def watch(self) -> None:
        """Disconnect a silent client. Counts intervals, since the machine may be suspended."""
        age, silence, received = 0.0, 0.0, self.received
        while not self.has_flaw("never disconnects"):
            await asyncio.sleep(INTERVAL)
            age += INTERVAL
            silence = silence + INTERVAL if received == self.received else 0.0
            received = self.received
            if not self.is_set_up and age > PATIENCE:
                self.transport.close()
            if silence > self.lifetime or (self.transport.is_in_frame and silence > PATIENCE):
                self.transport.close()

    async def take(self, raw: bytes) -> None:
        frame = ParsedFrame.of(raw)
        if not self.is_set_up:
            await self.first_frame(raw, frame)
        elif len(raw) < 6:
            if not self.has_flaw("ignores malformed frames"):
                await self.fail_connection(Codes.CONNECTION_ERROR)
        elif "metadata" in frame.problem and not self.has_flaw(
            "accepts metadata longer than its frame"
        ):
            await self.fail_connection(Codes.CONNECTION_ERROR)
        elif frame.kind in REQUESTS:
            await self.request(frame)
        elif frame.stream % 2 == 0 and frame.stream:
            await self.response_frame(frame)
        else:
            await self.other_frame(raw, frame)

    async def first_frame(self, raw: bytes, frame: ParsedFrame) -> None:
        if frame.kind == frames.RESUME and not frame.stream:
            code = (
                Codes.INVALID_SETUP
                if self.has_flaw("does not know RESUME")
                else Codes.REJECTED_RESUME
            )
            await self.fail_connection(code)
        elif frame.kind != frames.SETUP and self.has_flaw("serves without SETUP"):
            self.is_set_up = True
            await self.take(raw)
        elif frame.kind != frames.SETUP or (
            frame.stream and not self.has_flaw("accepts SETUP on any stream")
        ):
            await self.fail_connection(Codes.INVALID_SETUP)
        else:
            await self.setup(raw, frame)

    async def setup(self, raw: bytes, frame: ParsedFrame) -> None:
        version, times = raw[6:10], (raw[10:14], raw[14:18])
        wrong = len(raw) < 40 or bytes(4) in times
        if len(raw) < 40 and self.has_flaw("accepts a truncated SETUP"):
            return
        if len(raw) < 40 and self.has_flaw("crashes on a truncated SETUP"):
            self.crash()
        if wrong and not (self.has_flaw("accepts intervals of 0") and len(raw) >= 40):
            await self.fail_connection(Codes.INVALID_SETUP)
        elif version != b"\0\1\0\0" and not self.has_flaw("accepts any version"):
            await self.fail_connection(Codes.UNSUPPORTED_SETUP)
        elif frame.flags & frames.RESUMED and not self.has_flaw("promises to resume"):
            await self.fail_connection(Codes.REJECTED_SETUP)
        elif frame.flags & frames.LEASED and not self.has_flaw("promises leases"):
            await self.fail_connection(Codes.UNSUPPORTED_SETUP)
        elif b"wrong" in raw and self.has_flaw("serves a rejected client"):
            await self.send(frames.error(0, Codes.REJECTED_SETUP))
            self.is_set_up = True
        elif b"wrong" in raw:
            await self.fail_connection(Codes.REJECTED_SETUP)
        else:
            self.is_set_up = True
            self.lifetime = int.from_bytes(times[1], "big") / 1000

    async def other_frame(self, raw: bytes, frame: ParsedFrame) -> None:
        """A frame that is neither a request nor a response."""
        stream = self.streams.get(frame.stream)
        if frame.kind == frames.KEEPALIVE and frame.flags & frames.RESPOND:
            await self.keepalive(frame)
        elif frame.kind == frames.KEEPALIVE and self.has_flaw("answers every KEEPALIVE"):
            await self.send(frames.keepalive(frame.data, respond=False))
        elif frame.kind == PAYLOAD and frame.stream in self.fragments:
            await self.fragment(frame)
        elif frame.kind == frames.CANCEL and frame.stream in self.fragments:
            if not self.has_flaw("serves cancelled fragments"):
                del self.fragments[frame.stream]
        elif frame.kind == ERROR and not frame.stream:
            await self.connection_error(frame)
        elif frame.kind == frames.SETUP and self.has_flaw("closes on a second SETUP"):
            await self.fail_connection(Codes.CONNECTION_ERROR)
        elif frame.kind not in frames.NAMES or frame.kind == frames.EXT:
            await self.unknown_frame(frame)
        elif stream is None:
            await self.frame_out_of_context(frame)
        else:
            await self.stream_frame(stream, frame)

    async def keepalive(self, frame: ParsedFrame) -> None:
        if self.has_flaw("answers with other data") and frame.data[:3] != b"tck":
            await self.send(frames.keepalive(b"other", respond=False))
        else:
            await self.send(frames.keepalive(frame.data, respond=False))

    async def connection_error(self, frame: ParsedFrame) -> None:
        if frame.number == Codes.CONNECTION_ERROR and not self.has_flaw(
            "stays after CONNECTION_ERROR"
        ):
            self.transport.close()
        elif frame.number == Codes.CONNECTION_CLOSE:
            self.is_closing = True
            if self.has_flaw("closes open streams") or not self.streams:
                self.transport.close()

    async def unknown_frame(self, frame: ParsedFrame) -> None:
        if frame.flags & frames.IGNORE:
            if self.has_flaw("does not honor IGNORE"):
                await self.fail_connection(Codes.CONNECTION_ERROR)
        elif self.has_flaw("answers unknown frames with INVALID_SETUP"):
            await self.fail_connection(Codes.INVALID_SETUP)
        else:
            await self.fail_connection(Codes.CONNECTION_ERROR)

    async def frame_out_of_context(self, frame: ParsedFrame) -> None:
        if self.has_flaw("closes on frames out of context"):
            await self.fail_connection(Codes.CONNECTION_ERROR)
        elif self.has_flaw("answers on streams never opened") and frame.kind == REQUEST_N:
            await self.send(frames.payload(frame.stream, b"?"))
        self.useless_frames += 1
        if self.useless_frames > 2000 and not self.has_flaw("tolerates any flood"):
            await self.fail_connection(Codes.CONNECTION_ERROR)

    # -- requests ----------------------------------------------------------------------------------
    async def request(self, frame: ParsedFrame) -> None:
        if not frame.stream and not self.has_flaw("serves stream 0"):
            await self.fail_connection(Codes.CONNECTION_ERROR)
        elif (frame.stream % 2 == 0 and not self.has_flaw("serves any stream id")) or (
            frame.flags & 0x1F and self.has_flaw("rejects unknown flags")
        ):
            await self.send(frames.error(frame.stream, Codes.INVALID))
        elif frame.stream in self.streams and not self.has_flaw(
            "serves a request on a stream in use"
        ):
            pass
        elif frame.has_follows and frame.kind != REQUEST_CHANNEL:
            if len(self.fragments) >= 300 and not self.has_flaw(
                "keeps any number of incomplete requests"
            ):
                await self.send(frames.error(frame.stream, Codes.INVALID))
                return
            self.fragments[frame.stream] = (frame, frame.metadata or b"", bytearray(frame.data), 0)
        else:
            await self.serve(frame, frame.metadata or b"", frame.data)

    async def fragment(self, frame: ParsedFrame) -> None:
        first, metadata, data, empty = self.fragments.pop(frame.stream)
        if self.has_flaw("mixes fragments of streams") and self.fragments:
            self.fragments = {}
            data[:] = b"mixed"
        if not self.has_flaw("reads only the first metadata"):
            metadata += frame.metadata or b""
        if self.has_flaw("keeps only the last fragment"):
            data.clear()
        data += frame.data
        empty += not frame.data and not frame.metadata
        too_much = len(data) > 32 * 2**20 and not self.has_flaw("reassembles without bound")
        if too_much or (empty > 16 and not self.has_flaw("accepts any number of empty fragments")):
            await self.send(frames.error(frame.stream, Codes.INVALID))
        elif frame.has_follows:
            self.fragments[frame.stream] = (first, metadata, data, empty)
        else:
            await self.serve(first, metadata, bytes(data))

    async def serve(self, frame: ParsedFrame, metadata: bytes, data: bytes) -> None:
        route = metadata[5:].decode("latin-1")
        if frame.kind == frames.FNF:
            if self.has_flaw("answers fire-and-forget"):
                await self.send(frames.payload(frame.stream, b"", flags=NEXT | COMPLETE))
        elif len(self.streams) >= 1000 and not self.has_flaw("opens any number of streams"):
            await self.send(frames.error(frame.stream, Codes.REJECTED))
        elif route == "tck.fail":
            await self.fail(frame)
        elif route == "tck.echo":
            await self.echo(frame, data)
        elif route == "tck.ask":
            await self.run_script(frame.stream, data.decode().split())
        elif route == "tck.never":
            self.streams[frame.stream] = ServedStream(frame, route, b"")
            if self.has_flaw("serves one request at a time"):
                await asyncio.sleep(3600)
        elif route == "tck.channel" or route.startswith(("tck.stream", "tck.endless")):
            await self.stream(frame, route, data)
        elif not self.has_flaw("completes unknown routes"):
            await self.send(frames.error(frame.stream, Codes.INVALID, b"no such route"))
        else:
            await self.send(frames.payload(frame.stream, b"", flags=COMPLETE))

    async def fail(self, frame: ParsedFrame) -> None:
        code = (
            0x102
            if self.has_flaw("fails streams with codes of connections")
            else Codes.APPLICATION_ERROR
        )
        if self.has_flaw("completes failed requests"):
            await self.send(frames.payload(frame.stream, flags=COMPLETE))
            return
        if frame.kind == REQUEST_STREAM:
            await self.send(frames.payload(frame.stream, b"1"))
        await self.send(frames.error(frame.stream, code))
        if self.has_flaw("terminates twice"):
            await self.send(frames.payload(frame.stream, flags=COMPLETE))

    async def echo(self, frame: ParsedFrame, data: bytes) -> None:
        on = frame.stream
        if self.has_flaw("removes zero bytes"):
            data = data.replace(b"\0", b"")
        if self.has_flaw("sends invalid frames"):
            await self.send(frames.payload(on, data, flags=0))
        if self.has_flaw("forgets to complete"):
            await self.send(frames.payload(on, data, flags=NEXT))
        elif not data and self.has_flaw("drops empty payloads"):
            await self.send(frames.payload(on, flags=COMPLETE))
        elif len(data) > frames.LARGEST and self.has_flaw("truncates long payloads"):
            await self.send(frames.payload(on, data[:1000], flags=NEXT | COMPLETE))
        else:
            while len(data) > 2**20:
                await self.send(frames.payload(on, data[: 2**20], flags=NEXT | FOLLOWS))
                data = data[2**20 :]
            await self.send(frames.payload(on, data, flags=NEXT | COMPLETE))

    # -- streams -----------------------------------------------------------------------------------
    async def stream(self, frame: ParsedFrame, route: str, data: bytes) -> None:
        if frame.problem and not self.has_flaw("opens a stream for a request of 0"):
            await self.send(frames.error(frame.stream, Codes.INVALID))
            return
        stream = ServedStream(frame, route, data)
        if self.has_flaw("sends one too many"):
            stream.demand += 1
        self.streams[stream.id] = stream
        if (
            stream.kind == REQUEST_CHANNEL
            and not stream.is_complete
            and not self.has_flaw("requests nothing on channels")
        ):
            many = 100 if self.has_flaw("requests many on channels") else stream.demand - 1
            await self.request_from_client(stream, max(1, many))

    async def request_from_client(self, stream: ServedStream, n: int) -> None:
        stream.requested += n
        await self.send(frames.request_n(stream.id, n))

    async def stream_frame(self, stream: ServedStream, frame: ParsedFrame) -> None:
        if frame.kind == REQUEST_N:
            await self.add_demand(stream, frame.number)
        elif frame.kind == frames.CANCEL:
            if self.has_flaw("ignores CANCEL") and stream.kind != REQUEST_CHANNEL:
                return
            del self.streams[stream.id]
            if self.has_flaw("answers CANCEL"):
                await self.send(frames.payload(stream.id, flags=COMPLETE))
            if self.is_closing and not self.streams and not self.has_flaw("never closes"):
                self.transport.close()
            if self.has_flaw("continues cancelled channels") and stream.kind == REQUEST_CHANNEL:
                self.streams[stream.id] = stream
        elif frame.kind == ERROR:
            if not self.has_flaw("continues failed channels"):
                del self.streams[stream.id]
        elif frame.kind == PAYLOAD:
            await self.channel_payload(stream, frame)

    async def add_demand(self, stream: ServedStream, n: int) -> None:
        if self.has_flaw("ignores later requests"):
            n = 0
        if self.has_flaw("ignores requests while it has demand") and stream.demand:
            n = 0
        if self.has_flaw("sends one for a request of 0") and not n:
            n = 1
        if self.has_flaw("overflows") and stream.demand + n > frames.MAX_31:
            stream.demand = -(2**40)
            return
        stream.demand += n
        if stream.kind == REQUEST_CHANNEL and not stream.is_complete:
            await self.request_from_client(stream, n)

    async def channel_payload(self, stream: ServedStream, frame: ParsedFrame) -> None:
        stream.requested -= frame.is_next
        if stream.requested < 0 and not self.has_flaw("accepts elements without demand"):
            del self.streams[stream.id]
            await self.send(frames.error(stream.id, Codes.INVALID))
            return
        if frame.is_next:
            stream.kept.append(frame.data)
        stream.is_complete = stream.is_complete or frame.is_complete
        if stream.is_complete and self.has_flaw("ends both directions at once"):
            stream.kept.clear()

    async def pump(self) -> None:
        """Send what is requested, some elements of each stream at a time."""
        with suppress(OSError, ConnectionClosed):
            while True:
                if not any([await self.send_some(each) for each in list(self.streams.values())]):
                    self.has_work.clear()
                    await self.has_work.wait()
                await asyncio.sleep(0)

    async def send_some(self, stream: ServedStream) -> bool:
        """Send some elements; return whether there may be more."""
        if stream.route == "tck.never":
            return False
        for _ in range(1_000_000 if self.has_flaw("serves one stream at a time") else 16):
            if self.streams.get(stream.id) is not stream:
                return False
            if self.is_exhausted(stream):
                del self.streams[stream.id]
                if self.has_flaw("completes after a while"):
                    await asyncio.sleep(INTERVAL)
                if not self.has_flaw("does not complete"):
                    await self.send(frames.payload(stream.id, flags=COMPLETE))
                if self.has_flaw("sends an element after the end"):
                    await self.send(frames.payload(stream.id, b"more"))
                return False
            if stream.demand < 1 or (stream.kind == REQUEST_CHANNEL and not stream.kept):
                return False
            stream.demand -= 1
            await self.send_element(stream)
        return True

    def is_exhausted(self, stream: ServedStream) -> bool:
        if stream.kind == REQUEST_CHANNEL:
            return stream.is_complete and not stream.kept
        if self.has_flaw("completes on demand only") and not stream.demand:
            return False
        return stream.sent >= stream.length

    async def send_element(self, stream: ServedStream) -> None:
        data = bytes(1000) if "endless" in stream.route else b"%d" % stream.sent
        if stream.kind == REQUEST_CHANNEL:
            data = stream.kept.pop(0)
        stream.sent += 1
        if self.has_flaw("drops an element") and stream.sent == 1000:
            return
        if self.has_flaw("buffers for a client that does not read") and "endless" in stream.route:
            if len(self.unsent) < 4:
                self.unsent.append(b"h" * FRESH)
            return
        await self.send(frames.payload(stream.id, data))

    # -- sending requests --------------------------------------------------------------------------
    async def run_script(self, reply_to: int, words: list[str]) -> None:
        model, *words = words
        for _ in range(2 if model == "twice" else 1):
            scripted = ScriptedRequest(reply_to, list(words))
            on = self.next_id
            if not (model == "twice" and self.has_flaw("uses one stream for two subscriptions")):
                self.next_id += 1 if self.has_flaw("uses every stream id") else 2
            self.scripted[on] = scripted
            metadata = frames.composite(frames.routing("tck.answer"))
            if model == "response":
                await self.send(frames.request(REQUEST_RESPONSE, on, metadata=metadata))
                continue
            first = int(scripted.words.pop(0))
            if first < 1 and not self.has_flaw("sends any request"):
                await self.report(scripted, "error 0")
                continue
            scripted.due = first
            n = min(first, frames.MAX_31) % 2**32
            if self.has_flaw("requests everything initially"):
                n = frames.MAX_31
            if self.has_flaw("truncates large requests"):
                n &= 0xFF
            await self.send(frames.request(REQUEST_STREAM, on, n=n, metadata=metadata))
            if self.has_flaw("sends its initial request twice"):
                await self.send(frames.request_n(on, n))

    async def response_frame(self, frame: ParsedFrame) -> None:
        scripted = self.scripted.get(frame.stream)
        if scripted is None or (scripted.is_done):
            return
        if frame.kind == ERROR:
            code = frame.number if not self.has_flaw("drops error codes") else 0
            if not (self.has_flaw("drops errors of applications") and frame.number > 0x300):
                await self.report(scripted, f"error {code}")
        elif frame.kind == PAYLOAD:
            await self.receive_element(scripted, frame)

    async def receive_element(self, scripted: ScriptedRequest, frame: ParsedFrame) -> None:
        scripted.size += len(frame.data)
        scripted.count += frame.is_next and not frame.has_follows
        if not frame.data and self.has_flaw("does not count empty elements"):
            scripted.count = 0
        response = not scripted.due
        if scripted.count > scripted.due > 0 and not self.has_flaw("accepts more than requested"):
            scripted.count = scripted.due
            await self.send(frames.cancel(frame.stream))
            await self.report(scripted, "error 0")
        elif (frame.is_complete or (response and not frame.has_follows)) and not scripted.is_done:
            await self.report(scripted, "complete")
            if self.has_flaw("cancels a completed stream"):
                await self.send(frames.cancel(frame.stream))
        elif scripted.count == scripted.due and scripted.words:
            await self.next_step(scripted, frame.stream)

    async def next_step(self, scripted: ScriptedRequest, on: int) -> None:
        word = scripted.words.pop(0)
        if word == "cancel":
            await self.send(frames.cancel(on))
            if self.has_flaw("sends CANCEL twice"):
                await self.send(frames.cancel(on))
            await self.report(scripted, "cancel")
        else:
            scripted.due += int(word)
            if not self.has_flaw("does not forward later requests"):
                await self.send(frames.request_n(on, int(word)))

    async def report(self, scripted: ScriptedRequest, how: str) -> None:
        scripted.is_done = True
        text = f"{scripted.count} {scripted.size} {how}"
        await self.send(frames.payload(scripted.reply_to, text.encode(), flags=NEXT | COMPLETE))


@asynccontextmanager
async def running_server(
    *flaws: str, websocket: bool = False, port: int = 0
) -> AsyncGenerator[str]:
    """A server with some flaws, at a free port by default; yields its URI."""
    chosen = frozenset(flaws)
    if websocket:
        async with serve(
            lambda each: Connection(chosen, WebSocketTransport(each, chosen)).run(), "127.0.0.1", 0
        ) as server:
            yield f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/"
        return
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(chosen, TcpTransport(reader, writer))
        connection.crash = listener.close if __name__ != "__main__" else lambda: os._exit(3)
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
    input_end = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    async with running_server(*sys.argv[2:], port=int(sys.argv[1])):
        await input_end


if __name__ == "__main__":
    asyncio.run(main())
