"""A peer that neither reads nor sends: nothing waits for it longer than it has to."""

import asyncio
from typing import Any

import pytest

from reactive_aio import RetryPolicy
from reactive_aio.rsocket import ConnectionLost, Router

from .cut_transport import Bench
from .loop_turns import turns

LIFETIME = 3.0
router = Router()


@router.route("echo")
async def echo(payload: Any) -> Any:
    return payload


def freeze(bench: Bench) -> None:
    """Let the network lose all bytes of the connection, in both directions."""
    for end in bench.ends[-1]:
        vars(end)["_deliver"] = lambda: None


@pytest.mark.virtual_time
async def test_a_client_reconnects_as_soon_as_its_server_is_silent() -> None:
    bench = Bench(router, policy=RetryPolicy(attempts=3, delay=0.1, jitter=False))
    bench.options["keepalive"], bench.options["lifetime"] = 1.0, LIFETIME
    loop = asyncio.get_running_loop()
    client = await bench.client()
    began = loop.time()
    freeze(bench)
    with pytest.raises(ConnectionLost, match="no sign of life"):
        await client.request_response(1, route="echo")
    await client.ready()
    assert loop.time() - began <= LIFETIME + 0.2
    assert await client.request_response(2, route="echo") == 2
    await client.aclose()
    await bench.server.aclose()


@pytest.mark.virtual_time
async def test_closing_waits_once_for_a_peer_that_does_not_read() -> None:
    bench = Bench(router)
    loop = asyncio.get_running_loop()
    client = await bench.client()
    freeze(bench)
    client._driver.pause_writing()  # as a full socket does
    client.metadata_push(("text/plain", b"the last words"))
    began = loop.time()
    await client.aclose()
    assert loop.time() - began == pytest.approx(5.0)
    assert client.is_closed
    for end in bench.ends[-1]:
        end.abort()
    await turns()
    await bench.server.aclose()
