"""What does a server hold for a peer that requests 2^31-1 elements and reads none?"""

import asyncio
import socket
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from reactive_aio.rsocket.protocol.codec import add_length, encode
from reactive_aio.rsocket.protocol.frames import MAX_31, Payload, RequestStream, Setup
from reactive_aio.rsocket.protocol.metadata import (
    COMPOSITE_METADATA,
    OCTET_STREAM,
    ROUTING,
    write_composite,
    write_routing,
)

from ..runner.cases import Effort, Kind, Row
from ..runner.question import Measurable
from .pairs import End, Missing

MIB: Final = 1024 * 1024
ELEMENTS: Final = 1_000_000
"""The length of the stream: 35 MB on the wire, of which the kernel takes a few."""
ROUTE: Final = write_composite([(ROUTING, write_routing("stream"))])
MOST: Final = 120.0
MOST_MEMORY: Final = 8
"""MiB."""


@dataclass(frozen=True)
class Server:
    name: str
    end: str
    data: str
    metadata: bytes | None = None


@dataclass(eq=False)
class Unread(Measurable):
    """The growth of each server's peak memory."""

    servers: list[Server]
    text: str = "RSocket: 2^31-1 elements requested, none read"
    unit: str = "MiB"
    is_goal_a_figure: bool = True

    async def measure(self, effort: Effort) -> list[Row]:
        """Measure once: a second time, a process would reuse memory that it already has."""
        return [await self._row(server, effort.scale) for server in self.servers]

    async def _row(self, server: Server, scale: float) -> Row:
        kind: Kind = "ours" if server.end == "ours" else "peer"
        goal = MOST_MEMORY if kind == "ours" else None
        try:
            return Row(server.name, kind, await _grown(server, scale) / MIB, None, goal)
        except Missing as missing:
            return Row(server.name, kind, None, None, goal, str(missing))


question = Unread(
    [
        Server("memory of an RSocket stream that is requested and not read", "ours", "", ROUTE),
        Server("rsocket-js", "js", ""),
        Server("PyPI rsocket, a synchronous publisher", "pypi", "synchronous "),
        Server("PyPI rsocket, StreamFromGenerator", "pypi", "generated "),
    ]
)


async def _grown(server: Server, scale: float) -> float:
    async with AsyncExitStack() as stack:
        end = await End.start(server.end, "serve")
        stack.push_async_callback(end.stop)
        port = int(await end.read())
        before = int(await end.command("peak"))
        rude = stack.enter_context(socket.socket())
        rude.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        rude.connect(("127.0.0.1", port))
        data = f"{server.data}{int(ELEMENTS * scale)}".encode()
        setup = Setup(metadata_mime=COMPOSITE_METADATA, data_mime=OCTET_STREAM)
        request = RequestStream(1, MAX_31, Payload(data, server.metadata))
        rude.sendall(add_length(encode(setup)) + add_length(encode(request)))
        await _idle(end)
        return int(await end.command("peak")) - before


async def _idle(end: End) -> None:
    """Wait until *end* is idle, for a limited time."""
    before, now = -1.0, 0.0
    async with asyncio.timeout(MOST):
        while now - before > 0.1:
            await asyncio.sleep(2.0)
            before, now = now, await end.cpu()
