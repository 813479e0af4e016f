"""A listening socket that answers Spark's tasks: a task for each connection, and a token."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from hmac import compare_digest
from secrets import token_hex
from typing import Any, Final

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from ..._core.loop import report
from .wire_protocol import HEAD, MAX_MESSAGE, Message, decode, encode, frame

_REQUEST_TIMEOUT: Final = 15.0  # seconds from the connection to its request
_MAX_FRAME: Final = 1 << 31
_DISCONNECTED: Final = (
    anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError,
)  # fmt: skip


@dataclass(eq=False, repr=False)
class ServedAddress:
    """Where Spark connects to: ``.options(**served.options)``."""

    address: str
    token: str

    @property
    def options(self) -> dict[str, str]:
        """For ``spark.read``, ``spark.readStream``, ``df.write`` or ``df.writeStream``."""
        return {"address": self.address, "token": self.token}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.address}>"


class Connection:
    """The loop's side of one connection."""

    def __init__(self, stream: Any) -> None:  # a SocketStream of anyio
        self._stream = stream
        self._buffered = BufferedByteReceiveStream(stream)
        self.request: Message = {}

    async def receive(self, max_length: int = _MAX_FRAME) -> bytes:
        (length,) = HEAD.unpack(await self._buffered.receive_exactly(HEAD.size))
        if length > max_length:
            raise ValueError(f"a frame of {length} bytes")
        return await self._buffered.receive_exactly(length)

    async def receive_message(self) -> Message:
        return decode(await self.receive(MAX_MESSAGE))

    async def send(self, content: bytes) -> None:
        await self._stream.send(frame(content))

    async def send_message(self, **message: Any) -> None:
        await self.send(encode(message))


@asynccontextmanager
async def listen(
    respond: Callable[[Connection], Awaitable[None]], *, host: str, port: int, token: str | None
) -> AsyncGenerator[tuple[str, str]]:
    """Listen, and let *respond* answer clients that know the token; yield address and token."""
    secret = token or token_hex(32)

    async def serve(stream: SocketStream) -> None:
        async with stream:
            connection = Connection(stream)
            try:
                with anyio.move_on_after(_REQUEST_TIMEOUT), suppress(ValueError):
                    connection.request = await connection.receive_message()
                given = connection.request.get("token")
                if isinstance(given, str) and compare_digest(given.encode(), secret.encode()):
                    await respond(connection)
            except _DISCONNECTED:
                pass  # Spark has ended the task, and reports that to the query
            except Exception as error:
                report("a connection to a served flow ended with an error", error)

    listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    number = listener.extra(SocketAttribute.local_address)[1]
    raised: Exception | None = None
    async with listener, anyio.create_task_group() as connections:
        connections.start_soon(listener.serve, serve)
        try:
            yield f"[{host}]:{number}" if ":" in host else f"{host}:{number}", secret
        except Exception as error:
            raised = error  # raised below, outside of the task group's exception group
        finally:
            connections.cancel_scope.cancel()
    if raised is not None:
        raise raised
