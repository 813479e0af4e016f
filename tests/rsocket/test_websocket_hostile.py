"""WebSocket input within and against the rules, from clients and from servers."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from websockets.frames import Frame, Opcode
from websockets.server import ServerProtocol

from reactive_aio import Flow, from_iterable
from reactive_aio.rsocket import (
    BYTES,
    ConnectionLost,
    ErrorCode,
    Limits,
    Payload,
    Router,
    Server,
    connect,
    serve,
)
from reactive_aio.rsocket.link.transports import websocket
from reactive_aio.rsocket.protocol.codec import encode
from reactive_aio.rsocket.protocol.connection import Phase
from reactive_aio.rsocket.protocol.frames import Error, KeepAlive, PayloadFrame, RequestFnf
from reactive_aio.rsocket.protocol.limits import MemoryBudget
from reactive_aio.rsocket.protocol.metadata import ROUTING, write_composite, write_routing
from reactive_aio.testing.probes import SubscriberProbe
from tests.rsocket.test_transports import peak
from tests.rsocket.websocket_peer import SETUP, Peer, stream

routes = Router()


@routes.route("letters")
def letters() -> Flow[bytes]:
    return from_iterable([b"a", b"b", b"c"])


async def serving(**options: Any) -> Server:
    return await serve("ws://127.0.0.1:0", routes, **options)


async def letters_come(peer: Peer) -> None:
    """Receive the elements requested by `stream("letters", …)`."""
    came = b""
    while True:
        frame = await peer.receive()
        assert isinstance(frame, PayloadFrame)
        came += frame.payload.data
        if frame.complete:
            break
    assert came == b"abc"


# -- within the rules ------------------------------------------------------------------------------
async def test_fragmented_messages_may_be_interleaved_with_pings() -> None:
    async with await serving() as server, Peer(server.uri) as peer:
        await peer.shake_hands()
        peer.frame(Opcode.BINARY, SETUP[:5], fin=False)
        peer.frame(Opcode.CONT, b"", fin=False)
        peer.frame(Opcode.PING, b"are you there?")
        peer.frame(Opcode.CONT, SETUP[5:])
        request = stream("letters", 9)
        peer.frame(Opcode.BINARY, b"", fin=False)
        for at in range(len(request)):
            peer.frame(Opcode.CONT, request[at : at + 1], fin=False)
        peer.frame(Opcode.CONT, b"")
        assert await peer.next(Opcode.PONG) == b"are you there?"
        await letters_come(peer)


async def test_bytes_may_be_cut_anywhere() -> None:
    async with await serving() as server, Peer(server.uri) as peer:
        await peer.shake_hands()
        for message in (SETUP, stream("letters", 9)):
            peer.protocol.send_binary(message)
        [driver] = server._drivers
        wire: Any = driver.line.transport
        for byte in b"".join(peer.protocol.data_to_send()):
            wire.data_received(bytes([byte]))
        await letters_come(peer)


async def test_the_subprotocol_rsocket_is_negotiated() -> None:
    async with await serving() as server, Peer(server.uri) as peer:
        peer.protocol.available_subprotocols = ["graphql", "rsocket"]  # type: ignore[list-item]
        await peer.shake_hands()
        assert peer.protocol.subprotocol == "rsocket"


async def test_compression_is_not_offered() -> None:
    headers = {"Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits"}
    async with await serving() as server, Peer(server.uri) as peer:
        await peer.shake_hands(**headers)
        assert peer.answer.status_code == 101
        assert "Sec-WebSocket-Extensions" not in peer.answer.headers


# -- against the rules -----------------------------------------------------------------------------
def text(peer: Peer) -> None:
    peer.frame(Opcode.TEXT, b"hello")


def text_in_pieces(peer: Peer) -> None:
    peer.frame(Opcode.TEXT, b"hel", fin=False)
    peer.frame(Opcode.CONT, b"lo")


def too_long(peer: Peer) -> None:
    peer.frame(Opcode.BINARY, bytes(10_001))


def too_long_in_pieces(peer: Peer) -> None:
    peer.frame(Opcode.BINARY, bytes(6_000), fin=False)
    peer.frame(Opcode.CONT, bytes(6_000))


def announced_only(peer: Peer) -> None:
    peer.writer.write(b"\x82\xff" + (2**40).to_bytes(8, "big"))


def unmasked(peer: Peer) -> None:
    peer.frame(Opcode.BINARY, bytes(20), mask=False)


def odd(peer: Peer) -> None:
    peer.writer.write(b"\x8b\x80\x00\x00\x00\x00")  # an unknown opcode


def many_pings(peer: Peer) -> None:
    for _ in range(200):
        peer.frame(Opcode.PING, b"")


def many_empty_pieces(peer: Peer) -> None:
    peer.frame(Opcode.BINARY, b"", fin=False)
    for _ in range(200):
        peer.frame(Opcode.CONT, b"", fin=False)


WRONG: list[tuple[Callable[[Peer], None], int]] = [
    (text, 1003),
    (text_in_pieces, 1003),
    (too_long, 1009),
    (too_long_in_pieces, 1009),
    (announced_only, 1009),
    (unmasked, 1002),
    (odd, 1002),
    (many_pings, 1008),
    (many_empty_pieces, 1008),
]


@pytest.mark.parametrize("set_up", [True, False], ids=["after SETUP", "before SETUP"])
@pytest.mark.parametrize(("wrong", "code"), WRONG, ids=lambda each: getattr(each, "__name__", each))
async def test_a_violation_closes_with_its_code(
    wrong: Callable[[Peer], None], code: int, set_up: bool
) -> None:
    limits = Limits(max_frame=10_000, max_useless=100)
    async with await serving(limits=limits) as server, Peer(server.uri) as peer:
        await peer.shake_hands()
        if set_up:
            peer.send(SETUP, stream("letters", 9))
            await letters_come(peer)
        wrong(peer)
        assert (await peer.closed()).code == code
    assert server.connections == 0


async def test_messages_after_a_violation_are_ignored() -> None:
    async with await serving() as server, Peer(server.uri) as peer:
        await peer.shake_hands()
        peer.writer.write(b"")
        first = peer.protocol
        first.send_binary(SETUP)
        data = b"".join(first.data_to_send())
        first.send_text(b"oh")
        data += b"".join(first.data_to_send())
        first.send_binary(stream("letters", 9))
        data += b"".join(first.data_to_send())
        peer.writer.write(data)
        assert (await peer.closed()).code == 1003
        assert not [each for each in peer.came if each.opcode is Opcode.BINARY]


async def test_an_unfinished_first_message_is_limited() -> None:
    limits = Limits(max_setup=1000)
    async with await serving(limits=limits) as server, Peer(server.uri) as peer:
        await peer.shake_hands()
        peer.frame(Opcode.BINARY, bytes(5000), fin=False)
        assert (await peer.closed()).code == 1009


@pytest.mark.parametrize("message", [b"", b"abc", bytes(6), SETUP[:-1], bytes(70_000)])
async def test_a_malformed_frame_fails_the_connection(message: bytes) -> None:
    async with await serving() as server, Peer(server.uri) as peer:
        await peer.shake_hands()
        peer.send(message)
        frame = await peer.receive()
        assert isinstance(frame, Error)
        assert frame.code == ErrorCode.INVALID_SETUP
        assert (await peer.closed()).code == 1000


# -- slow peers ------------------------------------------------------------------------------------
async def test_a_missing_handshake_closes_the_connection() -> None:
    async with await serving(limits=Limits(setup_timeout=0.02)) as server, Peer(server.uri) as peer:
        peer.writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n")
        answer = await peer.reader.read()
        assert answer.startswith(b"HTTP/1.1 408 ")
        peer.writer.close()
        await gone(server)


async def test_a_missing_setup_closes_the_connection() -> None:
    async with await serving(limits=Limits(setup_timeout=0.02)) as server, Peer(server.uri) as peer:
        await peer.shake_hands()
        frame = await peer.receive()
        assert isinstance(frame, Error)
        assert frame.code == ErrorCode.INVALID_SETUP
        assert (await peer.closed()).code == 1000


@pytest.mark.parametrize("whole", [True, False], ids=["pieces", "one frame"])
async def test_an_unfinished_message_closes_the_connection(
    whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "CLOSE_TIMEOUT", 0.02)  # no close frame fits inside a message
    limits = Limits(frame_timeout=0.02)
    async with await serving(limits=limits) as server, Peer(server.uri) as peer:
        await peer.shake_hands()
        peer.send(SETUP, stream("letters", 9))
        await letters_come(peer)
        if whole:
            peer.frame(Opcode.BINARY, bytes(100), fin=False)
            peer.frame(Opcode.PING, b"")
        else:
            peer.writer.write(b"\x82\xe4" + bytes(50))
        frame = await peer.receive()
        assert isinstance(frame, Error)
        assert frame.code == ErrorCode.CONNECTION_ERROR
        assert b"did not come in time" in frame.data
        assert (await peer.closed()).code == 1000


async def test_a_slow_message_within_the_timeout_is_accepted() -> None:
    async with await serving() as server, Peer(server.uri) as peer:
        await peer.shake_hands()
        peer.frame(Opcode.BINARY, SETUP[:9], fin=False)
        await peer.writer.drain()
        peer.frame(Opcode.PING, b"")
        await peer.next(Opcode.PONG)
        [driver] = server._drivers
        wire: Any = driver.line.transport
        assert wire._message_timer is not None
        peer.frame(Opcode.CONT, SETUP[9:])
        peer.send(stream("letters", 9))
        await letters_come(peer)
        assert wire._message_timer is None


async def test_an_unfinished_closing_handshake_is_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "CLOSE_TIMEOUT", 0.02)
    async with await serving() as server, Peer(server.uri) as peer:
        await peer.shake_hands()
        peer.send(SETUP, stream("letters", 9))
        await letters_come(peer)
        peer.frame(Opcode.TEXT, b"")
        assert await peer.next(Opcode.CLOSE)
        await gone(server)


async def test_closing_the_server_is_bounded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "CLOSE_TIMEOUT", 0.02)
    async with Peer((server := await serving()).uri) as peer:
        await peer.shake_hands()
        peer.send(SETUP)
        await server.aclose()  # the peer does not read
        assert server.connections == 0


async def gone(server: Server) -> None:
    """All connections have ended."""
    drivers = [*server._drivers]
    ended = [asyncio.Event() for _ in drivers]
    for driver, event in zip(drivers, ended, strict=True):

        def tell(_: Any, event: asyncio.Event = event) -> None:
            event.set()

        driver.add_close_callback(tell)
    for event in ended:
        await event.wait()
    assert server.connections == 0


# -- peers that do not read ------------------------------------------------------------------------
@pytest.mark.parametrize("size", [10, 1000, 100_000])
async def test_a_peer_that_requests_everything_and_reads_nothing_costs_little(size: int) -> None:
    made = 0
    plenty = Router()

    def element(_: int) -> bytes:
        nonlocal made
        made += 1
        return bytes(size)

    @plenty.route("all")
    def everything() -> Flow[bytes]:
        return from_iterable(range(10**9)).map(element)

    async with await serve("ws://127.0.0.1:0", plenty) as server, Peer(server.uri) as peer:
        await peer.shake_hands()
        before = peak()
        peer.send(SETUP, stream("all", 2**31 - 1))
        peer.writer.transport.pause_reading()
        seen = -1
        while seen != made or not made:
            seen = made
            for _ in range(200):
                await asyncio.sleep(0)
        assert peak() - before < 8 * 1024 * 1024
        [driver] = server._drivers
        wire: Any = driver.line.transport
        held = driver.connection.queued_bytes + wire._socket.get_write_buffer_size()
        assert size <= held < 1024 * 1024
        driver.ending.abort()


async def test_a_peer_that_pings_and_reads_nothing_is_aborted() -> None:
    limits = Limits(max_useless=10**6, max_backlog=50_000)
    async with await serving(limits=limits) as server, Peer(server.uri) as peer:
        await peer.shake_hands()
        peer.send(SETUP)
        peer.writer.transport.pause_reading()
        ended = asyncio.ensure_future(gone(server))
        with contextlib.suppress(ConnectionError):
            while not ended.done():
                for _ in range(100):
                    peer.frame(Opcode.PING, bytes(125))
                await peer.writer.drain()
        await ended


async def test_a_message_that_was_not_read_is_not_late() -> None:
    """Its time begins again when the handlers are no longer busy."""
    routes, gate = Router(), asyncio.Event()

    @routes.route("work")
    async def work() -> None:
        await gate.wait()

    metadata = write_composite([(ROUTING, write_routing("work"))])
    requests = [encode(RequestFnf(stream_id, Payload(b"", metadata))) for stream_id in (1, 3)]
    async with (
        await serve("ws://127.0.0.1:0", routes, max_fire_and_forget=1) as server,
        Peer(server.uri) as peer,
    ):
        await peer.shake_hands()
        peer.send(SETUP)
        driver: Any = next(iter(server._drivers))
        async with asyncio.timeout(20):
            while driver.connection.phase is not Phase.OPEN:  # noqa: ASYNC110 - turns of the loop
                await asyncio.sleep(0)
            peer.send(*requests)
            peer.frame(Opcode.BINARY, b"\0\0", fin=False)
            while not driver._is_busy:  # noqa: ASYNC110 - turns of the loop
                await asyncio.sleep(0)
            transport = driver.line.transport
            assert transport._message_timer is None
            gate.set()
            while driver._is_busy or not transport._is_fragmented:  # noqa: ASYNC110 - the same
                await asyncio.sleep(0)
            assert transport._message_timer is not None


@pytest.mark.parametrize("way", ["one frame", "fragments"])
async def test_a_part_of_a_message_counts_for_the_process(way: str) -> None:
    limits = Limits(budget=MemoryBudget(450_000))
    async with await serving(limits=limits) as server, Peer(server.uri) as peer:
        await peer.shake_hands()
        peer.send(SETUP)
        if way == "fragments":
            peer.frame(Opcode.BINARY, bytes(300_000), fin=False)
        else:
            peer.writer.write(Frame(Opcode.BINARY, bytes(400_000)).serialize(mask=True)[:300_000])
        async with asyncio.timeout(20):
            while server.stats().held_bytes < 200_000:  # noqa: ASYNC110 - until it has come
                await asyncio.sleep(0)
        async with Peer(server.uri) as other:
            await other.shake_hands()
            other.send(SETUP)
            other.frame(Opcode.BINARY, bytes(300_000), fin=False)
            error = await other.receive()
            assert isinstance(error, Error)
            assert b"the process holds as much as it may" in error.data
            await other.closed()


# -- refused connections ---------------------------------------------------------------------------
async def test_one_connection_too_many_reads_why_it_is_refused() -> None:
    async with await serving(max_connections=1) as server, Peer(server.uri) as first:
        async with Peer(server.uri) as second:  # the first has not finished its handshake
            await second.shake_hands()
            second.send(SETUP, stream("letters", 9))
            await letters_come(second)
            await first.shake_hands()
            first.send(SETUP, stream("letters", 9))
            reason = b"the server has too many connections; try again later"
            assert await first.receive() == Error(0, ErrorCode.CONNECTION_ERROR, reason)
            await first.closed()
        assert server.refused_connections == 1


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", b"426"),
        (b"GET /elsewhere HTTP/1.1\r\nHost: here\r\n\r\n", b"404"),
        (b"POST / HTTP/1.1\r\nHost: here\r\n\r\n", b""),  # some versions of websockets respond
        (b"\x00\x00\x31\x00\x00\x00\x00", b""),  # RSocket over TCP instead of HTTP
    ],
)
async def test_an_http_request_without_upgrade_is_refused(request_: bytes, status: bytes) -> None:
    async with await serving() as server, Peer(server.uri) as peer:
        peer.writer.write(request_)
        peer.writer.write_eof()
        answer = await peer.reader.read()
        assert answer.startswith(b"HTTP/1.1 " + status if status else b"")


@pytest.mark.parametrize(
    ("origins", "origin", "status"),
    [
        ([], "http://127.0.0.1:{port}", 101),
        ([], "https://evil.example", 403),
        (["https://shop.example"], "https://shop.example", 101),
        (["https://shop.example"], "https://evil.example", 403),
        (["*"], "https://evil.example", 101),
        ([], "http://[", 403),  # malformed
    ],
)
async def test_pages_of_other_origins_are_refused_unless_listed(
    origins: list[str], origin: str, status: int
) -> None:
    async with await serving(origins=origins) as server, Peer(server.uri) as peer:
        assert server.address is not None
        await peer.shake_hands(Origin=origin.format(port=server.address.port))
        assert peer.answer.status_code == status


@pytest.mark.parametrize(
    ("uri", "options", "error", "message"),
    [
        ("tcp://127.0.0.1:0", {"origins": ["*"]}, ValueError, "ws://"),
        ("ws://127.0.0.1:0", {"origins": "https://shop.example"}, TypeError, "list"),
        ("ws://127.0.0.1:0", {"origins": ["shop.example"]}, ValueError, "no browser sends"),
        ("wss://127.0.0.1:0", {}, ValueError, "certificate"),
    ],
)
async def test_invalid_options_are_refused(
    uri: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        await serve(uri, routes, **options)


# -- servers that break the rules ------------------------------------------------------------------
class Rogue:
    """A scripted WebSocket server."""

    def __init__(self, act: Callable[["Rogue"], None], *, answer: bytes | None = None) -> None:
        self._act = act
        self._answer = answer
        self.protocol = ServerProtocol()
        self.writer: Any = None
        self.done = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        if self._answer is None:
            self.protocol.receive_data(await reader.readuntil(b"\r\n\r\n"))
            [request] = self.protocol.events_received()
            self.protocol.send_response(self.protocol.accept(request))  # type: ignore[arg-type]
            self.flush()
            self.protocol.receive_data(await reader.read(65536))  # SETUP and KEEPALIVE
            self.protocol.send_binary(encode(KeepAlive(False)))
            self.flush()
            self.protocol.receive_data(await reader.read(65536))  # the request
            self._act(self)
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(65536):
                    self.protocol.receive_data(data)
                    self.flush()
        else:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self._answer)
        writer.close()
        self.done.set()

    def flush(self) -> None:
        data = self.protocol.data_to_send()
        self.writer.write(b"".join(data))
        if data and not data[-1]:
            self.writer.write_eof()


@contextlib.asynccontextmanager
async def rogue(server: Rogue) -> AsyncGenerator[str]:
    async with await asyncio.start_server(server, "127.0.0.1", 0) as listening:
        yield f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}/rsocket"


def says_text(server: Rogue) -> None:
    server.protocol.send_text(b"hello")
    server.flush()


def says_too_much(server: Rogue) -> None:
    server.protocol.send_binary(bytes(20_000))
    server.flush()


def masks(server: Rogue) -> None:
    server.writer.write(b"\x82\x81\x00\x00\x00\x00\x00")


def leaves(server: Rogue) -> None:
    server.protocol.send_close(1001, "going away")
    server.flush()


@pytest.mark.parametrize(
    ("act", "code", "says"),
    [
        (says_text, 1003, "binary messages"),
        (says_too_much, 1009, "1009"),
        (masks, 1002, "1002"),
        (leaves, 1001, "closed"),
    ],
)
async def test_a_violation_by_the_server_fails_the_streams_of_the_client(
    act: Callable[[Rogue], None], code: int, says: str
) -> None:
    server = Rogue(act)
    async with rogue(server) as uri:
        async with await connect(uri, limits=Limits(max_frame=10_000)) as requester:
            probe: SubscriberProbe[bytes] = SubscriberProbe(request=1)
            requester.request_stream(route="x").subscribe(probe)
            await probe.end()
            assert isinstance(probe.error, ConnectionLost)
            assert says in str(probe.error)
        await server.done.wait()
        close = server.protocol.close_rcvd
        assert close is not None
        assert close.code == code


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot here\n",
            "404 Not Found: not here",
        ),
        (b"HTTP/1.1 301 Moved\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n", "301 Moved"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "Upgrade|Connection"),
        (b"220 smtp.example ESMTP\r\n", "HTTP"),
        (b"", "no WebSocket there"),
    ],
)
async def test_a_server_without_websocket_is_reported(answer: bytes, says: str) -> None:
    async with rogue(Rogue(lambda _: None, answer=answer)) as uri:
        with pytest.raises(ConnectionLost, match=says) as caught:
            await connect(uri)
        assert uri in str(caught.value)


async def test_a_connection_attempt_times_out() -> None:
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert not (await reader.read()).endswith(b"?")
        writer.close()

    async with await asyncio.start_server(deaf, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        with pytest.raises(ConnectionLost, match="no connection within"):
            await connect(f"ws://127.0.0.1:{port}", timeout=0.05)


async def test_a_refused_connection_fails() -> None:
    async with await serving() as server:
        uri = server.uri
    with pytest.raises(ConnectionLost, match="ws://127"):
        await connect(uri)


async def test_elements_before_a_violation_are_delivered() -> None:
    def act(server: Rogue) -> None:
        frame = PayloadFrame(1, Payload(b"x"), True, False, False)

        def speak() -> None:
            server.protocol.send_binary(encode(frame))
            server.protocol.send_binary(encode(KeepAlive(True, 0, b"")))
            server.protocol.send_text(b"no")
            server.flush()

        asyncio.get_running_loop().call_later(0.02, speak)

    async with rogue(Rogue(act)) as uri, await connect(uri, codec=BYTES) as requester:
        probe: SubscriberProbe[bytes] = SubscriberProbe(request=5)
        requester.request_stream(route="x").subscribe(probe)
        await probe.end()
        assert probe.elements == [b"x"]
        assert isinstance(probe.error, ConnectionLost)
