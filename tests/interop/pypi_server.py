"""PyPI's rsocket as a server with the routes that the network kit requires.

``python -m tests.interop.pypi_server PORT`` listens on that TCP port (0: any) and prints it.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Generator
from importlib import import_module
from typing import Any

from tests.interop.kit_routes import Script

__all__ = ("composite", "listen")

# The package has no type hints.
Payload: Any = import_module("rsocket.payload").Payload
Server: Any = import_module("rsocket.rsocket_server").RSocketServer
Tcp: Any = import_module("rsocket.transports.tcp").TransportTCP
Generated: Any = import_module("rsocket.streams.stream_from_generator").StreamFromGenerator
Awaited: Any = import_module("rsocket.streams.stream_from_async_generator").StreamFromAsyncGenerator
route_of: Any = import_module("rsocket.extensions.helpers").require_route
read_composite: Any = import_module("rsocket.extensions.composite_metadata").CompositeMetadata


def composite(route: str) -> bytes:
    """Metadata that names *route*."""
    name = route.encode()
    return b"\xfe" + (len(name) + 1).to_bytes(3, "big") + bytes((len(name),)) + name


def texts(count: int) -> Generator[tuple[Any, bool], None, None]:
    for number in range(count):
        yield Payload(b"%d" % number), number == count - 1


def full() -> Generator[tuple[Any, bool], None, None]:
    while True:
        yield Payload(bytes(1000)), False


async def failing() -> AsyncGenerator[tuple[Any, bool], None]:
    yield Payload(b"1"), False
    raise RuntimeError("as requested")


def created(value: Any) -> "asyncio.Future[Any]":
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future


class Nothing:
    """An empty stream. Its EmptyStream completes inside subscribe, which it cannot handle."""

    def subscribe(self, subscriber: Any) -> None:
        subscriber.on_subscribe(self)
        asyncio.get_running_loop().call_soon(subscriber.on_complete)

    def request(self, n: int) -> None: ...

    def cancel(self) -> None: ...


class Echo:
    """A channel that sends back its elements under the demand of the peer."""

    def __init__(self, first: bytes) -> None:
        self.kept = [first]
        self.wanted = 0
        self.is_complete = self.over = False
        self.out: Any = None
        self.upstream: Any = None

    # the publisher
    def subscribe(self, subscriber: Any) -> None:
        self.out = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        self.wanted += n
        if self.upstream is not None and not self.is_complete:
            self.upstream.request(n)
        self.run()

    def cancel(self) -> None:
        self.over = True

    # the subscriber
    def on_subscribe(self, subscription: Any) -> None:
        self.upstream = subscription
        subscription.request(max(1, self.wanted - 1))

    def on_next(self, value: Any, is_complete: bool = False) -> None:
        self.kept.append(value.data or b"")
        self.is_complete = self.is_complete or is_complete
        self.run()

    def on_complete(self) -> None:
        self.is_complete = True
        self.run()

    def on_error(self, exception: Exception) -> None:
        self.over = True

    def run(self) -> None:
        while self.kept and self.wanted and not self.over and self.out is not None:
            self.wanted -= 1
            self.out.on_next(Payload(self.kept.pop(0)))
        if self.is_complete and not self.kept and not self.over and self.out is not None:
            self.over = True
            self.out.on_complete()


class ScriptedSubscriber(Script):
    """A subscriber of the package that follows a script; see `docs/protocol.md`."""

    def on_next(self, value: Any, is_complete: bool = False) -> None:
        if is_complete:  # and so the script has nothing to do after it
            self.due = 0
        self.take(value.data or b"")
        if is_complete:
            self.end("complete")

    def on_error(self, exception: Exception) -> None:
        self.end(f"error {getattr(exception, 'error_code', 0x201)}")


class KitHandler:
    """All routes that the network kit requires."""

    peer: Any = None

    async def on_setup(self, data_encoding: bytes, metadata_encoding: bytes, payload: Any) -> None:
        if payload is not None and b"wrong" in (payload.metadata or b""):
            raise RuntimeError("go away")

    async def request_fire_and_forget(self, payload: Any) -> None: ...

    async def on_metadata_push(self, payload: Any) -> None: ...

    async def on_error(self, error_code: Any, payload: Any) -> None: ...

    async def on_keepalive_timeout(self, time_since: Any, rsocket: Any) -> None: ...

    async def on_connection_error(self, rsocket: Any, exception: Exception) -> None: ...

    async def on_close(self, rsocket: Any, exception: Exception | None = None) -> None: ...

    def route(self, payload: Any) -> str:
        items = read_composite()
        items.parse(payload.metadata)
        named: str = route_of(items)
        return named

    async def request_response(self, payload: Any) -> Any:
        route = self.route(payload)
        if route == "tck.echo":
            return created(Payload(payload.data))
        if route == "tck.never":
            await asyncio.sleep(3600)
        if route == "tck.ask":
            return asyncio.ensure_future(self.follow(bytes(payload.data).decode().split()))
        raise RuntimeError(f"refused {route}")

    async def follow(self, words: list[str]) -> Any:
        request = Payload(b"", composite("tck.answer"))
        what = words.pop(0)
        if what != "response":
            done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            stream = self.peer.request_stream(request)
            for _ in range(2 if what == "twice" else 1):
                stream.subscribe(ScriptedSubscriber(list(words), done, Payload))
            return await done
        try:
            answer = await self.peer.request_response(request)
        except Exception as error:
            return Payload(b"0 0 error %d" % getattr(error, "error_code", 0x201))
        return Payload(b"1 %d complete" % len(answer.data or b""))

    async def request_stream(self, payload: Any) -> Any:
        route = self.route(payload)
        if route.startswith("tck.stream."):
            count = int(route.split(".")[2])
            return Generated(lambda: texts(count)) if count else Nothing()
        if route == "tck.endless":
            return Generated(full)
        if route == "tck.fail":
            return Awaited(failing)
        raise RuntimeError(f"refused {route}")

    async def request_channel(self, payload: Any) -> Any:
        echo = Echo(payload.data or b"")
        return echo, echo


async def listen(port: int) -> "asyncio.Server":
    """Serve at *port*."""

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = KitHandler()
        handler.peer = Server(Tcp(reader, writer), handler_factory=lambda: handler)

    return await asyncio.start_server(connected, "127.0.0.1", port)


async def main() -> None:
    logging.disable()
    server = await listen(int(sys.argv[1]))
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
