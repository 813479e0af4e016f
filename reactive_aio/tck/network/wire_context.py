"""A law of the wire and its context: connections to the server, and the record of each stream."""

import asyncio
import itertools
import ssl
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from ...errors import RuleViolation
from ...testing.journal import Entry, Journal, Kind
from ..law import Law, NotJudged, law
from ..timeouts import Timeouts
from . import frames
from .frames import (
    CANCEL,
    ERROR,
    KEEPALIVE,
    PAYLOAD,
    REQUEST_N,
    REQUEST_RESPONSE,
    RESPOND,
    Codes,
    ParsedFrame,
)
from .server import ServerProfile
from .transports import ServerAddress, Transport, open_transport

_pings = itertools.count(1)
"""The kit's own KEEPALIVE frames carry a number, to recognize their answers."""
_STREAM_CODES = range(Codes.APPLICATION_ERROR, Codes.INVALID + 1)

Fault = tuple[str, str]
"""The rule that a frame breaks, and how."""


class ServerUnreachable(Exception):
    """The server accepts no connection, or does not answer."""


@dataclass
class WireContext:
    """Opens connections for one law, about *rule*, and holds what they recorded."""

    address: ServerAddress
    profile: ServerProfile
    timeouts: Timeouts
    tls: ssl.SSLContext | None = None
    rule: str = ""
    has_timed_out: bool = False
    peers: list["PeerConnection"] = field(default_factory=list["PeerConnection"])

    async def connect_without_setup(self) -> "PeerConnection":
        """A new connection on which no frame has been sent."""
        journal = Journal(f"connection {len(self.peers) + 1}")
        try:
            transport = await asyncio.wait_for(
                open_transport(self.address, self.tls), self.timeouts.response
            )
        except (OSError, EOFError, TimeoutError) as error:
            why = str(error) or "it took too long"
            raise ServerUnreachable(f"no connection: {why}") from error
        peer = PeerConnection(self, transport, journal)
        self.peers.append(peer)
        return peer

    async def connect(self, **options: Any) -> "PeerConnection":
        """A new connection whose SETUP the server has accepted."""
        peer = await self.connect_without_setup()
        await peer.send(self.setup(**options))
        if not await peer.ping():
            why = peer.last_error() or "KEEPALIVE was not answered"
            raise ServerUnreachable(f"SETUP was not accepted: {why}")
        return peer

    def setup(self, *, user: tuple[str, str] | None = None, **options: Any) -> bytes:
        """SETUP with the credentials of *user*, or those that the server accepts."""
        user = user or self.profile.user
        if user is not None:
            options.setdefault("metadata", frames.composite(frames.simple_auth(*user)))
        elif self.profile.routing == "plain":
            options.setdefault("metadata_mime", b"message/x.rsocket.routing.v0")
        return frames.setup(**options)

    def metadata(self, name: str, length: int = 0) -> bytes:
        """The metadata of a request to the route *name*."""
        route = self.profile.routes.get(name)
        if not route:
            raise NotJudged(f"the server does not offer {name}")
        return self.route_metadata(route.replace("{n}", str(length)))

    def route_metadata(self, route: str) -> bytes:
        number, item = frames.routing(route)
        return item if self.profile.routing == "plain" else frames.composite((number, item))

    async def __aenter__(self) -> "WireContext":
        return self

    async def __aexit__(self, *_error: object) -> None:
        for peer in self.peers:
            await peer.close()


def is_stream_code(code: int) -> bool:
    """Whether a stream may fail with that code."""
    return code in _STREAM_CODES or 0x301 <= code <= 0xFFFFFFFE


@dataclass
class StreamRecord:
    """One stream that the kit has opened."""

    id: int
    kind: int
    requested: int
    elements: list[bytes] = field(default_factory=list[bytes])
    end: str = ""
    """``complete`` or ``error``, when the peer has terminated the stream."""
    code: int = 0
    """The code of the peer's error."""
    is_cancelled: bool = False
    """Whether the kit has sent CANCEL."""
    frames_after_cancel: int = 0
    requested_by_peer: int = 0
    """What the peer has requested on a channel."""
    is_cancelled_by_peer: bool = False
    """Whether the peer has sent CANCEL on a channel."""
    _data: bytes | None = None
    _is_element: bool = False

    def receive(self, frame: ParsedFrame) -> Fault | None:
        """Record a frame; return its fault, if it has one."""
        if frame.kind == REQUEST_N:
            self.requested_by_peer += frame.number
            return None
        if frame.kind == CANCEL:
            self.is_cancelled_by_peer = True
            return None
        if frame.kind not in (PAYLOAD, ERROR):
            return "N.12", f"{frame} is not a frame that a responder sends"
        if self.end:
            return "N.19", f"after its end came {frame}"
        if self.is_cancelled:
            self.frames_after_cancel += 1
            return None
        if frame.kind == PAYLOAD:
            return self._receive_payload(frame)
        self.end, self.code = "error", frame.number
        if not is_stream_code(frame.number):
            return "N.26", f"a stream failed by {frame}, which is not a code of streams"
        return None

    def _receive_payload(self, frame: ParsedFrame) -> Fault | None:
        if self._data is None and not (frame.is_next or frame.is_complete or frame.has_follows):
            return "N.12", "a PAYLOAD that is neither NEXT nor COMPLETE"
        if frame.metadata is not None and self._data:
            # Metadata precedes data in the fragments of an element.
            return "N.30", "metadata came in a fragment after data"
        data, is_element = (self._data or b"") + frame.data, self._is_element or frame.is_next
        if frame.has_follows:
            self._data, self._is_element = data, is_element
            return None
        self._data, self._is_element = None, False
        if frame.is_complete:
            self.end = "complete"
        if not is_element:
            return None
        self.elements.append(data)
        if self.kind == REQUEST_RESPONSE:
            if not frame.is_complete:
                self.end = "complete"
                return "N.20", "the answer is not COMPLETE"
        elif len(self.elements) > self.requested:
            return "N.14", f"{self.requested} were requested in all, {len(self.elements)} came"
        return None


class PeerConnection:
    """One connection, with the kit at this end and the server at the other."""

    def __init__(self, context: WireContext, transport: Transport, journal: Journal) -> None:
        self.context = context
        self.transport = transport
        self.journal = journal
        self.faults: list[RuleViolation] = []
        self.streams: dict[int, StreamRecord] = {}
        self.connection_frames: list[ParsedFrame] = []
        """The frames on stream 0, except answers to `ping`."""
        self.peer_streams: dict[int, list[ParsedFrame]] = {}
        """The frames on streams that the server opened, by their ids."""
        self.is_closed: bool = False
        self._answered_pings: set[bytes] = set()
        self._next_id = 1
        self._has_news = asyncio.Event()
        self._reader = asyncio.create_task(self._read(), name="tck: read a connection")

    # -- sending -----------------------------------------------------------------------------------
    async def send(self, *sent: bytes) -> None:
        """Send frames; a closed connection is not an error here."""
        for each in sent:
            self.note(f"-> {ParsedFrame.of(each)}")
        await self.flood(sent)

    async def flood(self, sent: Iterable[bytes]) -> None:
        """Send many frames without recording them, until the server no longer reads."""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(self.context.timeouts.law / 2):
                for number, each in enumerate(sent):
                    if self.is_closed:
                        return
                    await self.transport.send(each)
                    if number % 64 == 63:
                        await asyncio.sleep(0)  # drain() does not yield while its buffer has room

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes that are not a frame."""
        self.note(f"-> {data[:40]!r}{'…' if len(data) > 40 else ''}")
        with suppress(OSError):
            await self.transport.send_bytes(data)

    def note(self, words: str) -> Entry:
        return self.journal.note(Kind.NOTE, words)

    # -- requests ----------------------------------------------------------------------------------
    def new_stream(self, kind: int, requested: int = 1) -> StreamRecord:
        """The record of a stream that is about to be opened."""
        record = StreamRecord(self._next_id, kind, requested)
        self._next_id += 2
        self.streams[record.id] = record
        return record

    async def request(
        self,
        kind: int,
        name: str,
        *,
        n: int = 1,
        data: bytes = b"",
        flags: int = 0,
        length: int = 0,
    ) -> StreamRecord:
        """Send a request to the route *name*; *length* is that of its stream."""
        metadata = self.context.metadata(name, length)
        record = self.new_stream(kind, n)
        await self.send(
            frames.request(kind, record.id, n=n, data=data, metadata=metadata, flags=flags)
        )
        return record

    async def run_script(self, script: str) -> StreamRecord:
        """Make the server send requests, which are recorded in `peer_streams`."""
        return await self.request(REQUEST_RESPONSE, "ask", data=script.encode())

    async def request_more(self, record: StreamRecord, n: int) -> None:
        record.requested += n
        await self.send(frames.request_n(record.id, n))

    async def cancel(self, record: StreamRecord) -> None:
        record.is_cancelled = True
        await self.send(frames.cancel(record.id))

    # -- waiting -----------------------------------------------------------------------------------
    async def wait_until(self, condition: Callable[[], bool], within: float | None = None) -> bool:
        """Wait for *condition*; False after a timeout, or if the connection is closed."""
        limit = self.context.timeouts.response if within is None else within
        try:
            async with asyncio.timeout(limit):
                while not condition():
                    if self.is_closed:
                        return False
                    self._has_news.clear()
                    await self._has_news.wait()
        except TimeoutError:
            self.context.has_timed_out = self.context.has_timed_out or within is None
            return False
        return True

    async def wait_for_end(self, record: StreamRecord) -> bool:
        """Wait for the end of a stream, as long as its elements arrive."""
        known = -1

        def has_progressed() -> bool:
            return bool(record.end) or len(record.elements) > known

        while not record.end:
            known = len(record.elements)
            if not await self.wait_until(has_progressed):
                return False
        return True

    async def wait_for_elements(self, record: StreamRecord, count: int) -> bool:
        """Wait for *count* elements in all."""
        await self.wait_until(lambda: len(record.elements) >= count or bool(record.end))
        return len(record.elements) >= count

    async def wait_for_requested(self, record: StreamRecord, count: int) -> bool:
        """Wait until the server has requested *count* elements in all on a channel."""
        await self.wait_until(lambda: record.requested_by_peer >= count or bool(record.end))
        return record.requested_by_peer >= count

    async def wait_for_peer_streams(self, count: int) -> bool:
        """Wait until the server has opened *count* streams."""
        return await self.wait_until(lambda: len(self.peer_streams) >= count)

    async def ping(self) -> bool:
        """Wait for the answer to a KEEPALIVE: the server has handled all frames before it."""
        data = b"tck %d" % next(_pings)
        await self.send(frames.keepalive(data))
        return await self.wait_until(lambda: data in self._answered_pings)

    async def settle(self) -> bool:
        """Wait until frames under way have arrived; False if the connection is closed."""
        is_alive = await self.ping()
        await asyncio.sleep(self.context.timeouts.quiet_period)
        return is_alive and await self.ping()

    async def wait_for_close(self, within: float | None = None) -> bool:
        await self.wait_until(lambda: False, within)
        return self.is_closed

    # -- requirements ------------------------------------------------------------------------------
    def violation(self, what: str, rule: str = "") -> RuleViolation:
        """The error to raise, about *rule* or that of the law.

        The offence is marked at the last entry of the journal.
        """
        rule = rule or self.context.rule
        last = self.journal.entries[-1] if self.journal.entries else self.note("nothing happened")
        self.journal.mark(last, f"{rule}: {what}")
        return RuleViolation(rule, what)

    async def require_alive(self, after: str) -> None:
        if not await self.settle():
            how = "it was closed" if self.is_closed else "KEEPALIVE was not answered"
            why = self.last_error() or how
            raise self.violation(f"after {after} the connection did not continue: {why}")

    async def require_error_and_close(self, after: str, *codes: Codes) -> None:
        """Require an ERROR of one of *codes* on stream 0, and a closed connection."""
        is_closed = await self.wait_for_close()
        errors = self.connection_frames_of(ERROR)
        if not errors:
            how = "the connection was closed without an error" if is_closed else "nothing came"
            raise self.violation(f"after {after} {how}; {_names(codes)} was expected")
        if errors[0].number not in codes:
            raise self.violation(f"{after} was answered by {errors[0]}, not {_names(codes)}")
        if not is_closed:
            what = f"{after} was answered by {errors[0]}, and the connection was left open"
            raise self.violation(what)

    def last_error(self) -> ParsedFrame | None:
        return next(reversed(self.connection_frames_of(ERROR)), None)

    def connection_frames_of(self, kind: int) -> list[ParsedFrame]:
        return [each for each in self.connection_frames if each.kind == kind]

    # -- receiving ---------------------------------------------------------------------------------
    async def _read(self) -> None:
        while (raw := await self.transport.receive()) is not None:
            frame = ParsedFrame.of(raw)
            entry = self.note(f"<- {frame}")
            fault = ("N.12", f"{frame}") if frame.problem else self._record(frame)
            if fault is not None:
                rule, what = fault
                if not self.faults:
                    self.journal.mark(entry, f"{rule}: {what}")
                self.faults.append(RuleViolation(rule, what))
            if frame.kind == KEEPALIVE and frame.flags & RESPOND:
                await self.flood([frames.keepalive(frame.data, respond=False)])
            self._has_news.set()
        self.note(f"<- the end {self.transport.close_code}".rstrip())
        self.is_closed = True
        self._has_news.set()

    def _record(self, frame: ParsedFrame) -> Fault | None:
        if frame.stream == 0:
            if frame.kind == KEEPALIVE and not frame.flags & RESPOND and frame.data[:4] == b"tck ":
                self._answered_pings.add(frame.data)
            else:
                self.connection_frames.append(frame)
            return None
        if frame.stream % 2 == 0:
            is_first = frame.stream not in self.peer_streams
            self.peer_streams.setdefault(frame.stream, []).append(frame)
            if is_first and frame.kind in (REQUEST_N, CANCEL, PAYLOAD):
                return "N.39", f"the first frame of a stream is {frame}"
            return None
        record = self.streams.get(frame.stream)
        if record is None:
            return "N.19", f"{frame} came on a stream that was never opened"
        return record.receive(frame)

    async def stop_reading(self) -> None:
        """Stop reading, so that the server's output blocks."""
        self._reader.cancel()
        with suppress(asyncio.CancelledError):
            await self._reader

    async def close(self) -> None:
        self.transport.close()
        await self.stop_reading()


def _names(codes: tuple[Codes, ...]) -> str:
    return " or ".join(code.name for code in codes)


ConnectedScenario = Callable[[PeerConnection], Coroutine[Any, Any, None]]


def connected_law(*needs: str) -> Callable[[ConnectedScenario], Law]:
    """Make a law of a scenario on one connection, whose SETUP the server has accepted."""

    def decorate(scenario: ConnectedScenario) -> Law:
        @wraps(scenario)
        async def connected(context: WireContext) -> None:
            await scenario(await context.connect())

        return law(*needs)(connected)

    return decorate
