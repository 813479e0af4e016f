"""The servers of the kit's tests: how they send streams, and how they ask for them."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from websockets.exceptions import ConnectionClosed

from reactive_aio.tck.network import frames
from reactive_aio.tck.network.frames import (
    COMPLETE,
    ERROR,
    NEXT,
    PAYLOAD,
    REQUEST_CHANNEL,
    REQUEST_N,
    REQUEST_RESPONSE,
    REQUEST_STREAM,
    Codes,
    ParsedFrame,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Asker", "Sending")

FRESH = 40 * 1024 * 1024
"""So many bytes at once come from the system, not from what the process has got back already."""


class Sending:
    """One stream that is answered."""

    def __init__(self, seen: ParsedFrame, route: str, data: bytes) -> None:
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


class End:
    """One end of a connection, with flaws."""

    def __init__(self, flaws: frozenset[str], link: Any) -> None:
        self.flaws = flaws
        self.link = link
        self.streams: dict[int, Sending] = {}
        self.half: dict[int, tuple[ParsedFrame, bytes, bytearray, int]] = {}
        self.asking: dict[int, Asking] = {}
        self.next_id = 2
        self.useless = 0
        self.open = False
        self.closing = False
        self.heard: int = 0  # frames
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


class Sender(End):
    """Answers streams and channels."""

    # -- streams -----------------------------------------------------------------------------------
    async def stream(self, seen: ParsedFrame, route: str, data: bytes) -> None:
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

    async def on_stream(self, stream: Sending, seen: ParsedFrame) -> None:
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

    async def channel(self, stream: Sending, seen: ParsedFrame) -> None:
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
        for _ in range(1_000_000 if self.has("serves one stream at a time") else 16):
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
            if len(self.hoard) < 4:
                self.hoard.append(b"h" * FRESH)
            return
        await self.send(frames.payload(stream.id, data))


class Asker(Sender):
    """Asks for what a script says."""

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

    async def answer(self, seen: ParsedFrame) -> None:
        asking = self.asking.get(seen.stream)
        if asking is None or (asking.over and not self.has("speaks behind the end")):
            return
        if seen.kind == ERROR:
            code = seen.number if not self.has("loses codes") else 0
            if not (self.has("loses errors of applications") and seen.number > 0x300):
                await self.told(asking, f"error {code}")
        elif seen.kind == PAYLOAD:
            await self.element(asking, seen)

    async def element(self, asking: Asking, seen: ParsedFrame) -> None:
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
