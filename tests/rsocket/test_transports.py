"""Sockets and byte streams; peers that disconnect or do not read."""

# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false

import asyncio
import os
import resource
import socket
import ssl
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from reactive_aio import Flow, from_iterable
from reactive_aio.rsocket import (
    BYTES,
    JSON,
    ClientOptions,
    Connection,
    ConnectionLost,
    Limits,
    Payload,
    Requester,
    Router,
    Server,
    Setup,
    connect,
    serve,
)
from reactive_aio.rsocket.client import client_driver
from reactive_aio.rsocket.link.shutdown import wait_closed
from reactive_aio.rsocket.link.transports.bytestream import StreamTransport
from reactive_aio.rsocket.protocol.metadata import ROUTING, write_composite, write_routing
from reactive_aio.rsocket.serving.client_places import key_of_address
from reactive_aio.testing.probes import SubscriberProbe
from tests.harness.leftover_checks import Context

router = Router()


@router.route("range.{n}")
def count(n: str) -> Flow[int]:
    return from_iterable(range(int(n)))


@router.route("twice")
async def twice(payload: int) -> int:
    return payload * 2


@router.route("plus")
def plus(incoming: Flow[int]) -> Flow[int]:
    return incoming.map(lambda each: each + 1)


async def converse(requester: Requester[Any]) -> None:
    """Use every interaction model."""
    assert await requester.request_response(4, route="twice") == 8
    stream = requester.request_stream(route="range.5000").to_list(limit=5000)
    channel = requester.request_channel(range(5000), route="plus").to_list(limit=5000)
    came, echoed = await asyncio.gather(stream, channel)
    assert came == [*range(5000)]
    assert echoed == [*range(1, 5001)]
    assert await requester.request_stream(route="range.5000").take(3).to_list(limit=3) == [0, 1, 2]


# -- transports ------------------------------------------------------------------------------------
async def test_tcp() -> None:
    async with (
        await serve("tcp://127.0.0.1:0", router) as server,
        await connect(server.uri, codec=JSON) as one,
        await connect(f"rsocket+{server.uri}", codec=JSON) as other,
    ):
        await asyncio.gather(converse(one), converse(other))
        assert server.connections == 2


@pytest.mark.parametrize(("given", "mode"), [({}, 0o600), ({"unix_mode": 0o660}, 0o660)])
async def test_a_unix_socket_is_for_the_same_user_unless_told(
    tmp_path: Path, given: dict[str, Any], mode: int
) -> None:
    path, umask = tmp_path / "socket", os.umask(0)
    try:
        for _ in range(2):  # the second one replaces what the first one may have left
            async with serve(f"unix://{path}", router, **given):
                found = await asyncio.to_thread(path.stat)
                assert stat.S_IMODE(found.st_mode) == mode
    finally:
        os.umask(umask)


async def test_the_mode_of_a_unix_socket_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unix_mode must be from 0 to 0o777, not 0o1000"):
        serve(f"unix://{tmp_path}/socket", router, unix_mode=0o1000)
    with pytest.raises(ValueError, match="unix_mode is that of a Unix socket"):
        await serve("tcp://127.0.0.1:0", router, unix_mode=0o600)


async def test_the_unix_socket_of_a_server_that_runs_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    async with serve(f"unix://{path}", router):
        with pytest.raises(FileExistsError, match="another process serves there"):
            await serve(f"unix://{path}", router)
        async with await connect(f"unix://{path}"):
            pass
    left_behind = tmp_path / "left"
    with socket.socket(socket.AF_UNIX) as ended:
        ended.bind(str(left_behind))
    async with serve(f"unix://{left_behind}", router), await connect(f"unix://{left_behind}"):
        pass
    with pytest.raises(FileExistsError, match="it is not a socket"):
        await serve(f"unix://{tmp_path}", router)


async def test_unix(tmp_path: Path) -> None:
    uri = f"unix://{tmp_path}/socket"
    async with await serve(uri, router) as server, await connect(uri, codec=JSON) as requester:
        await converse(requester)
        assert server.uri == uri


@pytest.mark.parametrize("scheme", ["tls", "wss"])
async def test_tls_with_certificates_on_both_sides(scheme: str, certificate: Path) -> None:
    here = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificate))
    here.load_cert_chain(certificate)
    here.verify_mode = ssl.CERT_REQUIRED
    there = ssl.create_default_context(cafile=str(certificate))
    there.load_cert_chain(certificate)
    async with (
        await serve(f"{scheme}://127.0.0.1:0", router, ssl=here) as server,
        await connect(server.uri, codec=JSON, ssl=there) as requester,
    ):
        await converse(requester)


@pytest.mark.parametrize("scheme", ["tls", "wss"])
async def test_tls_refuses_an_untrusted_server(
    scheme: str, certificate: Path, expects_loop_errors: list[Context]
) -> None:
    here = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    here.load_cert_chain(certificate)
    async with await serve(f"{scheme}://127.0.0.1:0", router, ssl=here) as server:
        with pytest.raises(ConnectionLost, match="certificate"):
            await connect(server.uri)

    # Some versions of asyncio report an aborted handshake.
    assert all("transport" in each for each in expects_loop_errors)


async def test_a_byte_stream_of_anyio() -> None:
    async with await serve("tcp://127.0.0.1:0", router) as server:
        assert server.address is not None
        stream = await anyio.connect_tcp("127.0.0.1", server.address.port)
        async with await connect(stream, codec=JSON) as requester:
            await converse(requester)


async def test_a_byte_stream_that_ends_ends_the_connection() -> None:
    async with await serve("tcp://127.0.0.1:0", router) as server:
        assert server.address is not None
        stream = await anyio.connect_tcp("127.0.0.1", server.address.port)
        requester = await connect(stream, codec=JSON)
        assert await requester.request_response(4, route="twice") == 8
        await server.aclose()
        await requester.aclose()
        with pytest.raises(ConnectionLost):
            await requester.request_response(4, route="twice")


class Unconfirmed(anyio.abc.ByteStream):
    """A stream of TLS whose peer is frozen: it does not confirm that the stream is closed."""

    def __init__(self) -> None:
        self.has_ended = asyncio.Event()
        self.is_closed = False

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await self.has_ended.wait()
        raise anyio.EndOfStream

    async def send(self, item: bytes) -> None: ...
    async def send_eof(self) -> None: ...
    async def aclose(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.is_closed = True


@pytest.mark.virtual_time
@pytest.mark.parametrize(("way", "seconds"), [("closed", 5), ("ended", 5), ("aborted", 0)])
async def test_a_byte_stream_is_closed_whatever_its_peer_does(way: str, seconds: float) -> None:
    driver, stream = client_driver(JSON, ClientOptions(), None), Unconfirmed()
    StreamTransport(driver, stream)
    await asyncio.sleep(0)
    if way == "ended":
        stream.has_ended.set()
    if way == "aborted":
        driver.ending.abort()
    if way == "closed":
        await driver.aclose()
    else:
        await wait_closed(driver)
    assert stream.is_closed
    assert asyncio.get_running_loop().time() == pytest.approx(seconds)


@pytest.mark.virtual_time
async def test_a_byte_stream_is_aborted_while_it_closes() -> None:
    driver, stream = client_driver(JSON, ClientOptions(), None), Unconfirmed()
    StreamTransport(driver, stream)
    closing = asyncio.create_task(driver.aclose())
    await asyncio.sleep(1)
    driver.ending.abort()
    await closing
    assert stream.is_closed
    assert asyncio.get_running_loop().time() == pytest.approx(1)


# -- unreachable servers ---------------------------------------------------------------------------
async def test_a_refused_connection_fails() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ConnectionLost, match="tcp://127"):
        await connect(f"tcp://127.0.0.1:{port}")


async def test_a_connection_attempt_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # connects, without a response
        port = deaf.getsockname()[1]
        with pytest.raises(ConnectionLost, match="no connection within"):
            await connect(f"tls://127.0.0.1:{port}", timeout=0.05)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: connect("http://there"), "tcp://"),
        (lambda: connect("tcp://there"), "host:port"),
        (lambda: connect("tcp://there:1?m=3"), "unknown m"),
        (lambda: connect("tcp://there:1", ssl=ssl.create_default_context()), "tls://"),
        (lambda: serve("tls://127.0.0.1:0", router), "certificate"),
        (lambda: connect("tcp://there:1", timeout=0), "timeout"),
        (lambda: connect("tcp://there:1", keepalive=0), "keepalive"),
        (lambda: serve("tcp://127.0.0.1:0", router, auth_timeout=0), "auth_timeout"),
        (lambda: connect(Nothing(), retry=3), "need a URI"),
    ],
)
async def test_invalid_addresses_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        await make()


class Nothing(anyio.abc.ByteStream):
    """A stream that does nothing."""

    async def receive(self, max_bytes: int = 65536) -> bytes:
        raise anyio.EndOfStream

    async def send(self, item: bytes) -> None: ...
    async def send_eof(self) -> None: ...
    async def aclose(self) -> None: ...


async def test_an_unknown_option_is_refused() -> None:
    unknown: Any = {"keep_alive": 3}
    with pytest.raises(TypeError, match="unknown keep_alive"):
        await connect("tcp://127.0.0.1:1", **unknown)
    with pytest.raises(TypeError, match="keep_alive"):
        await serve("tcp://127.0.0.1:0", router, **unknown)


async def test_one_connection_too_many_is_refused() -> None:
    async with (
        await serve("tcp://127.0.0.1:0", router, max_connections=1) as server,
        await connect(server.uri, codec=JSON) as first,
    ):
        assert await first.request_response(1, route="twice") == 2
        with pytest.raises(ConnectionLost, match="too many connections"):
            await connect(server.uri, codec=JSON)
        assert server.refused_connections == 1
        assert await first.request_response(1, route="twice") == 2


async def test_one_client_does_not_take_all_places(caplog: pytest.LogCaptureFixture) -> None:
    clients = iter("aab")
    options: Any = {"max_per_client": 1, "client_key": lambda _: next(clients)}
    async with (
        await serve("tcp://127.0.0.1:0", router, **options) as server,
        await connect(server.uri, codec=JSON) as first,
    ):
        remedy = r"this client has too many connections \(max_per_client=1\): close one, or"
        with pytest.raises(ConnectionLost, match=remedy):
            await connect(server.uri, codec=JSON)
        assert server.refused_connections == 1
        async with await connect(server.uri, codec=JSON) as other:
            assert await other.request_response(1, route="twice") == 2
        assert await first.request_response(1, route="twice") == 2
    assert "max_per_client=1 are open" in caplog.text


async def driver_ends(server: Server) -> None:
    for _ in range(1_000_000):
        if not server.connections:
            return
        await asyncio.sleep(0)


async def test_a_client_that_leaves_gives_its_place_back() -> None:
    async with await serve("tcp://127.0.0.1:0", router, max_per_client=1) as server:
        for _ in range(3):
            async with await connect(server.uri, codec=JSON) as client:
                assert await client.request_response(1, route="twice") == 2
            async with asyncio.timeout(20):
                await driver_ends(server)
        assert server.refused_connections == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("10.0.0.1", 5), ("10.0.0.1", 6), True),
        (["10.0.0.1", 5], ("10.0.0.1", 6), True),  # as ASGI allows it
        (("10.0.0.1", 5), ("10.0.0.2", 5), False),
        (("2001:db8::1", 5, 0, 0), ("2001:db8::ffff:2", 5, 0, 0), True),
        (("2001:db8:0:1::1", 5, 0, 0), ("2001:db8:0:2::1", 5, 0, 0), False),
        (("::ffff:10.0.0.1", 5, 0, 0), ("10.0.0.1", 6), True),
        (("fe80::1%eth0", 5, 0, 2), ("fe80::2", 5, 0, 2), True),
        ("", None, True),
        (("no address", 1), None, True),
    ],
)
def test_clients_are_told_apart_by_their_address(one: Any, other: Any, same: bool) -> None:
    assert (key_of_address(one) == key_of_address(other)) is same


# -- the address -----------------------------------------------------------------------------------
async def test_the_address_sets_route_and_prefetch() -> None:
    requested: list[int] = []
    routes = Router()

    @routes.route("numbers")
    def numbers() -> Flow[int]:
        return from_iterable(range(50)).do_on_request(requested.append)

    async with (
        await serve("tcp://127.0.0.1:0", routes) as server,
        await connect(f"{server.uri}?route=numbers&n=20", codec=JSON) as requester,
    ):
        probe: SubscriberProbe[int] = SubscriberProbe(request=1)
        stream = requester.request_stream()
        assert str(stream.bound()).startswith("holds at most 20 elements")
        stream.subscribe(probe)
        await probe.wait_for_signals(1)
        for _ in range(50):
            await asyncio.sleep(0)
        assert sum(requested) == 20
        probe.cancel()


# -- peers that disconnect or do not read ----------------------------------------------------------
async def test_fire_and_forget_completes_after_the_client_disconnects() -> None:
    got: list[str] = []
    routes = Router()

    @routes.route("log")
    async def log(payload: bytes) -> None:
        await asyncio.sleep(0.01)
        got.append(payload.decode())

    async with await serve("tcp://127.0.0.1:0", routes) as server:
        async with await connect(server.uri) as requester:
            await requester.fire_and_forget(b"one", route="log")
            await requester.fire_and_forget(b"two", route="log")
        while server.connections:  # noqa: ASYNC110 - until nothing is left of it
            await asyncio.sleep(0.01)
        assert got == ["one", "two"]


async def test_closing_the_server_cancels_handlers() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()
    routes = Router()

    @routes.route("log")
    async def log() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with await serve("tcp://127.0.0.1:0", routes) as server:
        async with await connect(server.uri) as requester:
            await requester.fire_and_forget(route="log")
        await begun.wait()
    assert cancelled.is_set()


def endless(cancelled: asyncio.Event) -> Router:
    routes = Router()

    @routes.route("n")
    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    return routes


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
@pytest.mark.parametrize("way", ["closed", "aborted", "closed by the server"])
async def test_the_end_of_a_connection_ends_its_streams(scheme: str, way: str) -> None:
    cancelled = asyncio.Event()
    async with await serve(f"{scheme}://127.0.0.1:0", endless(cancelled)) as server:
        requester = await connect(server.uri, codec=JSON)
        probe: SubscriberProbe[int] = SubscriberProbe(request=5)
        requester.request_stream(route="n").subscribe(probe)
        await probe.wait_for_signals(1)
        if way == "closed":
            await requester.aclose()
        elif way == "aborted":
            requester._driver.ending.abort()
        else:
            await server.aclose()
        await cancelled.wait()
        await probe.end()
        assert isinstance(probe.error, ConnectionLost)
        await requester.aclose()


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("size", [10, 1000, 100_000])
async def test_a_peer_that_requests_everything_and_reads_nothing_costs_little(size: int) -> None:
    made = 0
    routes = Router()

    def element(_: int) -> bytes:
        nonlocal made
        made += 1
        return bytes(size)

    @routes.route("all")
    def everything() -> Flow[bytes]:
        return from_iterable(range(10**9)).map(element)

    wish = Connection(Setup(data_mime=BYTES.mime), 0.0)
    route = write_composite([(ROUTING, write_routing("all"))])
    wish.request_stream(Payload(b"", route), 2**31 - 1)
    async with await serve("tcp://127.0.0.1:0", routes, limits=Limits()) as server:
        assert server.address is not None
        loop = asyncio.get_running_loop()
        with socket.socket() as rude:
            rude.setblocking(False)
            rude.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
            await loop.sock_connect(rude, ("127.0.0.1", server.address.port))
            before = peak()
            await loop.sock_sendall(rude, wish.data_to_send())
            seen = -1
            while seen != made or not made:  # until the kernel accepts no more
                seen = made
                for _ in range(200):
                    await asyncio.sleep(0)
            assert peak() - before < 8 * 1024 * 1024
            [driver] = server._drivers
            transport: Any = driver.line.transport
            held = driver.connection.queued_bytes + transport.get_write_buffer_size()
            assert size <= held < 1024 * 1024
            assert made * size < 16 * 1024 * 1024  # most of it in buffers of the kernel
