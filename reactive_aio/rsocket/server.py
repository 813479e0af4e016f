"""The serving side: `serve` listens for connections; `loopback` has one in memory, for tests."""

from ssl import SSLContext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from .._core.loop import Door, settled
from .client import dialled
from .driver import Driver, Responder
from .payloads import BYTES, Codec
from .protocol.connection import Connection
from .protocol.limits import Limits
from .requester import Requester
from .responder import Authenticate, RouterResponder
from .transports.addressed import listen, place
from .transports.memory import join
from .uri import Address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._core.loop import Listener
    from .protocol.metadata import Credentials
    from .routing import Router

__all__ = ("Server", "loopback", "serve")

T = TypeVar("T")


class Server:
    """Those who are connected. Leave it by ``async with``, or close it."""

    def __init__(
        self, responder: Responder, *, limits: Limits | None, max_connections: int
    ) -> None:
        self.address: Address | None = None
        """Where it listens; None if it does not."""
        self.refused: int = 0
        """How many connections there were too many."""
        self._responder = responder
        self._limits = limits
        self._most = max_connections
        self._drivers: set[Driver] = set()
        self._listener: Listener | None = None
        self._closing = False

    @property
    def uri(self) -> str:
        """Where clients find it."""
        return str(self.address)

    @property
    def connections(self) -> int:
        return len(self._drivers)

    def welcome(self) -> Driver:
        """The driver of a new connection; one too many ends at once."""
        driver = Driver(lambda now: Connection(None, now, limits=self._limits), self._responder)
        if self._closing or len(self._drivers) >= self._most:
            self.refused += 1
            driver.abort()
            return driver
        driver.on_lost = self._drivers.discard
        self._drivers.add(driver)
        return driver

    async def listen(self, uri: str, ssl: SSLContext | None, origins: "Sequence[str]" = ()) -> Self:
        address = Address.parse(uri)
        loop = Door("serve()").loop
        self._listener = await listen(loop, address, self.welcome, ssl, origins)
        self.address = place(self._listener, address)
        return self

    async def aclose(self) -> None:
        """Listen no more, and end all connections with the streams that are open."""
        self._closing = True
        if self._listener is not None:
            self._listener.close()
        await settled(*(each.aclose() for each in list(self._drivers)))
        if self._listener is not None:
            await self._listener.wait_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


async def serve(
    uri: str,
    router: "Router",
    *,
    ssl: SSLContext | None = None,
    origins: "Sequence[str]" = (),
    authenticate: Authenticate | None = None,
    auth_timeout: float = 5.0,
    codecs: dict[str, Codec[Any]] | None = None,
    limits: Limits | None = None,
    max_connections: int = 1024,
    max_running: int = 256,
    tell_errors: bool = False,
    on_error: "Callable[[BaseException], object] | None" = None,
) -> Server:
    """Listen at *uri* (``tcp://…:0`` for any free port) and serve by *router*.

    *ssl* is needed for ``tls://`` and ``wss://``; one that demands certificates verifies clients.
    Over WebSocket, web pages of the same host and port may connect, and those of *origins*, such
    as ``https://shop.example``; ``*`` stands for all. *authenticate*
    gets the credentials of each client, or None, and returns who that is, or something false; it
    may be awaitable, for *auth_timeout* seconds. *codecs* adds to bytes, text and JSON, by MIME
    type; a client's own type counts. At most *max_connections* are open, and *max_running*
    fire-and-forget requests being served, on all of them. The texts of exceptions stay here,
    unless *tell_errors*; a `StreamFailed` goes to the peer as it is. *on_error* gets all others;
    else the loop's exception handler does.
    """
    responder = RouterResponder(
        router,
        authenticate=authenticate,
        auth_timeout=auth_timeout,
        codecs=codecs,
        max_running=max_running,
        tell_errors=tell_errors,
        on_error=on_error,
    )
    server = Server(responder, limits=limits, max_connections=max_connections)
    return await server.listen(uri, ssl, origins)


class _Loopback(Requester[T]):
    """A requester that takes its server with it."""

    def __init__(self, driver: Driver, codec: Codec[T], server: Driver) -> None:
        super().__init__(driver, codec)
        self._server = server

    async def aclose(self) -> None:
        await super().aclose()
        await self._server.aclose()


@overload
def loopback(
    router: "Router",
    *,
    credentials: "Credentials | None" = None,
    limits: Limits | None = None,
    answers: "Router | None" = None,
    authenticate: Authenticate | None = None,
    auth_timeout: float = 5.0,
    codecs: dict[str, Codec[Any]] | None = None,
    max_running: int = 256,
    tell_errors: bool = False,
    on_error: "Callable[[BaseException], object] | None" = None,
) -> Requester[bytes]: ...
@overload
def loopback(
    router: "Router",
    *,
    codec: Codec[T],
    credentials: "Credentials | None" = None,
    limits: Limits | None = None,
    answers: "Router | None" = None,
    authenticate: Authenticate | None = None,
    auth_timeout: float = 5.0,
    codecs: dict[str, Codec[Any]] | None = None,
    max_running: int = 256,
    tell_errors: bool = False,
    on_error: "Callable[[BaseException], object] | None" = None,
) -> Requester[T]: ...
def loopback(
    router: "Router",
    *,
    codec: Codec[Any] = BYTES,
    credentials: "Credentials | None" = None,
    limits: Limits | None = None,
    answers: "Router | None" = None,
    authenticate: Authenticate | None = None,
    auth_timeout: float = 5.0,
    codecs: dict[str, Codec[Any]] | None = None,
    max_running: int = 256,
    tell_errors: bool = False,
    on_error: "Callable[[BaseException], object] | None" = None,
) -> Requester[Any]:
    """Connect to *router* in memory: the whole protocol, without a socket.

    ::

        async with loopback(router, codec=JSON) as requester:
            assert await requester.request_response(route="time") == 12

    *answers* serves what the router's handlers ask of the client. All else is as in `serve`.
    """
    client = dialled(codec, credentials=credentials, limits=limits, router=answers)
    responder = RouterResponder(
        router,
        authenticate=authenticate,
        auth_timeout=auth_timeout,
        codecs=codecs,
        max_running=max_running,
        tell_errors=tell_errors,
        on_error=on_error,
    )
    server = Driver(lambda now: Connection(None, now, limits=limits), responder)
    join(client, server)
    return _Loopback(client, codec, server)
