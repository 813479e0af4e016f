"""The serving side: `serve` listens for connections; `loopback` has one in memory, for tests."""

from ssl import SSLContext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack, overload

from .._core.loop import LoopHandle, wait_settled
from .client_options import ClientOptions, client_driver
from .driver import Driver
from .interfaces import Responder
from .payloads import BYTES, Codec
from .protocol.connection import Connection
from .protocol.limits import Limits
from .requester import Requester
from .responder import ResponderOptions, RouterResponder
from .transports.endpoints import listen, place
from .transports.memory import join
from .uri import Address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._core.loop import Listener
    from .protocol.metadata import Credentials
    from .protocol.resume import Resumption
    from .routing import Router

__all__ = ("Server", "loopback", "serve")

T = TypeVar("T")
_RETURNING: Final = 64
"""How many more than all may be about to resume their sessions at a time."""


class Server:
    """Those who are connected. Leave it by ``async with``, or close it."""

    def __init__(
        self,
        responder: Responder,
        *,
        limits: Limits | None,
        max_connections: int,
        lease: bool = False,
        resume: "Resumption | None" = None,
    ) -> None:
        self.address: Address | None = None
        """Where it listens; None if it does not."""
        self.refused_connections: int = 0
        """The number of connections refused because too many were open."""
        self._responder = responder
        self._limits = limits
        self._most = max_connections
        self._lease = lease
        self._resume = resume
        self._drivers: set[Driver] = set()
        self._listener: Listener | None = None
        self._closing = False

    def __repr__(self) -> str:
        where = "in memory" if self.address is None else f"at {self.uri}"
        return f"<RSocket server {where}, {self.connections} connections>"

    @property
    def uri(self) -> str:
        """Where clients find it."""
        return str(self.address)

    @property
    def connections(self) -> int:
        """How many there are; sessions that wait for their clients are among them."""
        return len(self._drivers)

    def welcome(self) -> Driver:
        """The driver of a new connection; one too many ends at once."""
        driver = Driver(self._make, self._responder)
        driver.is_resume_only = self._full()
        if self._closing or (driver.is_resume_only and not self._may_return()):
            self.refused_connections += 1
            driver.abort()
            return driver
        driver.on_closed = self._drivers.discard
        self._drivers.add(driver)
        return driver

    def _full(self) -> bool:
        """Sessions that wait for their clients must not keep those from coming back."""
        if len(self._drivers) < self._most:
            return False
        waiting = sum(each.connection.is_suspended for each in self._drivers)
        return len(self._drivers) - waiting >= self._most

    def _may_return(self) -> bool:
        """Whether one more may come in, if only to have its session back.

        The transport of that session may be lost, and the server not know it yet.
        """
        strangers = sum(each.is_resume_only for each in self._drivers)
        return self._resume is not None and strangers < _RETURNING

    def _make(self, now: float) -> Connection:
        return Connection(
            None, now, limits=self._limits, lease=self._lease, resumption=self._resume
        )

    async def listen(self, uri: str, ssl: SSLContext | None, origins: "Sequence[str]" = ()) -> Self:
        address = Address.parse(uri)
        loop = LoopHandle("serve()").loop
        self._listener = await listen(loop, address, self.welcome, ssl, origins)
        self.address = place(self._listener, address)
        return self

    async def aclose(self) -> None:
        """Listen no more, and end all connections with the streams that are open."""
        self._closing = True
        if self._listener is not None:
            self._listener.close()
        await wait_settled(*(each.aclose() for each in list(self._drivers)))
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
    limits: Limits | None = None,
    resume: "Resumption | None" = None,
    max_connections: int = 1024,
    **options: Unpack[ResponderOptions],
) -> Server:
    """Listen at *uri* (``tcp://…:0`` for any free port) and serve by *router*.

    *ssl* is needed for ``tls://`` and ``wss://``; one that demands certificates verifies clients.
    Over WebSocket, web pages of the same host and port may connect, and those of *origins*, such
    as ``https://shop.example``; ``*`` stands for all. *limits* is what each connection may cost.
    With *resume*, clients may have their sessions back after they lost their transports. At most
    *max_connections* are open. What else there is to say stands in `ResponderOptions`.
    """
    responder = RouterResponder(router, **options)
    server = Server(
        responder,
        limits=limits,
        max_connections=max_connections,
        lease=responder.leases,
        resume=resume,
    )
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
    client: ClientOptions | None = None,
    **options: Unpack[ResponderOptions],
) -> Requester[bytes]: ...
@overload
def loopback(
    router: "Router",
    *,
    codec: Codec[T],
    credentials: "Credentials | None" = None,
    limits: Limits | None = None,
    answers: "Router | None" = None,
    client: ClientOptions | None = None,
    **options: Unpack[ResponderOptions],
) -> Requester[T]: ...
def loopback(
    router: "Router",
    *,
    codec: Codec[Any] = BYTES,
    credentials: "Credentials | None" = None,
    limits: Limits | None = None,
    answers: "Router | None" = None,
    client: ClientOptions | None = None,
    **options: Unpack[ResponderOptions],
) -> Requester[Any]:
    """Connect to *router* in memory: the whole protocol, without a socket.

    ::

        async with loopback(router, codec=JSON) as requester:
            assert await requester.request_response(route="time") == 12

    *answers* serves what the router's handlers ask of the client. *client* is what else `connect`
    may be told; all other *options* are as in `serve`.
    """
    terms = ClientOptions(limits=limits, router=answers)
    terms.update(client or {})
    near = client_driver(codec, terms, credentials)
    responder = RouterResponder(router, **options)
    far = Driver(
        lambda now: Connection(None, now, limits=limits, lease=responder.leases), responder
    )
    join(near, far)
    return _Loopback(near, codec, far)
