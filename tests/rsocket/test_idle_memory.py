"""What an idle connection holds, and what is left of one that has ended."""

import asyncio
import gc
import tracemalloc
import weakref

import pytest

from reactive_aio.rsocket import Router, serve
from reactive_aio.rsocket.protocol.frames import KeepAlive, Setup
from reactive_aio.rsocket.server import Server

from ..recipes.waiting import until
from .wire import wire

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
        each.abort()
        each.discard()
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
