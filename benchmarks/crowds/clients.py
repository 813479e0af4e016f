"""A crowd of connections to one server, held by raw clients that cost as little as possible.

The clients live in the process of the benchmark. They send bytes that were encoded beforehand, and
count what comes back without decoding it, so that what is measured is the server.
"""

import asyncio
import resource
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

AT_ONCE: Final = 64
"""Connections that are opened at the same time: fewer than a listening socket may queue."""
SPARE: Final = 256
"""Files that a process needs beside its connections."""
OPENING: Final = 120.0
QUIET: Final = 0.3
CREDIT, REFILL = 256, 128


class Wire(ABC):
    """The bytes of one protocol."""

    @abstractmethod
    def opening(self, port: int) -> bytes:
        """Return what a client sends first, which the server must answer."""

    @abstractmethod
    def opened(self, data: bytes) -> bytes | None:
        """Return what follows the answer to the opening; None if it is not complete."""

    @abstractmethod
    def request(self, number: int) -> bytes:
        """Return the request *number* (from 0) of a connection, for a single response."""

    @abstractmethod
    def subscribe(self, credit: int) -> bytes:
        """Return the subscription to the hot flow, as the first message of a connection."""

    @abstractmethod
    def more(self, n: int) -> bytes:
        """Return the demand for *n* more elements of the hot flow."""

    @abstractmethod
    def count(self, data: bytes) -> tuple[int, int]:
        """Return the number of elements in *data*, and how many bytes of it are whole messages."""


class Client(asyncio.Protocol):
    """One connection. `on_elements` is called with the number of elements that have come."""

    def __init__(self, wire: Wire, port: int) -> None:
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.on_elements: Callable[[int], object] = _ignore
        self.requests = 0
        self.transport: Any = None
        self._wire = wire
        self._port = port
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.transport.write(self._wire.opening(self._port))

    def data_received(self, data: bytes) -> None:
        data = self._rest + data if self._rest else data
        if not self.opened.done():
            rest = self._wire.opened(data)
            if rest is None:
                self._rest = data
                return
            self.opened.set_result(None)
            data = rest
        count, end = self._wire.count(data)
        self._rest = data[end:]
        if count:
            self.on_elements(count)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            error = exc or ConnectionError("the server has closed the connection")
            self.opened.set_exception(error)
        self.on_elements(0)

    def send_request(self) -> None:
        self.transport.write(self._wire.request(self.requests))
        self.requests += 1

    def write(self, data: bytes) -> None:
        self.transport.write(data)


class Crowd:
    """Open connections to one server."""

    def __init__(self, wire: Wire, port: int) -> None:
        self.wire = wire
        self.clients: list[Client] = []
        self._port = port

    def close(self) -> None:
        """Abort all connections."""
        for client in self.clients:
            client.on_elements = _ignore
            client.transport.abort()

    async def open(self, count: int) -> None:
        """Open *count* more connections."""
        async with asyncio.timeout(OPENING):
            while count:
                batch = min(count, AT_ONCE)
                self.clients += await asyncio.gather(*(self._open() for _ in range(batch)))
                count -= batch

    async def _open(self) -> Client:
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(
            lambda: Client(self.wire, self._port), "127.0.0.1", self._port
        )
        await client.opened
        return client

    async def ask(self, count: int) -> float:
        """Send *count* requests, one at a time on each connection; return the seconds elapsed."""
        done = asyncio.get_running_loop().create_future()
        unsent, unanswered = count, count

        def answered(client: Client, responses: int) -> None:
            nonlocal unsent, unanswered
            if not responses:
                _fail(done)
            unanswered -= responses
            if unsent > 0:
                unsent -= 1
                client.send_request()
            elif unanswered <= 0 and not done.done():
                done.set_result(None)

        began = time.perf_counter()
        for client in self.clients:
            client.on_elements = _bound(answered, client)
        for client in self.clients[:count]:
            unsent -= 1
            client.send_request()
        await done
        return time.perf_counter() - began

    async def ask_at_rate(self, count: int, rate: float) -> list[float]:
        """Send *count* requests at *rate* per second, on all connections in turn.

        Return the seconds that each response took. A request does not wait for the responses
        before it, so that a server which stops for a while delays all that fall into that time.
        """
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        taken: list[float] = []
        sent: dict[Client, deque[float]] = {client: deque() for client in self.clients}

        def answered(client: Client, responses: int) -> None:
            if not responses:
                _fail(done)
            now = time.perf_counter()
            taken.extend(now - sent[client].popleft() for _ in range(responses))
            if len(taken) >= count and not done.done():
                done.set_result(None)

        for client in self.clients:
            client.on_elements = _bound(answered, client)
        began, number = time.perf_counter(), 0
        while number < count:
            due = min(count, int((time.perf_counter() - began) * rate) + 1)
            while number < due:
                number += 1
                client = self.clients[number % len(self.clients)]
                sent[client].append(time.perf_counter())
                client.send_request()
            await asyncio.sleep(max(0.0005, (number + 1) / rate - (time.perf_counter() - began)))
        await done
        return taken


class Audience:
    """The clients of a crowd as subscribers to the hot flow of a server."""

    def __init__(self, crowd: Crowd, *, is_demanded: bool) -> None:
        self.received = 0
        """The elements that have come, without those of the slow subscribers."""
        self.last_at = 0.0
        """When the last of them came."""
        self._crowd = crowd
        self._is_demanded = is_demanded

    async def subscribe(self, *, slow: int = 0, delay: float = 0.01) -> None:
        """Subscribe all clients; *slow* of them request one element at a time, after *delay*."""
        loop, wire = asyncio.get_running_loop(), self._crowd.wire
        subscribed = [loop.create_future() for _ in self._crowd.clients]
        for index, client in enumerate(self._crowd.clients):
            if self._is_demanded:
                client.write(wire.subscribe(1 if index < slow else CREDIT))
            client.on_elements = _bound(_settle, subscribed[index])
            # The answer to a request shows that the server has processed the subscription.
            client.requests = 1
            client.send_request()
        await asyncio.gather(*subscribed)
        for index, client in enumerate(self._crowd.clients):
            is_slow = index < slow
            client.on_elements = self._slow(client, delay) if is_slow else self._fast(client)

    async def quiet(self) -> int:
        """Wait until no more elements come; return their number."""
        before = -1
        while before < self.received:
            before = self.received
            await asyncio.sleep(QUIET)
        return self.received

    def _fast(self, client: Client) -> Callable[[int], None]:
        unrequested = 0
        more = self._crowd.wire.more(REFILL)

        def on_elements(count: int) -> None:
            nonlocal unrequested
            self.received += count
            self.last_at = time.perf_counter()
            unrequested += count
            while self._is_demanded and unrequested >= REFILL:
                unrequested -= REFILL
                client.write(more)

        return on_elements

    def _slow(self, client: Client, delay: float) -> Callable[[int], None]:
        loop, more = asyncio.get_running_loop(), self._crowd.wire.more(1)

        def on_elements(count: int) -> None:
            if count:
                loop.call_later(delay, client.write, more)

        return on_elements


def affordable(count: int) -> int:
    """Raise the limit of open files; return how many of *count* connections fit into it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + SPARE if hard == resource.RLIM_INFINITY else min(count + SPARE, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return count if soft == resource.RLIM_INFINITY else min(count, soft - SPARE)


def percentile(values: Iterable[float], share: float) -> float:
    """Return the value that *share* of *values* do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _bound(function: Callable[[Any, int], object], first: object) -> Callable[[int], object]:
    return lambda count: function(first, count)


def _settle(future: "asyncio.Future[None]", count: int) -> None:
    if not future.done():
        future.set_result(None) if count else _fail(future)


def _fail(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_exception(ConnectionError("the server has closed a connection"))


def _ignore(count: int) -> None:
    """What a client calls whose elements are of no interest."""
