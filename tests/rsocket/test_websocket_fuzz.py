"""Any WebSocket input: no exception, no unbounded buffer, no leak."""

import asyncio
from typing import Any

from hypothesis import given, settings, strategies as some
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from reactive_aio import Flow, from_iterable, never
from reactive_aio.rsocket import (
    JSON,
    Address,
    ClientOptions,
    Limits,
    Requester,
    Router,
    Server,
)
from reactive_aio.rsocket.client import client_driver
from reactive_aio.rsocket.link.transports.websocket import ClientTransport, ServerTransport
from reactive_aio.rsocket.protocol.codec import encode
from tests.rsocket.websocket_peer import JSON_SETUP, stream
from tests.rsocket.wire import ANY_FRAME

LIMITS = Limits(max_frame=2000, max_setup=1000, max_useless=20)
HANDSHAKE = b"".join(
    b"%s\r\n" % line
    for line in (
        b"GET / HTTP/1.1",
        b"Host: here",
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        b"Sec-WebSocket-Version: 13",
        b"",
    )
)
router = Router()
router.route("n")(lambda: from_iterable(range(100)))
router.route("never")(lambda: never())


@router.route("echo")
def echo(incoming: Flow[Any]) -> Flow[Any]:
    return incoming


DATA = some.one_of(
    some.just(JSON_SETUP),
    some.sampled_from(["n", "never", "echo", "x"]).map(lambda route: stream(route, 5)),
    ANY_FRAME.map(encode),
    some.binary(max_size=60),
    some.integers(0, 3000).map(bytes),
)


@some.composite
def framed(draw: some.DrawFn, *, client: bool = True) -> bytes:
    """A WebSocket frame, mostly a valid one."""
    opcode = draw(some.sampled_from([Opcode.BINARY] * 4 + [*Opcode]))
    frame = Frame(opcode, draw(DATA), draw(some.sampled_from([True, True, False])))
    if opcode in (Opcode.PING, Opcode.PONG, Opcode.CLOSE):
        frame = Frame(opcode, bytes(frame.data)[:125], True)
    return frame.serialize(mask=(draw(some.integers(0, 20)) > 0) is client)


def conversation(*, client: bool) -> some.SearchStrategy[list[bytes]]:
    frame = framed(client=client)
    return some.lists(frame | frame | frame | some.binary(max_size=20), max_size=20)


class Socket:
    """The part of a transport that a WebSocket transport uses."""

    def __init__(self) -> None:
        self.wire: Any = None
        self.written = b""
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return len(self.written)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """Do nothing."""

    pause_reading = resume_reading = write_eof

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        del name
        return default

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            asyncio.get_running_loop().call_soon(self.wire.connection_lost, None)

    abort = close


async def talk(chunks: list[bytes]) -> None:
    server = Server(router, on_error=str, limits=LIMITS, max_connections=9)
    socket = Socket()
    address = Address.parse("ws://here/")
    wire: Any = ServerTransport(server.new_driver(), address, frozenset())
    socket.wire = wire
    wire.connection_made(socket)
    for chunk in chunks:
        if socket.is_closed:
            break
        wire.data_received(chunk)
        assert len(wire._fragments) <= LIMITS.max_frame
        for _ in range(3):
            await asyncio.sleep(0)
    check_received(socket.written)
    if not socket.is_closed:
        wire.eof_received()
    socket.close()
    await server.aclose()
    assert server.connections == 0
    assert wire._message_timer is wire._close_timer is None


def check_received(written: bytes) -> None:
    """A client can decode all that it receives."""
    client = ClientProtocol(parse_uri("ws://here/"))
    client.key = "AAAAAAAAAAAAAAAAAAAAAA=="
    client.receive_data(written)
    assert client.parser_exc is None


@given(conversation(client=True), some.lists(some.integers(1, 400), max_size=8))
def test_a_server_survives_any_messages(messages: list[bytes], cuts: list[int]) -> None:
    data = HANDSHAKE + b"".join(messages)
    chunks = [HANDSHAKE]
    at = len(HANDSHAKE)
    for size in [*cuts, len(data)]:
        chunks.append(data[at : at + size])
        at += size
    asyncio.run(talk([each for each in chunks if each]))


@given(some.binary(max_size=300) | some.binary(max_size=60).map(lambda end: HANDSHAKE[:-2] + end))
def test_a_server_survives_any_handshake(data: bytes) -> None:
    asyncio.run(talk([data] if data else []))


async def listen_to(messages: list[bytes], answer: bytes | None) -> None:
    """A client requests streams and receives *messages*."""
    driver = client_driver(JSON, ClientOptions(limits=LIMITS, router=router), None)
    wire: Any = ClientTransport(driver, Address.parse("ws://here/"))
    socket = Socket()
    socket.wire = wire
    wire.connection_made(socket)
    server = ServerProtocol()
    server.receive_data(socket.written)
    [request] = server.events_received()
    assert isinstance(request, Request)
    server.send_response(server.accept(request))
    wire.data_received(b"".join(server.data_to_send()) if answer is None else answer)
    requester = Requester(driver, JSON)
    streams: list[Any] = []
    if wire.opened.done():
        streams = [asyncio.ensure_future(requester.request_stream(route=each).to_list(limit=9))
                   for each in ("n", "x")]  # fmt: skip
    for message in messages:
        if not socket.is_closed:
            wire.data_received(message)
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(wire._fragments) <= LIMITS.max_frame
    socket.close()
    await asyncio.gather(*streams, wire.opened, return_exceptions=True)
    await requester.aclose()
    assert wire._message_timer is wire._close_timer is None


@settings(max_examples=100)
@given(conversation(client=False))
def test_a_client_survives_any_messages(messages: list[bytes]) -> None:
    asyncio.run(listen_to(messages, None))


@given(some.binary(max_size=200) | some.binary(max_size=60).map(lambda end: b"HTTP/1.1 " + end))
def test_a_client_survives_any_handshake(answer: bytes) -> None:
    asyncio.run(listen_to([], answer))
