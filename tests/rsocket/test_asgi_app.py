"""RSocket in an ASGI application: under uvicorn, and under a scripted server."""

import asyncio
from collections.abc import AsyncIterator, Callable, MutableMapping
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount, WebSocketRoute

from reactive_aio import Flow, from_iterable
from reactive_aio.rsocket import (
    BYTES,
    JSON,
    AsgiApp,
    ConnectionLost,
    Limits,
    Payload,
    Router,
    asgi_app,
    connect,
)
from reactive_aio.rsocket.link.transports import asgi
from reactive_aio.rsocket.protocol.codec import decode
from reactive_aio.rsocket.protocol.frames import Error, PayloadFrame
from reactive_aio.testing.probes import SubscriberProbe
from tests.asgi.serving import running
from tests.rsocket.test_transports import converse, endless, router
from tests.rsocket.websocket_peer import JSON_SETUP, SETUP, stream

Message = MutableMapping[str, Any]


def mounted_in_starlette(app: AsgiApp) -> Any:
    return Starlette(routes=[Mount("/rsocket", app)])


def route_of_starlette(app: AsgiApp) -> Any:
    return Starlette(routes=[WebSocketRoute("/rsocket/", app)])


def mounted_in_fastapi(app: AsgiApp) -> Any:
    api = FastAPI()
    api.mount("/rsocket", app)
    return api


def alone(app: AsgiApp) -> Any:
    return app


MOUNTS = [mounted_in_starlette, route_of_starlette, mounted_in_fastapi, alone]


# -- under uvicorn ---------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("mount", MOUNTS)
async def test_all_models_under_uvicorn(mount: Callable[[AsgiApp], Any]) -> None:
    app = asgi_app(router)
    async with running(mount(app)) as place:
        async with await connect(f"ws://{place}/rsocket/", codec=JSON) as requester:
            await converse(requester)
            assert app.connections == 1
        await emptied(app)


# The first is the default of older versions of uvicorn.
@pytest.mark.filterwarnings("ignore")  # it is deprecated
@pytest.mark.parametrize("ws", ["websockets", "websockets-sansio"])
async def test_a_disconnect_cancels_the_streams_of_the_client(ws: str) -> None:
    cancelled = asyncio.Event()
    app = asgi_app(endless(cancelled))
    async with running(app, ws=ws) as place:
        requester = await connect(f"ws://{place}/", codec=JSON)
        probe: SubscriberProbe[int] = SubscriberProbe(request=5)
        requester.request_stream(route="n").subscribe(probe)
        await probe.wait_for_signals(1)
        requester._driver.ending.abort()
        await cancelled.wait()
        await requester.aclose()
        await emptied(app)


async def test_closing_the_application_closes_its_connections() -> None:
    cancelled = asyncio.Event()
    app = asgi_app(endless(cancelled))
    async with running(mounted_in_starlette(app)) as place:
        requester = await connect(f"ws://{place}/rsocket/", codec=JSON)
        probe: SubscriberProbe[int] = SubscriberProbe(request=5)
        requester.request_stream(route="n").subscribe(probe)
        await probe.wait_for_signals(1)
        await app.aclose()
        await probe.end()
        assert isinstance(probe.error, ConnectionLost)
        assert cancelled.is_set()
        with pytest.raises(ConnectionLost, match="503"):
            await connect(f"ws://{place}/rsocket/")
        await requester.aclose()


async def test_a_server_shutdown_closes_the_connections() -> None:
    cancelled = asyncio.Event()
    async with running(asgi_app(endless(cancelled))) as place:
        requester = await connect(f"ws://{place}/", codec=JSON)
        probe: SubscriberProbe[int] = SubscriberProbe(request=5)
        requester.request_stream(route="n").subscribe(probe)
        await probe.wait_for_signals(1)
    await cancelled.wait()
    await probe.end()
    await requester.aclose()


async def test_one_connection_too_many_is_refused() -> None:
    app = asgi_app(router, max_connections=1)
    async with running(app) as place, await connect(f"ws://{place}", codec=JSON) as first:
        with pytest.raises(ConnectionLost, match=r"503.*too many"):
            await connect(f"ws://{place}")
        assert app.refused_connections == 1
        assert await first.request_response(2, route="twice") == 4


async def test_an_http_request_is_refused() -> None:
    async with running(asgi_app(router)) as place, httpx.AsyncClient() as client:
        answer = await client.get(f"http://{place}/")
        assert answer.status_code == 426
        assert "WebSocket" in answer.text


async def test_a_peer_that_requests_everything_and_reads_nothing_costs_little() -> None:
    made = 0
    routes = Router()

    def element(_: int) -> bytes:
        nonlocal made
        made += 1
        return bytes(1000)

    @routes.route("all")
    def everything() -> Flow[bytes]:
        return from_iterable(range(10**9)).map(element)

    held: list[int] = []
    app = asgi_app(routes)
    async with running(app) as place:
        requester = await connect(f"ws://{place}/", codec=BYTES)
        probe: SubscriberProbe[bytes] = SubscriberProbe(request=2**62)
        requester.request_stream(route="all").subscribe(probe)
        await probe.wait_for_signals(1)
        wire: Any = requester._driver.line.transport
        wire.pause_reading()
        seen = -1
        while seen != made:
            seen = made
            for _ in range(200):
                await asyncio.sleep(0)
            [driver] = app._drivers
            transport: Any = driver.line.transport
            held.append(driver.connection.queued_bytes + transport._output_size)
        assert max(held) < 1024 * 1024
        assert (
            made - len(probe.elements)
        ) * 1000 < 16 * 1024 * 1024  # most of it in buffers of the kernel
        requester._driver.ending.abort()
        await requester.aclose()


async def emptied(app: AsgiApp) -> None:
    """Wait until the connections of *app* have ended."""
    for driver in [*app._drivers]:
        await driver.aclose()
    assert app.connections == 0


# -- a scripted server -----------------------------------------------------------------------------
class Connection:
    """One connection to an ASGI application; the test sends each message."""

    def __init__(self, app: AsgiApp, **scope: Any) -> None:
        self.toward: asyncio.Queue[Message] = asyncio.Queue()
        self.back: asyncio.Queue[Message] = asyncio.Queue()
        self.open = asyncio.Event()  # set while the server accepts messages
        self.open.set()
        scope = {"type": "websocket", "path": "/", "headers": [], "subprotocols": [], **scope}
        self.task = asyncio.ensure_future(app(scope, self.toward.get, self.send))
        self.say("connect")

    def say(self, kind: str, **details: Any) -> None:
        self.toward.put_nowait({"type": f"websocket.{kind}", **details})

    async def send(self, message: Message) -> None:
        await self.open.wait()
        self.back.put_nowait(message)

    async def receive(self) -> Message:
        return await self.back.get()

    async def accepted(self) -> "Connection":
        message = await self.receive()
        assert message["type"] == "websocket.accept"
        return self

    async def frame(self) -> Any:
        return decode((await self.receive())["bytes"])


routes = Router()


@routes.route("letters")
async def letters() -> AsyncIterator[bytes]:
    for letter in (b"a", b"b", b"c"):
        yield letter


async def test_messages_are_frames() -> None:
    peer = await Connection(asgi_app(routes)).accepted()
    peer.say("receive", bytes=SETUP)
    peer.say("receive", bytes=stream("letters", 2), text=None)
    first, second = await peer.frame(), await peer.frame()
    assert isinstance(first, PayloadFrame)
    assert (first.payload, second.payload) == (Payload(b"a"), Payload(b"b"))
    peer.say("disconnect", code=1005)
    await peer.task


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"text": "hello"}, 1003),
        ({"bytes": None, "text": "x"}, 1003),
        ({"bytes": bytes(999)}, 1009),
    ],
)
async def test_a_violation_is_reported_and_closes_the_connection(
    message: Message, code: int
) -> None:
    peer = await Connection(asgi_app(routes, limits=Limits(max_frame=998))).accepted()
    peer.say("receive", bytes=SETUP)
    peer.say("receive", **message)
    closing = await peer.receive()
    assert (closing["type"], closing["code"]) == ("websocket.close", code)
    await peer.task


async def test_a_malformed_frame_fails_the_connection() -> None:
    peer = await Connection(asgi_app(routes)).accepted()
    peer.say("receive", bytes=b"")
    assert isinstance(await peer.frame(), Error)
    assert (await peer.receive())["code"] == 1000
    await peer.task


async def test_a_missing_setup_closes_the_connection() -> None:
    peer = await Connection(asgi_app(routes, limits=Limits(setup_timeout=0.02))).accepted()
    assert isinstance(await peer.frame(), Error)
    assert (await peer.receive())["type"] == "websocket.close"
    await peer.task


async def test_a_server_that_does_not_send_is_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "CLOSE_TIMEOUT", 0.02)
    peer = await Connection(asgi_app(routes)).accepted()
    peer.open.clear()
    peer.say("receive", bytes=b"")
    await peer.task


async def test_a_lost_client_closes_the_connection() -> None:
    cancelled = asyncio.Event()
    peer = await Connection(app := asgi_app(endless(cancelled))).accepted()

    async def gone(_: Message) -> None:
        raise OSError("the client has gone")

    peer.say("receive", bytes=JSON_SETUP)
    peer.say("receive", bytes=stream("n", 1))
    [driver] = app._drivers
    transport: Any = driver.line.transport
    transport._asgi_send = gone
    await peer.task
    await cancelled.wait()
    assert app.connections == 0


async def test_other_errors_of_the_asgi_server_are_raised_to_it() -> None:
    peer = await Connection(app := asgi_app(routes)).accepted()

    async def broken(_: Message) -> None:
        raise RuntimeError("the server is broken")

    [driver] = app._drivers
    transport: Any = driver.line.transport
    transport._asgi_send = broken
    peer.say("receive", bytes=b"")
    with pytest.raises(RuntimeError, match="broken"):
        await peer.task
    assert app.connections == 0


async def test_a_cancelled_asgi_call_cancels_everything() -> None:
    cancelled = asyncio.Event()
    peer = await Connection(app := asgi_app(endless(cancelled))).accepted()
    peer.say("receive", bytes=JSON_SETUP)
    peer.say("receive", bytes=stream("n", 1))
    await peer.frame()
    peer.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await peer.task
    await cancelled.wait()
    assert app.connections == 0


@pytest.mark.parametrize("extensions", [None, {"websocket.http.response": {}}])
async def test_pages_of_other_origins_are_refused_unless_listed(extensions: Any) -> None:
    app = asgi_app(routes, origins=["https://shop.example"])
    host = (b"host", b"here.example")
    for origin, scheme, may in [
        (b"https://here.example", "wss", True),
        (b"http://here.example", "ws", False),  # whose name may be a stranger's
        (b"https://shop.example", "ws", True),
        (b"https://evil.example", "wss", False),
    ]:
        headers = [host, (b"origin", origin)]
        peer = Connection(app, headers=headers, scheme=scheme, extensions=extensions)
        first = await peer.receive()
        assert (first["type"] == "websocket.accept") is may
        if not may and extensions:
            assert first["status"] == 403
        elif not may:
            assert first["code"] == 1008
        peer.say("disconnect")
        await peer.task


async def test_the_subprotocol_rsocket_is_negotiated() -> None:
    for offered, chosen in [([], None), (["graphql"], None), (["graphql", "rsocket"], "rsocket")]:
        peer = Connection(asgi_app(routes), subprotocols=offered)
        assert (await peer.receive())["subprotocol"] == chosen
        peer.say("disconnect")
        await peer.task


async def test_other_scopes_are_refused() -> None:
    with pytest.raises(TypeError, match="list of origins"):
        asgi_app(routes, origins="https://shop.example")
    with pytest.raises(ValueError, match=r"^asgi_app: origins has 'shop.example', which no"):
        asgi_app(routes, origins=["shop.example"])
    peer = Connection(asgi_app(routes), type="webtransport")
    with pytest.raises(ValueError, match="webtransport"):
        await peer.task
