"""Which connections a server has: half-open ones are few, and a full server is not shut."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

import asyncio
import contextlib
import gc
import os
import ssl
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import never
from reactive_aio.rsocket import (
    JSON,
    ConnectionLost,
    Limits,
    MemoryBudget,
    Resumption,
    Router,
    asgi_app,
    connect,
    serve,
)
from reactive_aio.rsocket.link import arrivals
from reactive_aio.rsocket.link.transports.sockets import UnixPeer
from reactive_aio.rsocket.protocol.frames import (
    Error,
    ErrorCode,
    KeepAlive,
    Payload,
    PayloadFrame,
    RequestResponse,
    RequestStream,
    Setup,
)
from reactive_aio.rsocket.protocol.metadata import (
    ROUTING,
    MetadataItem,
    write_composite,
    write_routing,
)
from reactive_aio.rsocket.server import Server
from reactive_aio.rsocket.serving.client_places import IDLE_AFTER, Full, key_of_address

from ..recipes.waiting import until
from .loop_turns import turns
from .wire import read, wire

SETUP = Setup(1_000_000, 100_000_000, "message/x.rsocket.composite-metadata.v0")
router = Router()
router.route("twice")(lambda payload: payload * 2)
router.route("never")(lambda: never())
router.route("large")(lambda: bytes(50_000))


class Peer:
    """The transport of a client at *address*, which reads everything."""

    def __init__(self, server: Server, address: str = "10.0.0.1", *first: Any) -> None:
        self.address, self.written, self.is_open = (address, 1), b"", True
        self.driver = server.new_driver()
        self.driver.attach(self)
        if self.is_open:
            self.say(*first)

    def say(self, *frames: Any) -> None:
        self.driver.data_received(wire(*frames))

    def write(self, data: bytes, /) -> None:
        self.written += data

    def pause_reading(self) -> None: ...

    resume_reading = pause_reading

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            asyncio.get_running_loop().call_soon(self.driver.connection_lost)

    abort = close

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str) -> Any:
        return self.address if name == "peername" else None

    @property
    def error(self) -> tuple[int, bytes] | None:
        """The error of the connection that was sent, if any."""
        errors = [each for each in read(self.written) if isinstance(each, Error)]
        return (errors[0].code, errors[0].data[:33]) if errors else None


def never_ends() -> RequestStream:
    metadata = write_composite([MetadataItem(ROUTING, write_routing("never"))])
    return RequestStream(1, 9, Payload(b"", metadata))


def twice(route: str = "twice") -> RequestResponse:
    metadata = write_composite([MetadataItem(ROUTING, write_routing(route))])
    return RequestResponse(3, Payload(b"2", metadata))


GAVE_WAY = (ErrorCode.CONNECTION_ERROR, b"the server has too many connectio")


# -- a full server ---------------------------------------------------------------------------------
@pytest.mark.virtual_time
async def test_a_connection_that_is_not_used_gives_way_to_a_new_one() -> None:
    async with Server(router, max_connections=3) as server:
        idle, busy, other = (Peer(server, "10.0.0.1", SETUP) for _ in range(3))
        busy.say(never_ends())
        await asyncio.sleep(IDLE_AFTER / 2)
        late = Peer(server, "10.0.0.1", SETUP)
        await turns()
        assert late.error == GAVE_WAY
        for peer in (idle, other):
            peer.say(KeepAlive(True))  # which is no use that is made of it
        await asyncio.sleep(IDLE_AFTER / 2 + 0.1)
        later = Peer(server, "10.0.0.1", SETUP, never_ends())
        await turns()
        assert [each.error for each in (idle, busy, other, later)] == [GAVE_WAY, None, None, None]
        assert [each.is_open for each in (idle, busy, other, later)] == [False, True, True, True]
        assert server.connections == 3
        assert server.stats().displaced_connections == server.refused_connections == 1


@pytest.mark.virtual_time
async def test_the_client_with_the_most_connections_gives_way_first() -> None:
    async with Server(router, max_connections=4) as server:
        rare = Peer(server, "10.0.0.1", SETUP)
        await asyncio.sleep(1)
        many = [Peer(server, "10.0.0.2", SETUP) for _ in range(3)]
        await asyncio.sleep(IDLE_AFTER + 1)
        for _ in range(2):
            assert Peer(server, "10.0.0.3", SETUP).is_open
            await turns()
        assert rare.error is None
        assert sum(each.is_open for each in many) == 1


@pytest.mark.virtual_time
async def test_a_client_whose_connections_are_all_in_use_does_not_shut_out_others() -> None:
    async with Server(router, max_connections=6) as server:
        greedy = [Peer(server, "10.0.0.1", SETUP, never_ends()) for _ in range(6)]
        others = [Peer(server, "10.0.0.2", SETUP, never_ends()) for _ in range(4)]
        await turns()
        assert [each.error for each in others] == [None, None, GAVE_WAY, GAVE_WAY]
        assert [each.is_open for each in greedy] == [True] * 4 + [False] * 2
        more = Peer(server, "10.0.0.1", SETUP)
        await turns()
        assert more.error == GAVE_WAY
        assert sum(each.is_open for each in greedy) == 4


# -- connections that are not served yet -----------------------------------------------------------
@pytest.mark.virtual_time
async def test_half_open_connections_have_few_places_of_their_own() -> None:
    async with Server(router, max_connections=2, max_arriving=3) as server:
        silent = [Peer(server, "10.0.0.1") for _ in range(9)]
        await turns()
        assert sum(each.is_open for each in silent) == server.stats().arriving == 3
        assert server.refused_connections == 6
        await asyncio.sleep(1)
        served = [Peer(server, "10.0.0.1", SETUP) for _ in range(2)]
        await turns()
        assert all(each.is_open for each in served)
        assert [each.is_open for each in silent[:3]].count(True) == 2
        await asyncio.sleep(5)  # no SETUP came in time
        assert not any(each.is_open for each in silent)
        assert server.stats().arriving == 0


@pytest.mark.virtual_time
async def test_a_crowd_that_arrives_is_in_the_way_of_itself() -> None:
    async def authenticate(_: Any) -> bool:
        await asyncio.Event().wait()
        return True

    async with Server(router, max_arriving=4, authenticate=authenticate) as server:
        crowd = [Peer(server, "10.0.0.1", SETUP) for _ in range(4)]
        other = Peer(server, "10.0.0.2", SETUP)
        await turns()
        assert [each.is_open for each in (*crowd, other)] == [False, True, True, True, True]
        more = Peer(server, "10.0.0.1", SETUP)
        assert not more.is_open


async def test_silent_tls_handshakes_give_way(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "_LEAST_TIME", 0.0)
    monkeypatch.setattr(arrivals, "_LOOK_AGAIN", 0.0)
    here = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    here.load_cert_chain(certificate)
    there = ssl.create_default_context(cafile=str(certificate))
    async with await serve("tls://127.0.0.1:0", router, ssl=here, max_arriving=2) as server:
        assert server.address is not None
        place = ("127.0.0.1", server.address.port)
        silent = [await asyncio.open_connection(*place) for _ in range(3)]
        with contextlib.suppress(ConnectionError):
            assert await silent[0][0].read() == b""
        assert server.stats().arriving == 2
        async with await connect(server.uri, codec=JSON, ssl=there) as client:
            assert await client.request_response(2, route="twice") == 4
        for _, writer in silent:
            writer.close()


async def test_a_server_that_closes_ends_tls_handshakes(certificate: Path) -> None:
    here = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    here.load_cert_chain(certificate)
    async with await serve("tls://127.0.0.1:0", router, ssl=here) as server:
        assert server.address is not None
        reader, writer = await asyncio.open_connection("127.0.0.1", server.address.port)
        while not server.stats().arriving:  # noqa: ASYNC110 - until it has been accepted
            await asyncio.sleep(0)
    with contextlib.suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize("scheme", ["tls", "wss"])
async def test_a_tls_connection_that_has_ended_is_freed_at_once(
    certificate: Path, scheme: str
) -> None:
    here = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    here.load_cert_chain(certificate)
    there = ssl.create_default_context(cafile=str(certificate))

    def buffers() -> int:  # each has 256 KiB, and the collector counts objects
        return sum(type(each).__name__ == "SSLProtocol" for each in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        async with await serve(f"{scheme}://127.0.0.1:0/", router, ssl=here) as server:
            assert server.address is not None
            place = ("127.0.0.1", server.address.port)
            for sends in (b"", b"no TLS"):
                _, writer = await asyncio.open_connection(*place)
                writer.write(sends)
                await until(lambda: server.stats().arriving == 1)
                writer.transport.abort()
                await until(lambda: server.stats().arriving == 0)
            reader, writer = await asyncio.open_connection(*place, ssl=there)
            writer.transport.abort()
            async with await connect(server.uri, codec=JSON, ssl=there) as client:
                assert await client.request_response(2, route="twice") == 4
        del reader, writer
        await turns()
        assert buffers() <= 1  # of the streams above
    finally:
        gc.enable()


@pytest.mark.virtual_time
async def test_the_requests_of_one_client_are_limited_over_its_connections() -> None:
    async with Server(router, max_requests_per_client=3) as server:
        peers = [Peer(server, "10.0.0.1", SETUP, never_ends()) for _ in range(4)]
        other = Peer(server, "10.0.0.2", SETUP, never_ends())
        peers[3].say(twice())
        await turns()
        refusals = [[each for each in read(peer.written) if isinstance(each, Error)]
                    for peer in (*peers, other)]  # fmt: skip
        assert [len(each) for each in refusals] == [0, 0, 0, 1, 0]
        assert refusals[3][0].data == b"too many requests of this client are being served"
        assert any(isinstance(each, PayloadFrame) for each in read(peers[3].written))
        peers[0].close()
        await turns()
        peers[3].say(RequestStream(5, 9, never_ends().payload))
        await turns()
        assert len([each for each in read(peers[3].written) if isinstance(each, Error)]) == 1


# -- sessions --------------------------------------------------------------------------------------
@pytest.mark.virtual_time
async def test_a_full_store_of_sessions_keeps_those_in_use() -> None:
    def setup(token: bytes) -> Setup:
        return Setup(1_000_000, 100_000_000, token=token)

    async with Server(router, resume=Resumption()) as server:
        server._responder.sessions.limit = 2
        one, two = (Peer(server, "10.0.0.1", setup(each)) for each in (b"1", b"2"))
        three = Peer(server, "10.0.0.1", setup(b"3"))
        await turns()
        assert three.error == (ErrorCode.CONNECTION_ERROR, b"the server has too many sessions;")
        one.close()
        await turns()
        assert server.stats().suspended == 1
        four = Peer(server, "10.0.0.1", setup(b"4"))
        await turns()
        assert [four.error, two.error, server.stats().suspended] == [None, None, 0]


@pytest.mark.virtual_time
async def test_sessions_that_wait_hold_a_share_of_the_budget_with_all_that_they_take() -> None:
    """Those of the client with the most end: the others are still there for theirs."""
    budget = MemoryBudget(400_000)
    limits = Limits(budget=budget)

    def leave(client: str, number: int) -> Peer:
        mime = SETUP.metadata_mime
        setup = Setup(1_000_000, 100_000_000, mime, token=b"%d" % number)
        peer = Peer(server, client, setup, twice("large"))
        peer.driver.connection_lost()
        return peer

    async with Server(router, resume=Resumption(), limits=limits) as server:
        other = leave("10.0.0.2", 0)
        assert 50_000 + 6_000 < budget.used < 50_000 + 10_000
        left = [leave("10.0.0.1", number) for number in range(1, 20)]
        await turns()
        assert server.stats().suspended == 3
        assert 150_000 < budget.used <= 200_000
        assert [each.driver.ending.is_over for each in left] == [True] * 17 + [False] * 2
        assert not other.driver.ending.is_over
    assert not budget.used


# -- who a client is -------------------------------------------------------------------------------
async def test_a_client_at_a_unix_socket_is_its_user(tmp_path: Path) -> None:
    addresses: list[Any] = []

    def key(address: Any) -> Any:
        addresses.append(address)
        return key_of_address(address)

    uri = f"unix://{tmp_path}/s"
    async with (
        await serve(uri, router, max_per_client=1, client_key=key) as server,
        await connect(server.uri),
    ):
        with pytest.raises(ConnectionLost, match="too many connections"):
            await connect(server.uri)
    assert addresses == [UnixPeer(os.getpid(), os.getuid(), os.getgid())] * 2
    assert key_of_address(addresses[0]) == ("uid", os.getuid())


async def test_a_key_that_fails_is_reported(expects_loop_errors: list[dict[str, Any]]) -> None:
    def key(_: Any) -> Any:
        raise LookupError("no such address")

    async with (
        await serve("tcp://127.0.0.1:0", router, client_key=key) as server,
        await connect(server.uri, codec=JSON) as client,
    ):
        assert await client.request_response(2, route="twice") == 4
    assert [str(each["exception"]) for each in expects_loop_errors] == ["no such address"]


async def test_an_asgi_application_knows_its_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    app = asgi_app(router, max_per_client=1, client_key=lambda address: address and address[0])
    scope = {"type": "websocket", "headers": [], "client": ["10.0.0.1", 1]}
    answers: list[Any] = []
    refusal = "this client has too many connections (max_per_client=1): close one, or use it more"

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        answers.append(message)

    def reached(key: object, _: float) -> Full | None:
        return Full("a limit", refusal) if key == "10.0.0.1" else None

    monkeypatch.setattr(app._admission, "reached", reached)
    await app(scope, receive, send)
    [answer] = answers
    assert answer["reason"] == refusal
    assert app.connections == 0
    await app.aclose()
