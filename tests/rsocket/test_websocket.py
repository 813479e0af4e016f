"""RSocket over WebSocket, with our client and server."""

import asyncio
import contextlib
import ssl
from pathlib import Path
from typing import Any

import pytest

from reactive_aio import Flow, from_iterable
from reactive_aio.errors import MissingExtra
from reactive_aio.rsocket import (
    BYTES,
    JSON,
    Router,
    connect,
    serve,
)
from reactive_aio.rsocket.link.transports import tls
from reactive_aio.rsocket.link.transports.origins import is_origin_allowed
from reactive_aio.rsocket.protocol.codec import decode, join_messages, split_messages
from reactive_aio.rsocket.protocol.frames import KeepAlive
from reactive_aio.testing.probes import SubscriberProbe
from tests.harness.leftover_checks import Context
from tests.rsocket.test_transports import converse, endless, router


# -- the same as over TCP --------------------------------------------------------------------------
@pytest.mark.parametrize("uri", ["ws://127.0.0.1:0", "rsocket+ws://127.0.0.1:0/some/where"])
async def test_all_models(uri: str) -> None:
    async with (
        await serve(uri, router) as server,
        await connect(server.uri, codec=JSON) as one,
        await connect(f"rsocket+{server.uri}", codec=JSON) as other,
    ):
        await asyncio.gather(converse(one), converse(other))
        assert server.connections == 2


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n\r\n"], ids=["silent", "no TLS"])
@pytest.mark.parametrize("scheme", ["tls", "wss"])
async def test_a_failed_tls_handshake_does_not_count_as_a_connection(
    scheme: str,
    said: bytes,
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
    expects_loop_errors: list[Context],
) -> None:
    if not said:
        monkeypatch.setattr(tls, "TLS_TIMEOUT", 0.05)
    here = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    here.load_cert_chain(certificate)
    there = ssl.create_default_context(cafile=str(certificate))
    uri = f"{scheme}://127.0.0.1:0"
    async with await serve(uri, router, ssl=here, max_connections=1) as server:
        assert server.address is not None
        reader, writer = await asyncio.open_connection("127.0.0.1", server.address.port)
        writer.write(said)
        with contextlib.suppress(ConnectionError):
            await reader.read()  # until the connection is closed
        writer.close()
        assert (server.connections, server.refused_connections) == (0, 0)
        if said:
            async with await connect(server.uri, codec=JSON, ssl=there) as requester:
                assert await requester.request_response(2, route="twice") == 4
                assert server.connections == 1

    # asyncio reports a failed handshake.
    assert all("transport" in each for each in expects_loop_errors)


async def test_large_payloads_both_ways() -> None:
    routes = Router()

    @routes.route("echo")
    async def echo(payload: bytes) -> bytes:
        return payload

    large = bytes(range(256)) * 20_000
    async with (
        await serve("ws://127.0.0.1:0", routes) as server,
        await connect(server.uri, codec=BYTES) as requester,
    ):
        assert await requester.request_response(large, route="echo") == large


async def test_keepalives_are_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    came: asyncio.Queue[bytes] = asyncio.Queue()
    async with (
        await serve("ws://127.0.0.1:0", router) as server,
        await connect(server.uri, codec=JSON, keepalive=0.01, lifetime=30) as requester,
    ):
        received = requester._driver.data_received

        def receive(data: bytes) -> None:
            came.put_nowait(data)
            received(data)

        monkeypatch.setattr(requester._driver, "data_received", receive)
        for _ in range(3):
            for frame in split_messages(await came.get()):  # several if the loop was busy
                answer = decode(frame)
                assert isinstance(answer, KeepAlive)
                assert not answer.respond


# -- disconnecting ---------------------------------------------------------------------------------
async def test_a_cancellation_reaches_the_server() -> None:
    cancelled = asyncio.Event()
    async with (
        await serve("ws://127.0.0.1:0", endless(cancelled)) as server,
        await connect(server.uri, codec=JSON) as requester,
    ):
        probe: SubscriberProbe[int] = SubscriberProbe(request=5)
        requester.request_stream(route="n").subscribe(probe)
        await probe.wait_for_signals(1)
        probe.cancel()
        await cancelled.wait()
        assert server.connections == 1


# -- demand ----------------------------------------------------------------------------------------
async def test_the_address_sets_path_route_and_prefetch() -> None:
    requested: list[int] = []
    routes = Router()

    @routes.route("prices.{symbol}")
    def prices(symbol: str) -> Flow[str]:
        return from_iterable(range(50)).map(lambda each: symbol).do_on_request(requested.append)

    async with await serve("ws://127.0.0.1:0/live", routes) as server:
        uri = f"rsocket+{server.uri}?route=prices.ACME&n=20"
        async with await connect(uri, codec=JSON) as requester:
            probe: SubscriberProbe[str] = SubscriberProbe(request=1)
            requester.request_stream().subscribe(probe)
            await probe.wait_for_signals(1)
            assert probe.elements == ["ACME"]
            for _ in range(50):
                await asyncio.sleep(0)
            assert sum(requested) == 20
            probe.cancel()


# -- the extra -------------------------------------------------------------------------------------
@pytest.mark.parametrize("side", ["client", "server"])
async def test_the_missing_extra_is_named(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [each for each in sys.modules if each.partition(".")[0] == "websockets"]:
        monkeypatch.setitem(sys.modules, name, None)
    module = "reactive_aio.rsocket.link.transports.websocket"
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.delattr("reactive_aio.rsocket.link.transports.websocket", raising=False)
    asked: Any = connect("ws://127.0.0.1:1") if side == "client" else serve("ws://[::1]:0", router)
    with pytest.raises(MissingExtra, match=r"WebSocket needs the extra 'websockets'.*pip install"):
        await asked


# -- parts -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("messages", [[], [b"abcdef"], [b"a" * 6, b"b" * 70_000, b"", b"c" * 6]])
def test_messages_are_joined_and_split(messages: list[bytes]) -> None:
    assert split_messages(join_messages(messages)) == messages


@pytest.mark.parametrize(
    ("origin", "host", "origins", "may"),
    [
        (None, "here:80", [], True),  # not a browser
        ("http://127.0.0.1:8000", "127.0.0.1:8000", [], True),
        ("http://[::1]:8000", "[::1]:8000", [], True),
        ("http://LocalHost", "localhost", [], True),
        ("http://app.localhost:1", "app.localhost:1", [], True),
        ("http://here:8000", "here:8000", [], False),  # whose name may point here by now
        ("http://localhost.evil.example", "localhost.evil.example", [], False),
        ("http://127.0.0.1.evil.example", "127.0.0.1.evil.example", [], False),
        ("http://user@127.0.0.1", "127.0.0.1", [], False),
        ("http://127.0.0.1:8001", "127.0.0.1:8000", [], False),
        ("https://evil.example", "here", [], False),
        ("https://here.evil.example", "here", [], False),
        ("https://shop.example", "here", ["https://shop.example"], True),
        ("https://evil.example", "here", ["*"], True),
        ("http://[", "here", [], False),  # malformed
        ("null", "here", [], False),
        ("null", "", [], False),
        ("null", None, [], False),
        ("null", "here", ["null"], True),
    ],
)
def test_origins_are_checked(
    origin: str | None, host: str | None, origins: list[str], may: bool
) -> None:
    assert is_origin_allowed(origin, host, frozenset(origins)) is may


@pytest.mark.parametrize("how", [{"own_name": "Here"}, {"is_secure": True}])
def test_a_page_of_the_same_host_may_connect_if_the_name_is_vouched_for(how: Any) -> None:
    assert is_origin_allowed("http://here:8000", "Here:8000", frozenset(), **how)
    assert not is_origin_allowed("http://here:8001", "here:8000", frozenset(), **how)
    assert not is_origin_allowed("http://evil.example", "here", frozenset(), **how)
