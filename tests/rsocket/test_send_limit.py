"""A client that does not read loses its connection, although it gives signs of life."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from math import inf
from typing import Any

import pytest

from reactive_aio import Flow, from_iterable
from reactive_aio.rsocket import Limits, Resumption, Router, asgi_app, serve
from reactive_aio.rsocket.protocol.codec import add_length
from reactive_aio.rsocket.protocol.frames import KeepAlive, Setup
from reactive_aio.rsocket.server import Server
from tests.asgi.serving import running

from .loop_turns import turns
from .test_costs import Slow, slow_peer_of
from .websocket_peer import SETUP, Peer, stream
from .wire import wire

router = Router()


@router.route("all")
def everything() -> Flow[bytes]:
    return from_iterable(range(10**9)).map(lambda _: bytes(1000))


ALL = add_length(stream("all", 2**31 - 1))
COMPOSITE = "message/x.rsocket.composite-metadata.v0"


async def alive(peer: Slow, seconds: int) -> bool:
    """Whether the connection of *peer*, which sends keepalives, is kept for so long."""
    for _ in range(seconds):
        peer.driver.data_received(wire(KeepAlive(True)))
        await asyncio.sleep(1)
        if peer.is_aborted:
            return False
    return True


@pytest.mark.virtual_time
async def test_signs_of_life_do_not_replace_reading() -> None:
    async with Server(router) as server:
        driver, peer = slow_peer_of(server)
        driver.data_received(ALL)
        assert await alive(peer, 14)
        assert not await alive(peer, 2)
        driver.connection_lost()
        assert "nothing was read for 15 seconds" in str(driver.ending.reason)
        assert server.stats().unread_connections == 1
        assert server.connections == 0


@pytest.mark.virtual_time
@pytest.mark.parametrize(("rate", "stays"), [(1500, True), (700, False)])
async def test_a_client_that_reads_slowly_stays(rate: int, stays: bool) -> None:
    async with Server(router) as server:
        driver, peer = slow_peer_of(server)
        driver.data_received(ALL)
        await turns()
        assert peer.get_write_buffer_size() > 60_000
        for _ in range(40):
            peer.written = peer.written[rate:]
            if not await alive(peer, 1):
                break
        assert peer.is_aborted is not stays
        driver.connection_lost()


@pytest.mark.virtual_time
async def test_reading_again_gives_all_of_the_time_again() -> None:
    async with Server(router) as server:
        driver, peer = slow_peer_of(server)
        driver.data_received(ALL)
        for _ in range(3):
            assert await alive(peer, 14)
            peer.written = b""
            driver.resume_writing()
            await turns()
        assert not await alive(peer, 20)
        driver.connection_lost()


@pytest.mark.virtual_time
async def test_without_a_limit_a_client_may_stop_reading() -> None:
    async with Server(router, limits=Limits(send_timeout=inf)) as server:
        driver, peer = slow_peer_of(server)
        driver.data_received(ALL)
        assert await alive(peer, 400)
        driver.connection_lost()


@pytest.mark.virtual_time
async def test_a_session_waits_for_a_client_that_has_not_read() -> None:
    async with Server(router, resume=Resumption()) as server:
        driver, peer = slow_peer_of(server, Setup(1000, 600_000, COMPOSITE, token=b"1"))
        driver.data_received(ALL)
        assert not await alive(peer, 20)
        driver.connection_lost()
        assert server.stats().suspended == server.stats().unread_connections == 1
        driver.ending.abort()


# -- on each transport -----------------------------------------------------------------------------
@contextlib.asynccontextmanager
async def served(scheme: str) -> AsyncGenerator[tuple[Any, str]]:
    limits = Limits(send_timeout=0.1)
    if scheme == "asgi":
        app = asgi_app(router, limits=limits)
        async with running(app) as place:
            yield app, f"ws://{place}/"
    else:
        async with await serve(f"{scheme}://127.0.0.1:0", router, limits=limits) as server:
            yield server, server.uri


@pytest.mark.parametrize("scheme", ["tcp", "ws", "asgi"])
async def test_a_socket_that_nobody_reads_is_closed(scheme: str) -> None:
    async with served(scheme) as (server, uri), Peer(uri.replace("tcp:", "ws:")) as peer:
        request = SETUP, stream("all", 2**31 - 1)
        if scheme == "tcp":
            peer.writer.write(b"".join(map(add_length, request)))
        else:
            await peer.shake_hands()
            peer.send(*request)
        async with asyncio.timeout(30):
            while not server.stats().unread_connections:  # noqa: ASYNC110 - buffers become full
                await asyncio.sleep(0.01)
            while server.connections:  # noqa: ASYNC110 - sockets take a few turns
                await asyncio.sleep(0.01)
