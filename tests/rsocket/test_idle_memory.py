"""What an idle connection holds, and what is left of one that has ended."""

import asyncio
import gc
import tracemalloc
import weakref
from collections.abc import Callable

import pytest

import reactive_aio as rx
from reactive_aio.rsocket import Router, serve
from reactive_aio.rsocket.protocol.frames import (
    Cancel,
    Frame,
    KeepAlive,
    Payload,
    RequestChannel,
    RequestResponse,
    RequestStream,
    Setup,
)
from reactive_aio.rsocket.protocol.metadata import (
    COMPOSITE_METADATA,
    ROUTING,
    MetadataItem,
    write_composite,
    write_routing,
)
from reactive_aio.rsocket.server import Server

from ..recipes.waiting import until
from .loop_turns import turns
from .test_admission import Peer
from .wire import wire

router = Router()
router.route("endless")(lambda: rx.range(10**9).map(lambda _: b"x"))
router.route("unwritable")(lambda: rx.range(10**9))


@router.route("cleans up")
async def cleans_up() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)


def requested(route: str) -> Payload:
    return Payload(b"", write_composite([MetadataItem(ROUTING, write_routing(route))]))


ASKED: dict[str, Callable[[int], Frame]] = {
    "a response": lambda each: RequestResponse(each, requested("cleans up")),
    "a stream": lambda each: RequestStream(each, 3, requested("endless")),
    "a stream that fails": lambda each: RequestStream(each, 3, requested("unwritable")),
    "a channel": lambda each: RequestChannel(each, 3, requested("endless")),
}

COUNT = 100
MOST = 6_000
"""Bytes of one driver before its SETUP: 4,090 in CPython 3.11, and 14,450 when each had queues and
tables of its own."""


async def test_an_idle_connection_makes_no_queues() -> None:
    server = Server(Router())
    kept = [server.new_driver()]
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept += [server.new_driver() for _ in range(COUNT)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for each in kept:
        each.ending.abort()
        each.ending.end()
    assert (after - before) / COUNT < MOST


@pytest.mark.parametrize("first", [b"", wire(Setup(10_000, 60_000), KeepAlive(True))])
async def test_a_connection_that_has_ended_is_no_garbage(first: bytes) -> None:
    """Thousands of them would be found by the collector, which stops the server meanwhile."""
    async with await serve("tcp://127.0.0.1:0", Router()) as server:
        assert server.address is not None
        reader, writer = await asyncio.open_connection("127.0.0.1", server.address.port)
        writer.write(first)
        if first:
            await reader.read(100)
        await until(lambda: server.connections == 1)
        [driver] = server._drivers
        left = [weakref.ref(each) for each in (driver, driver.connection)]
        del driver
        gc.disable()
        try:
            writer.transport.abort()
            await until(lambda: server.connections == 0)
            await until(lambda: not any(each() for each in left))
        finally:
            gc.enable()


@pytest.mark.parametrize("asked", ASKED)
async def test_a_cancelled_request_is_no_garbage(asked: str) -> None:
    """Those of one client come by the ten thousand in a second."""
    async with Server(router) as server:
        peer = Peer(server, "10.0.0.1", Setup(10_000, 60_000, COMPOSITE_METADATA))

        async def ask(ids: range) -> None:
            for each in ids:
                peer.say(ASKED[asked](each))
                await turns()
                peer.say(Cancel(each))
                await turns()

        await ask(range(1, 9, 2))
        gc.collect()
        gc.disable()
        try:
            await ask(range(9, 49, 2))
            found = gc.collect()
        finally:
            gc.enable()
        peer.close()
        await turns()
        assert found < 20, "objects in cycles, of twenty requests"
