"""500 clients at a time, many of which do not read, and many of which leave."""

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
LEAVING = 150
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


async def crowd(service: Service, connect: Connect) -> int:
    """Let them come, read or not, and leave; return the most memory that was used, in KiB."""
    clients = [await connect(service) for _ in range(CLIENTS)]
    await asyncio.gather(*(each.read(SOME) for each in clients[: LEAVING + READING]))
    for client in clients[:LEAVING]:
        client.close()
    stat = await service.settles(CLIENTS - LEAVING)
    assert stat["open"] == CLIENTS - LEAVING
    assert stat["cancelled"] == LEAVING
    for client in clients[LEAVING:]:
        client.close()
    assert (await service.settles(0))["outstanding"] == 0
    return int(stat["memory"])


@pytest.fixture
def serving() -> Iterator[Service]:
    with service("starlette") as running:
        yield running


@pytest.mark.parametrize("connect", [by_sse, by_ndjson, by_websocket])
async def test_memory_is_bounded_and_nothing_is_left(serving: Service, connect: Connect) -> None:
    begun = await serving.stat()
    most = await crowd(serving, connect)
    ended = await serving.stat()
    assert (most - begun["memory"]) / CLIENTS < 250, "KiB for each client, uvicorn's share included"
    assert ended["left"] == 0
    assert ended["tasks"] == begun["tasks"]
