"""A listening socket that answers Spark's tasks: a task for each connection, a token, and TLS."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path
from secrets import token_hex
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSStream

from ..._core.hosts import is_loopback
from ..._shared.connections import Newcomers, serve_connections
from ...errors import ReactiveError
from ...stage import require_int
from ..errors import require_text
from .wire_protocol import HEAD, MAX_MESSAGE, MAX_TOKEN, Message, decode, encode, frame

if TYPE_CHECKING:
    from os import PathLike

_REQUEST_TIMEOUT: Final = 15.0  # seconds from the connection to its token, and to its request
_MOST_UNKNOWN: Final = 256
"""Clients that may be there without having shown the token; for one more, the oldest leaves."""
_LARGEST_PORT: Final = 65_535
_MAX_FRAME: Final = 1 << 31
_DISCONNECTED: Final = (
    anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError,
)  # fmt: skip


class UnencryptedAddress(ReactiveError, ValueError):
    """The token and the rows would cross the network unencrypted; the message gives the ways."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenOptions:
    """Where the socket listens, and which clients may connect: arguments of *function*."""

    function: str
    host: str
    port: int
    token: str | None
    ssl: SSLContext | None
    ca: "str | PathLike[str] | None"
    allow_unencrypted: bool

    def __post_init__(self) -> None:
        require_text(self.function, "host", self.host)
        require_int(self.function, "port", self.port)
        if self.port > _LARGEST_PORT:
            raise ValueError(
                f"{self.function}: port must be at most {_LARGEST_PORT}, not {self.port}"
            )
        if self.token is not None:
            require_text(self.function, "token", self.token)
            if not 0 < len(self.token.encode("utf-8", "surrogatepass")) <= MAX_TOKEN:
                raise ValueError(f"{self.function}: a token is of 1 to {MAX_TOKEN} bytes")
        if self.ssl is None and self.ca is not None:
            raise TypeError(f"{self.function}: ca is for ssl=, an SSLContext of the server")
        if self.ssl is None and not self.allow_unencrypted and not is_loopback(self.host):
            raise UnencryptedAddress(
                f"{self.function}: with host={self.host!r}, the token and the rows would cross the "
                "network unencrypted. Give ssl=, an SSLContext with a certificate for that host "
                "(and ca=, the file of the authority that signed it), or allow_unencrypted=True "
                "where the network itself is trusted."
            )

    def client_options(self) -> dict[str, str]:
        """Return the options by which clients check the server. Reads the file *ca*: blocks."""
        if self.ssl is None:
            return {}
        return {"tls": "true"} | ({} if self.ca is None else {"ca": Path(self.ca).read_text()})


@dataclass(eq=False, repr=False)
class ServedAddress:
    """Where Spark connects to: ``.options(**served.options)``."""

    address: str
    token: str
    _client_options: dict[str, str]

    @property
    def options(self) -> dict[str, str]:
        """For ``spark.read``, ``spark.readStream``, ``df.write`` or ``df.writeStream``."""
        return {"address": self.address, "token": self.token, **self._client_options}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.address}>"


class Connection:
    """The loop's side of one connection."""

    def __init__(self, stream: Any) -> None:  # of anyio, with or without TLS
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


class _Door:
    """Lets in clients that know the token: of the others nothing is reported, and little held."""

    def __init__(self, secret: str, context: SSLContext | None) -> None:
        self._secret = secret.encode()
        self._context = context
        self._unknown = Newcomers(_MOST_UNKNOWN, _REQUEST_TIMEOUT)

    async def enter(self, stream: SocketStream) -> Connection | None:
        """The connection of a client that has shown the token in time; None for any other."""
        with suppress(Exception), self._unknown.wait():
            return await self._known(stream)
        return None

    async def _known(self, stream: SocketStream) -> Connection | None:
        secured: ByteStream = stream
        if self._context is not None:
            secured = await TLSStream.wrap(
                stream, ssl_context=self._context, standard_compatible=False
            )
        connection = Connection(secured)
        given = await connection.receive(MAX_TOKEN)
        return connection if compare_digest(given, self._secret) else None


@asynccontextmanager
async def listen(
    respond: Callable[[Connection], Awaitable[None]], options: ListenOptions
) -> AsyncGenerator[tuple[str, str, dict[str, str]]]:
    """Listen, and let *respond* answer clients that know the token.

    Yields the arguments of `ServedAddress`.
    """
    host, secret = options.host, options.token or token_hex(32)
    client_options = await anyio.to_thread.run_sync(options.client_options)

    door = _Door(secret, options.ssl)

    async def serve(stream: SocketStream) -> None:
        async with stream:
            connection = await door.enter(stream)
            if connection is None:
                return
            try:
                with anyio.fail_after(_REQUEST_TIMEOUT):
                    connection.request = await connection.receive_message()
                await respond(connection)
            except _DISCONNECTED:
                pass  # Spark has ended the task, and reports that to the query

    listener = await anyio.create_tcp_listener(local_host=host, local_port=options.port)
    number = listener.extra(SocketAttribute.local_address)[1]
    raised: Exception | None = None
    async with listener, anyio.create_task_group() as connections:
        connections.start_soon(serve_connections, listener.listeners, serve, options.function)
        try:
            address = f"[{host}]:{number}" if ":" in host else f"{host}:{number}"
            yield address, secret, client_options
        except Exception as error:
            raised = error  # raised below, outside of the task group's exception group
        finally:
            connections.cancel_scope.cancel()
    if raised is not None:
        raise raised
