"""PyPI's rsocket, both ends, each used in the fastest way that it offers."""

import asyncio
from collections.abc import Iterator
from importlib import import_module
from itertools import repeat
from typing import Any

from .command import CREDIT, IN_FLIGHT, PAYLOAD, REFILL, Work, concurrently, main


def library(module: str) -> Any:
    """Import a module without its types."""
    return import_module(f"rsocket.{module}")


Payload = library("payload").Payload
TCP = library("transports.tcp").TransportTCP
helpers = library("helpers")
Handlers: Any = library("request_handler").BaseRequestHandler


class Synchronous:
    """A publisher that emits requested elements at once, within `request`."""

    def __init__(self, elements: Iterator[bytes], count: int) -> None:
        self._elements = elements
        self._remaining = count

    def subscribe(self, subscriber: Any) -> None:
        self._subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        for _ in range(min(n, self._remaining)):
            self._remaining -= 1
            self._subscriber.on_next(Payload(next(self._elements)), is_complete=not self._remaining)

    def cancel(self) -> None:
        self._remaining = 0


def generated(count: int) -> Any:
    """Return a publisher of the library's own."""
    generator = library("streams.stream_from_generator").StreamFromGenerator
    return generator(lambda: ((Payload(PAYLOAD), i == count - 1) for i in range(count)))


class Serving(Handlers):  # type: ignore[misc]  # the base class is Any
    async def request_response(self, payload: Any) -> Any:
        return helpers.create_future(Payload(payload.data))

    async def request_stream(self, payload: Any) -> Any:
        kind, count = payload.data.split()
        if kind == b"generated":
            return generated(int(count))
        return Synchronous(repeat(PAYLOAD), int(count))


class Subscriber:
    """Requests 192 elements whenever as many have been received, after the initial 256."""

    def __init__(self) -> None:
        self.done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.received = 0
        self.remaining = REFILL

    def on_subscribe(self, subscription: Any) -> None:
        self.subscription = subscription

    def on_next(self, element: Any, is_complete: bool = False) -> None:
        del element
        self.received += 1
        self.remaining -= 1
        if is_complete:
            self.on_complete()
        elif not self.remaining:
            self.remaining = REFILL
            self.subscription.request(REFILL)

    def on_error(self, error: Exception) -> None:
        self.done.set_exception(error)

    def on_complete(self) -> None:
        self.done.set_result(self.received)


class PyPI:
    async def serve(self) -> int:
        server = library("rsocket_server").RSocketServer

        def accept(*streams: Any) -> None:
            server(TCP(*streams, read_buffer_size=65536), handler_factory=Serving)

        self.listener = await asyncio.start_server(accept, "127.0.0.1", 0)
        return int(self.listener.sockets[0].getsockname()[1])

    async def connect(self, port: int) -> dict[str, Work]:
        streams = await asyncio.open_connection("127.0.0.1", port)
        provider = helpers.single_transport_provider(TCP(*streams, read_buffer_size=65536))
        self.client = library("rsocket_client").RSocketClient(provider)
        await self.client.connect()

        def request() -> Any:
            return self.client.request_response(Payload(PAYLOAD))

        return {
            "stream": lambda count: self.stream(b"synchronous", count),
            "generated": lambda count: self.stream(b"generated", count),
            "many": lambda count: concurrently(count, request, IN_FLIGHT),
            "one": lambda count: concurrently(count, request, 1),
        }

    def commands(self) -> dict[str, Work]:
        return {}

    async def stream(self, kind: bytes, count: int) -> int:
        subscriber = Subscriber()
        request = self.client.request_stream(Payload(b"%b %d" % (kind, count)))
        request.initial_request_n(CREDIT).subscribe(subscriber)
        return await subscriber.done


if __name__ == "__main__":
    main(PyPI())
