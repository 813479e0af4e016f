"""Server processes, and raw clients that control when bytes are read."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import uvicorn

from tests.harness.outages import Lacking, Proxy

ROOT = Path(__file__).parents[2]
SMALL = 16 * 1024


@dataclass
class Service:
    """A running service."""

    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str) -> bytes:
        """Request *path*, as soon as the service has started; it blocks the thread."""
        with urlopen(f"{self.url}{path}", timeout=40) as response:
            body: bytes = response.read()
        return body

    async def stat(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await asyncio.to_thread(self.get, "/stat"))
        return found

    async def settles(self, open: int) -> dict[str, Any]:
        """Wait until no more than *open* streams are open."""
        async with asyncio.timeout(40):
            stat = await self.stat()
            while stat["open"] > open:
                stat = await self.stat()
        return stat


@contextmanager
def service(
    app: str,
    loop: str = "asyncio",
    server: str = "websockets",
    *,
    logs: bool = False,
    lacking: Lacking | None = None,
) -> Generator[Service]:
    """Serve *app* of `tests.asgi.service` on a free port of the loopback interface.

    *server* is ``hypercorn``, or the implementation of WebSockets for uvicorn. With *logs*, a test
    reads what the process writes to stderr. *lacking* limits the process.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        # The kernel would buffer megabytes for each client that does not read.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
        fd = listening.fileno()
        command = [sys.executable, "-m", "tests.asgi.service", str(fd), app, loop, server]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            pass_fds=[fd],
            stderr=subprocess.PIPE if logs else None,
            preexec_fn=lacking,
        )
        port = listening.getsockname()[1]
    try:
        yield Service(port, process)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@asynccontextmanager
async def running(app: Any, **options: Any) -> AsyncGenerator[str]:
    """Run *app* under uvicorn, in this process; yield ``host:port``."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
        config = uvicorn.Config(app, log_level="warning", **options)
        server = uvicorn.Server(config)
        task = asyncio.ensure_future(server.serve(sockets=[listening]))
        try:
            yield "{}:{}".format(*listening.getsockname())
        finally:
            server.should_exit = True
            await task


class RawClient:
    """A connection that reads only what the test requests."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self.received = 0

    @staticmethod
    async def get(service: "Service | Proxy", path: str) -> "RawClient":
        client = await RawClient._connected(service)
        await client.write(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        return client

    @staticmethod
    async def socket(service: "Service | Proxy", path: str, *messages: str) -> "RawClient":
        client = await RawClient._connected(service)
        key = "dGhlIHNhbXBsZSBub25jZQ=="
        await client.write(
            f"GET {path} HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        await client.read(1)  # messages sent before the handshake may get lost
        for message in messages:
            await client.write(masked(message))
        return client

    @staticmethod
    async def _connected(service: "Service | Proxy") -> "RawClient":
        connection = socket.socket()
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", service.port))
        return RawClient(connection)

    async def write(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._connection, data)

    async def read(self, count: int) -> None:
        """Read *count* bytes or more."""
        target = self.received + count
        while self.received < target:
            got = await self._loop.sock_recv(self._connection, SMALL)
            assert got, "the server has closed the connection"
            self.received += len(got)

    def close(self) -> None:
        self._connection.close()


def masked(text: str) -> bytes:
    """Frame a text message as a client does, with a mask of zeros, which changes nothing."""
    data = text.encode()
    assert len(data) < 126
    return bytes([0x81, 0x80 | len(data)]) + b"\0\0\0\0" + data
