"""Transports that are cut after a number of bytes, and clients that reconnect."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from reactive_aio import Flow, RetryPolicy, from_iterable
from reactive_aio.rsocket import (
    JSON,
    Client,
    ClientOptions,
    Lease,
    Limits,
    Resumption,
    Router,
    Server,
)
from reactive_aio.rsocket.client import client_driver
from reactive_aio.rsocket.link.driver import Driver
from reactive_aio.rsocket.link.reconnection import Reconnector
from reactive_aio.rsocket.link.transports.memory import MemoryTransport


class Cut(MemoryTransport):
    """One end, which delivers *budget* bytes and then closes both ends."""

    def __init__(self, driver: Driver, budget: int | None) -> None:
        super().__init__(driver)
        self.budget: int | None = budget
        self.taken: int = 0

    def write(self, data: bytes, /) -> None:
        if self.budget is not None and self.taken + len(data) >= self.budget:
            data = data[: self.budget - self.taken]
            super().write(data)
            self.taken += len(data)
            self.close()
        else:
            super().write(data)
            self.taken += len(data)


Budget = tuple[int | None, int | None]
"""The number of bytes from the client, and from the server, before the transport is lost."""
WHOLE: Budget = (None, None)


class Bench:
    """A server, and clients whose transports are cut one after the other by *cuts*."""

    def __init__(
        self,
        router: Router,
        cuts: Iterable[Budget] = (),
        *,
        resume: Resumption | None = None,
        policy: RetryPolicy | None = None,
        limits: Limits | None = None,
        leases: Flow[Lease] | None = None,
    ) -> None:
        self.policy = policy
        self.resume = resume
        self.limits = limits
        self.server = Server(
            router,
            on_error=lambda _: None,
            leases=None if leases is None else lambda _: leases,
            limits=limits,
            max_connections=50,
            resume=resume,
        )
        self.cuts: Iterator[Budget] = iter(cuts)
        self.ends: list[tuple[Cut, Cut]] = []
        self.options = ClientOptions(resume=resume, limits=limits, lease=leases is not None)
        self.down = False

    async def client(self) -> Client[Any]:
        async def make() -> Driver:
            return client_driver(JSON, self.options, None)

        reconnector = Reconnector(make, self.dial, self.policy)
        return Client(await reconnector.connect(), JSON, reconnector=reconnector)

    async def dial(self, driver: Driver) -> None:
        await asyncio.sleep(0)
        if self.down:
            raise ConnectionRefusedError("connection refused")
        there, back = next(self.cuts, WHOLE)
        near, far = Cut(driver, there), Cut(self.server.new_driver(), back)
        near.other, far.other = far, near
        self.ends.append((near, far))
        far.driver.attach(far)
        driver.attach(near)

    def lose(self) -> None:
        """Close the current transport."""
        self.ends[-1][0].close()


# -- a conversation in which every element counts --------------------------------------------------
def talkative() -> tuple[Router, Counter[str]]:
    """Routes that count their calls."""
    router = Router()
    calls: Counter[str] = Counter()

    @router.route("range.{n}")
    def count(n: int) -> Flow[int]:
        calls["range"] += 1
        return from_iterable(range(n))

    @router.route("slow.{n}")
    async def slow(n: int) -> AsyncIterator[int]:
        calls["slow"] += 1
        for each in range(n):
            await asyncio.sleep(0)
            yield each

    @router.route("twice")
    async def twice(payload: int) -> int:
        calls["twice"] += 1
        return payload * 2

    @router.route("plus")
    def plus(incoming: Flow[int]) -> Flow[int]:
        calls["plus"] += 1
        return incoming.map(lambda each: each + 1)

    @router.route("log")
    def log(payload: Any) -> None:
        calls[f"log {payload}"] += 1

    @router.route("large")
    def large(payload: str) -> str:
        calls["large"] += 1
        return payload[::-1]

    return router, calls


async def converse(client: Client[Any]) -> None:
    """Use every interaction model at once; fail if an element is lost or duplicated."""
    text = "".join(map(str, range(60)))
    stream = client.request_stream(route="range.30").boundary(4).to_list(limit=99)
    slow = client.request_stream(route="slow.9").boundary(2).to_list(limit=99)
    channel = client.request_channel(range(20), route="plus").boundary(3).to_list(limit=99)
    came, slowly, plus, turned, *doubled = await asyncio.gather(
        stream,
        slow,
        channel,
        client.request_response(text, route="large"),
        *(client.request_response(n, route="twice") for n in range(3)),
        *(client.fire_and_forget(n, route="log") for n in range(3)),
    )
    assert came == [*range(30)]
    assert slowly == [*range(9)]
    assert plus == [*range(1, 21)]
    assert turned == text[::-1]
    assert doubled == [0, 2, 4, None, None, None]
