"""Server-sent events whose connection is cut, frozen, slow, or refused for want of descriptors."""

# pyright: reportUnknownLambdaType=false

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from reactive_aio import Flow, RetryPolicy, from_aiter, range as numbers
from reactive_aio.asgi import Counters, HttpRequest, from_sse, sse
from tests.asgi.serving import RawClient, Service, running, service
from tests.harness.outages import Lacking, Proxy, proxy_of
from tests.recipes.waiting import until

ELEMENT = 4000
BUFFERED = 500
"""More elements than the server, both ends of two sockets, and the proxy hold at a time."""


class Endless:
    """A source that never waits, at an endpoint that has a place for one client."""

    def __init__(self, **options: Any) -> None:
        self.counters = Counters()
        self.read = 0
        self.cleaned = 0
        source = from_aiter(self.elements)
        self.app = sse(source, max_streams=1, counters=self.counters, **options)

    async def elements(self) -> AsyncIterator[str]:
        try:
            while True:
                self.read += 1
                yield "x" * ELEMENT
        finally:
            await asyncio.sleep(0)
            self.cleaned += 1

    def is_over(self, times: int) -> bool:
        """Whether *times* clients have lost their place, and what was done for them is cleaned."""
        found = (self.cleaned, self.counters.open, self.counters.outstanding)
        return found == (times, 0, 0)


@asynccontextmanager
async def behind_proxy(app: Any) -> AsyncGenerator[Proxy]:
    async with running(app) as address, proxy_of(f"http://{address}") as proxy:
        yield proxy


async def test_one_that_is_cut_off_is_cancelled_and_its_place_is_free() -> None:
    endless = Endless()
    async with behind_proxy(endless.app) as proxy:
        for times in (1, 2):
            client = await RawClient.get(proxy, "/")
            await client.read(10 * ELEMENT)
            proxy.cut()
            await until(lambda: endless.is_over(times))  # noqa: B023
            client.close()


async def test_one_whose_machine_is_switched_off_loses_its_place_in_time() -> None:
    endless = Endless(send_timeout=0.2)
    async with behind_proxy(endless.app) as proxy:
        client = await RawClient.get(proxy, "/")
        await client.read(1)
        proxy.freeze()
        before = endless.read
        await until(lambda: endless.is_over(1))
        assert endless.read - before < BUFFERED
        proxy.thaw()
        client.close()
        again = await RawClient.get(proxy, "/")
        await again.read(1)
        again.close()
        await until(lambda: endless.is_over(2))


async def test_a_slow_link_slows_the_source() -> None:
    endless = Endless()
    async with behind_proxy(endless.app) as proxy:
        proxy.delay(0.002, piece=ELEMENT)
        client = await RawClient.get(proxy, "/")
        for elements in range(0, 200, 20):
            await client.read(20 * ELEMENT)
            assert elements < endless.read < elements + BUFFERED
        client.close()
        await until(lambda: endless.is_over(1))


async def test_a_client_that_is_cut_off_again_and_again_misses_and_repeats_nothing() -> None:
    """In the middle of events, since the link is slow; each time it gives its last id."""

    def after(request: HttpRequest) -> Flow[int]:
        return numbers(int(request.last_event_id or -1) + 1, 300)

    received: list[int] = []
    async with behind_proxy(sse(after, id=lambda each: each)) as proxy:
        proxy.delay(0.001, piece=50)
        policy = RetryPolicy(attempts=5, delay=0.01, only=ConnectionError, reset=True)
        async with from_sse(proxy.url, retry=policy).stream() as events:
            async for event in events:
                received.append(int(event.data))
                if len(received) in (20, 100, 200):
                    proxy.cut()
        assert proxy.connections == 4
    assert received == [*range(300)]


@pytest.fixture
def lacking_descriptors() -> Iterator[Service]:
    pytest.importorskip("uvloop")  # asyncio fills the log, a thousand lines at a time
    with service("starlette", "uvloop", lacking=Lacking(descriptors=40)) as serving:
        serving.get("/stat")
        yield serving


@pytest.mark.slow
async def test_a_server_without_descriptors_stays_and_serves_again(
    lacking_descriptors: Service,
) -> None:
    clients = [await RawClient.get(lacking_descriptors, "/sse") for _ in range(60)]
    reading = [client.read(10 * ELEMENT) for client in clients]
    ends = await asyncio.gather(*reading, return_exceptions=True)
    for client in clients:
        client.close()
    assert 10 < ends.count(None) < 40, "the others are refused"

    async def has_settled() -> bool:
        with suppress(OSError):  # it may still be refused
            stat = await lacking_descriptors.stat()
            return (stat["open"], stat["outstanding"]) == (0, 0)
        return False

    await until(has_settled)
