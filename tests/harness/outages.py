"""What can happen to a connection and to a process, for tests of everything that has peers.

`Proxy` is between a client and its server: it refuses and cuts connections, lets nothing pass,
delays, and lets little pass at a time. `frozen` stops a process as a debugger or a suspended
machine does; `Lacking` starts one that has few descriptors, little memory or a full disk.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

if sys.platform != "win32":
    import resource  # here, since another user than this one's may not read it

__all__ = ("Lacking", "Proxy", "frozen", "is_gone", "proxy_of")


class Proxy:
    """Listens at a port of its own. *url* leads there, and from there to *target*.

    Or, if *path* is given, to that Unix socket.
    """

    def __init__(self, target: str, path: Path | None = None) -> None:
        self._parts = urlsplit(target)
        self._path = path
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._passes = asyncio.Event()
        self._passes.set()
        self._piece = 65536
        self._pause = 0.0
        self.port = 0
        self.connections = 0
        """So many have been made."""

    @property
    def open(self) -> int:
        """How many of them neither end has left, or a frozen proxy lets nobody know of it."""
        return len(self._tasks)

    @property
    def url(self) -> str:
        user, at, _ = self._parts.netloc.rpartition("@")
        return self._parts._replace(netloc=f"{user}{at}127.0.0.1:{self.port}").geturl()

    async def start(self) -> None:
        """Accept connections, at the same port as before."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Refuse connections, and cut those that there are: the server has ended."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """End the connections that there are, whatever is under way: the server was killed."""
        self._passes.set()
        while self._writers:
            self._writers.pop().transport.abort()

    def freeze(self) -> None:
        """Let nothing pass from now on, and end nothing: a machine that was switched off."""
        self._passes.clear()

    def thaw(self) -> None:
        self._passes.set()

    def delay(self, seconds: float, *, piece: int = 65536) -> None:
        """Wait before each *piece* of so many bytes: a slow link. 0 lets all pass again."""
        self._pause, self._piece = seconds, piece

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self._server is None:  # it was stopped in the turn before
            writer.transport.abort()
            return
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        self._writers.add(writer)  # it may be cut before it leads anywhere
        try:
            there, back = await self._connect()
        except OSError:
            self._writers.discard(writer)
            writer.transport.abort()
            return
        self._writers.add(back)
        # Else the system would buffer megabytes, and a slow link would be felt late.
        back.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        await asyncio.gather(self._copy(reader, back), self._copy(there, writer))
        self._writers -= {writer, back}

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._path is not None:
            return await asyncio.open_unix_connection(self._path)
        return await asyncio.open_connection(self._parts.hostname, self._parts.port)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, RuntimeError):  # which uvloop raises of a transport that was cut
            while data := await reader.read(65536):
                while data:
                    if self._pause:
                        await asyncio.sleep(self._pause)
                    await self._passes.wait()
                    piece, data = data[: self._piece], data[self._piece :]
                    writer.write(piece)
                    await writer.drain()
        await self._passes.wait()  # an end does not pass either
        writer.close()


@asynccontextmanager
async def proxy_of(url: str, path: Path | None = None) -> AsyncGenerator[Proxy]:
    """A proxy that accepts connections, and passes on to *url*, or to the Unix socket *path*."""
    proxy = Proxy(url, path)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()


def is_gone(process: int) -> bool:
    """Whether a process has ended, and its parent has taken its status."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


@contextmanager
def frozen(*processes: int) -> Generator[None]:
    """*processes* and their children do nothing, and all of their connections stay open."""
    children = [
        int(each)
        for process in processes
        for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]
    for each in (*processes, *children):
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in (*processes, *children):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGCONT)


@dataclass(frozen=True)
class Lacking:
    """Limits of a process: an instance is the ``preexec_fn`` that starts it with them."""

    descriptors: int | None = None
    memory: int | None = None
    """In bytes, of addresses."""
    file_size: int | None = None
    """In bytes; a longer file cannot be written: for the program, its disk is full."""

    def __call__(self) -> None:
        limits = {
            resource.RLIMIT_NOFILE: self.descriptors,
            resource.RLIMIT_AS: self.memory,
            resource.RLIMIT_FSIZE: self.file_size,
        }
        for kind, limit in limits.items():
            if limit is not None:
                resource.setrlimit(kind, (limit, limit))
        # Else the signal ends the process, where a full disk is an OSError.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
