"""A server of WebSockets, in the way that the option selects.

``--uvicorn`` is an ASGI app without a framework, ``--starlette`` one with it, ``--websockets`` the
server and the `broadcast` of that package, and ``--reactive_aio`` the endpoint of this package.
"""

import asyncio
import socket
import sys
from importlib import import_module
from itertools import repeat
from typing import TYPE_CHECKING, Any

import uvicorn

from benchmarks.asgi.wire import PAYLOAD
from benchmarks.rsocket.ends.command import Work, main
from reactive_aio import Flow, MulticastProcessor, from_iterable, just
from reactive_aio.asgi import websocket

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MANY = 20_000
CAPACITY = 64


class Bare:
    """An ASGI app that answers each message, and sends elements to one socket after the other."""

    def __init__(self) -> None:
        self.sockets: set[Callable[[str], Awaitable[Any]]] = set()  # their sends

    async def serve(self) -> int:
        return await self.listen(self.app)

    async def listen(self, app: Any) -> int:
        """Serve *app* by uvicorn; return the port."""
        # asyncio disables Nagle's algorithm only where the protocol is known.
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.bind(("127.0.0.1", 0))
        listening.listen(1024)
        # No pings: the raw clients do not answer them.
        config = uvicorn.Config(
            app, interface="asgi3", log_level="error", ws_ping_interval=None, lifespan="off"
        )
        # It is listening already: a client that comes first waits until uvicorn has started.
        self.serving = asyncio.ensure_future(uvicorn.Server(config).serve([listening]))
        return int(listening.getsockname()[1])

    async def connect(self, port: int) -> dict[str, Work]:
        raise NotImplementedError("the clients are those of the benchmark")

    def commands(self) -> dict[str, Work]:
        return {"fan": self.fan}

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_text(text: str) -> None:
            await send({"type": "websocket.send", "text": text})

        await receive()
        await send({"type": "websocket.accept"})
        self.sockets.add(send_text)
        try:
            while (event := await receive())["type"] != "websocket.disconnect":
                await send_text(event["text"])
        finally:
            self.sockets.discard(send_text)

    async def fan(self, count: int) -> int:
        for _ in range(count):
            for send_text in [*self.sockets]:
                await send_text(PAYLOAD)
        return count


class Starlette(Bare):
    """The same by Starlette's `WebSocket`."""

    async def serve(self) -> int:
        routing = import_module("starlette.routing")
        route = routing.WebSocketRoute("/echo", self.endpoint)
        return await self.listen(import_module("starlette.applications").Starlette(routes=[route]))

    async def endpoint(self, socket: Any) -> None:
        await socket.accept()
        self.sockets.add(socket.send_text)
        try:
            async for text in socket.iter_text():
                await socket.send_text(text)
        finally:
            self.sockets.discard(socket.send_text)


class Broadcasting(Bare):
    """The package websockets, which sends to all sockets without waiting for any of them."""

    async def serve(self) -> int:
        server = import_module("websockets.asyncio.server")
        self.connections: set[Any] = set()
        self.broadcast: Any = server.broadcast
        self.server = await server.serve(
            self.handle, "127.0.0.1", 0, compression=None, ping_interval=None, backlog=1024
        )
        return int(next(iter(self.server.sockets)).getsockname()[1])

    async def handle(self, connection: Any) -> None:
        self.connections.add(connection)
        try:
            async for text in connection:
                await connection.send(text)
        finally:
            self.connections.discard(connection)

    async def fan(self, count: int) -> int:
        for _ in range(count):
            self.broadcast(self.connections, PAYLOAD)
            await asyncio.sleep(0)
        return count


class Ours(Bare):
    """The endpoint of this package: each subscriber receives what it requests."""

    async def serve(self) -> int:
        self.hubs = {"wait": waiting(), "drop": dropping()}
        routes = {"one": just(PAYLOAD), "hot": self.hot, "dropping": self.dropping}
        return await self.listen(websocket(routes, max_sockets=MANY))

    def hot(self) -> Flow[str]:
        return self.hubs["wait"]

    def dropping(self) -> Flow[str]:
        return self.hubs["drop"]

    def commands(self) -> dict[str, Work]:
        return {"fan": self.fan, "drop": self.drop}

    async def fan(self, count: int) -> int:
        hub, self.hubs["wait"] = self.hubs["wait"], waiting()
        return await feed(hub, count)

    async def drop(self, count: int) -> int:
        hub, self.hubs["drop"] = self.hubs["drop"], dropping()
        return await feed(hub, count)


def waiting() -> MulticastProcessor[str]:
    return MulticastProcessor[str](CAPACITY)


def dropping() -> MulticastProcessor[str]:
    return MulticastProcessor[str](CAPACITY, overflow="drop_oldest")


async def feed(hub: "MulticastProcessor[str]", count: int) -> int:
    """Publish *count* elements as fast as *hub* requests them."""
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    elements = from_iterable(repeat(PAYLOAD, count))
    elements.do_on_complete(lambda: done.set_result(count)).subscribe(hub)
    return await done


SERVERS: dict[str, type[Bare]] = {
    "--uvicorn": Bare,
    "--starlette": Starlette,
    "--websockets": Broadcasting,
    "--reactive_aio": Ours,
}

if __name__ == "__main__":
    [selected] = [each for each in sys.argv if each in SERVERS]
    sys.argv.remove(selected)
    main(SERVERS[selected]())
