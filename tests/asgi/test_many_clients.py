"""500 clients at a time, of which many do not read and many disconnect."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator

import pytest

from tests.asgi.serving import RawClient, Service, service

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.asyncio(loop_factories=["asyncio"]),
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc"),
]

CLIENTS = 500
DISCONNECTING = 150
READING = 150
SOME = 20_000  # bytes
MOST = 2**53 - 1
SUBSCRIBE = f'{{"type":"subscribe","id":1,"route":"endless","n":{MOST}}}'

Connect = Callable[[Service], Awaitable[RawClient]]


async def by_sse(service: Service) -> RawClient:
    return await RawClient.get(service, "/sse")


async def by_ndjson(service: Service) -> RawClient:
    return await RawClient.get(service, "/ndjson")


async def by_websocket(service: Service) -> RawClient:
    return await RawClient.socket(service, "/live", SUBSCRIBE)


async def run_clients(service: Service, connect: Connect) -> int:
    """Connect, read some, and disconnect; return the peak memory in KiB."""
    clients = [await connect(service) for _ in range(CLIENTS)]
    await asyncio.gather(*(each.read(SOME) for each in clients[: DISCONNECTING + READING]))
    for client in clients[:DISCONNECTING]:
        client.close()
    stat = await service.settles(CLIENTS - DISCONNECTING)
    assert stat["open"] == CLIENTS - DISCONNECTING
    assert stat["cancelled"] == DISCONNECTING
    for client in clients[DISCONNECTING:]:
        client.close()
    assert (await service.settles(0))["outstanding"] == 0
    return int(stat["memory"])


@pytest.fixture
def serving() -> Iterator[Service]:
    with service("starlette") as running:
        yield running


@pytest.mark.thorough
@pytest.mark.parametrize("connect", [by_sse, by_ndjson, by_websocket])
async def test_memory_is_bounded_and_everything_is_released(
    serving: Service, connect: Connect
) -> None:
    begun = await serving.stat()
    peak = await run_clients(serving, connect)
    ended = await serving.stat()
    assert (peak - begun["memory"]) / CLIENTS < 250, "KiB per client, including uvicorn's share"
    assert ended["alive"] == 0
    assert ended["tasks"] == begun["tasks"]
