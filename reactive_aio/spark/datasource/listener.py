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
from anyio.abc import ByteStream, Listener, SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSListener

from ..._core.hosts import is_loopback
from ..._core.loop import report
from ...errors import ReactiveError
from ...stage import require_int
from ..errors import require_text
from .wire_protocol import HEAD, MAX_MESSAGE, Message, decode, encode, frame

if TYPE_CHECKING:
    from os import PathLike

_REQUEST_TIMEOUT: Final = 15.0  # seconds from the connection to its request
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


class _QuietTLSListener(TLSListener):
    """Closes connections whose handshake fails: the client reports that to its query."""

    @staticmethod
    async def handle_handshake_error(exc: BaseException, stream: Any) -> None:
        await anyio.aclose_forcefully(stream)
        if not isinstance(exc, Exception):
            raise exc


@asynccontextmanager
async def listen(
    respond: Callable[[Connection], Awaitable[None]], options: ListenOptions
) -> AsyncGenerator[tuple[str, str, dict[str, str]]]:
    """Listen, and let *respond* answer clients that know the token.

    Yields the arguments of `ServedAddress`.
    """
    host, secret = options.host, options.token or token_hex(32)
    client_options = await anyio.to_thread.run_sync(options.client_options)

    async def serve(stream: ByteStream) -> None:
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

    listener: Listener[Any] = await anyio.create_tcp_listener(
        local_host=host, local_port=options.port
    )
    number = listener.extra(SocketAttribute.local_address)[1]
    if options.ssl is not None:
        listener = _QuietTLSListener(listener, options.ssl, standard_compatible=False)
    raised: Exception | None = None
    async with listener, anyio.create_task_group() as connections:
        connections.start_soon(listener.serve, serve)
        try:
            address = f"[{host}]:{number}" if ":" in host else f"{host}:{number}"
            yield address, secret, client_options
        except Exception as error:
            raised = error  # raised below, outside of the task group's exception group
        finally:
            connections.cancel_scope.cancel()
    if raised is not None:
        raise raised
