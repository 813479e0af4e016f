"""Between a client and its server: connections can be cut, as when the server ends, and refused."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Proxy:
    """Listens at a port of its own. *url* leads there."""

    def __init__(self, target: str) -> None:
        self._parts = urlsplit(target)
        self._server: asyncio.Server | None = None
        self._port = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        user, _, _ = self._parts.netloc.rpartition("@")
        host = f"127.0.0.1:{self._port}"
        return self._parts._replace(netloc=f"{user}@{host}" if user else host).geturl()

    async def start(self) -> None:
        """Accept connections, at the same port as before."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Refuse connections, and cut those that there are."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(OSError):
            other, back = await asyncio.open_connection(self._parts.hostname, self._parts.port)
            self._writers |= {writer, back}
            await asyncio.gather(self._copy(reader, back), self._copy(other, writer))
            self._writers -= {writer, back}
        self._tasks.discard(task)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def proxy_of(url: str) -> AsyncGenerator[Proxy]:
    """A proxy that accepts connections."""
    proxy = Proxy(url)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
