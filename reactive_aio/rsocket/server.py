"""The server: `serve` listens for connections, `asgi_app` gets them from a web application.

`loopback` connects in memory, for tests.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from functools import partial
from logging import getLogger
from ssl import SSLContext, SSLError
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

from anyio import Event
from anyio.abc import AsyncResource

from .._core.arguments import (
    Duration,
    require_callable,
    require_int,
    require_known_options,
    to_seconds,
)
from .._core.loop import LoopHandle
from .client import ClientOptions, checked_options, client_driver
from .link.driver import Driver
from .link.shutdown import end_all
from .link.transports.asgi import AsgiTransport, Receive, Send
from .link.transports.endpoints import bound_address, listen
from .link.transports.memory import join
from .link.transports.origins import is_origin_allowed, refusal_of, require_origins
from .link.transports.tls import Handshakes
from .opening import Opening
from .option_checks import require_instance, require_uri
from .payloads import BYTES, Codec
from .protocol.connection import Connection
from .protocol.limits import Limits
from .protocol.resume import MAX_SESSIONS, Resumption
from .requesting.interceptors import ClientInterceptor, checked_outgoing
from .requesting.requester import Requester
from .serving.client_places import TOO_MANY, ClientPlaces, KeyOf, key_of_address
from .serving.responder import ResponderOptions, RouterResponder
from .serving.route_stats import ServerStats
from .serving.routing import Router, to_router
from .uri import Address

if TYPE_CHECKING:
    from .._core.loop import Listener
    from .client import Element
    from .protocol.metadata import Credentials

T = TypeVar("T")
RSOCKET: Final = "rsocket"
Scope = MutableMapping[str, Any]
_LEAST_ARRIVING: Final = 64
"""The number of connections that may be open before they are served, and their share of all."""
_ARRIVING_SHARE: Final = 4
_HANDSHAKE_HINTS: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "; the client needs load_cert_chain(…), or the server "
    "another verify_mode than CERT_REQUIRED",
    "CERTIFICATE_VERIFY_FAILED": "; load_verify_locations(…) trusts the authority of the client",
    "HTTP_REQUEST": "; the client speaks HTTP without TLS: wss:// is required",
    "WRONG_VERSION_NUMBER": "; the client speaks no TLS: tls:// or wss:// is required",
}
_logger: Final = getLogger("reactive_aio.rsocket")


class ServerOptions(ResponderOptions, total=False):
    """The options of `serve` and `asgi_app`, besides those of `ResponderOptions`.

    - limits: the bounds of each connection.
    - resume: whether, and how long, sessions outlive their transports.
    - max_connections: the maximum number of connections of accepted clients: 1024. For a client
      above it, one gives way that has had no open request for 10 seconds, of the client that has
      the most; if all are in use, one of a client that has more than twice as many. If there is
      none, the new one is refused with `ConnectionLost`, so that its retry policy applies.
    - max_arriving: the maximum number of other connections: in the handshake of TLS or WebSocket,
      before SETUP, or being authenticated. The default is a quarter of *max_connections*, but at
      least 64. Beyond it, the one that has waited longest gives way.
    - max_per_client: the maximum number of connections of one client; no limit by default, since
      behind a proxy all clients have its address. A client above it is refused as above.
    - max_requests_per_client: the maximum number of handlers that run for one client, over all of
      its connections; no limit by default, as above. More of its requests are refused with
      `RequestRejected`. Handlers that are plain functions do not count.
    - client_key: tells clients apart, by the address that the transport reports; by default by
      their IP address (of IPv6, the network of 64 bits), or by their user at a Unix socket, which
      reports a `UnixPeer`. It returns None for those without a limit.
    - grace: how long `Server.aclose` lets open streams continue before it cancels them: 0 seconds.
    """

    limits: Limits | None
    resume: "Resumption | None"
    max_connections: int
    max_arriving: int | None
    max_per_client: int | None
    max_requests_per_client: int | None
    client_key: KeyOf
    grace: Duration


_APP_OPTIONS: Final = ("origins", *ServerOptions.__annotations__)


class Server(AsyncResource):
    """The connections of a server. Close it with ``async with``."""

    def __init__(
        self,
        router: Router,
        *,
        limits: Limits | None = None,
        resume: "Resumption | None" = None,
        max_connections: int = 1024,
        max_arriving: int | None = None,
        max_per_client: int | None = None,
        max_requests_per_client: int | None = None,
        client_key: KeyOf = key_of_address,
        grace: Duration = 0.0,
        **options: Unpack[ResponderOptions],
    ) -> None:
        self.address: Address | None = None
        """The address at which it listens, if any."""
        self._aborted_connections = 0
        self._logged_limits: set[str] = set()
        self._failed_handshakes = 0
        self._handshake_errors: set[str] = set()
        self._handshakes: Handshakes | None = None
        self._grace = to_seconds(grace, "grace", zero=True)
        require_instance("limits", limits, Limits)
        require_instance("resume", resume, Resumption)
        self._responder = RouterResponder(router, **options)
        require_int("serve", "max_connections", max_connections, least=1)
        if max_arriving is None:
            max_arriving = max(_LEAST_ARRIVING, max_connections // _ARRIVING_SHARE)
        require_int("serve", "max_arriving", max_arriving, least=1)
        if max_per_client is not None:
            require_int("serve", "max_per_client", max_per_client, least=1)
        require_callable("serve", "client_key", client_key, takes=1)
        self._admission = self._responder.admission = ClientPlaces(
            max_connections, max_arriving, max_per_client, client_key, self._log_full
        )
        if max_requests_per_client is not None:
            self._limit_requests(max_requests_per_client)
        self._responder.sessions.limit = max(MAX_SESSIONS, max_connections)
        limits = limits or Limits()
        self._budget = limits.budget
        lease = self._responder.leases is not None
        self._make_connection = partial(
            Connection,
            None,
            limits=limits,
            lease=lease,
            resumption=resume,
            metadata_pushes=True,
        )
        self._has_sessions = resume is not None
        self._drivers: set[Driver] = set()
        self._listener: Listener | None = None
        self._is_closing = self._is_closed = False
        self._has_closed: Event | None = None

    def _limit_requests(self, most: int) -> None:
        """Let at most *most* handlers run for one client."""
        require_int("serve", "max_requests_per_client", most, least=1)
        places = self._admission
        self._responder.ending_handlers.is_client_busy = lambda each: places.running(each) >= most

    def __repr__(self) -> str:
        where = "" if self.address is None else f" at {self.uri}"
        return f"<RSocket server{where}, {self.connections} connections>"

    @property
    def uri(self) -> str:
        """The URI for clients."""
        return str(self.address)

    @property
    def connections(self) -> int:
        """The number of connections, including suspended sessions."""
        return len(self._drivers)

    @property
    def refused_connections(self) -> int:
        """The number of connections refused because too many were open, or it is closing."""
        at_once = self._aborted_connections + self._admission.arrivals.refused
        return at_once + self._responder.refused_connections

    @property
    def dropped_requests(self) -> int:
        """The number of fire-and-forget requests and metadata pushes that no handler processed."""
        return self._responder.dropped_requests

    def new_driver(self) -> Driver:
        """The driver of a new connection; aborted if the server is closing."""
        driver = Driver(self._make_connection, self._responder)
        if self._is_closing:
            self._aborted_connections += 1
            driver.ending.abort()
            return driver
        driver.on_attached = self._admission.arrived
        driver.add_close_callback(self._drivers.discard)
        self._drivers.add(driver)
        return driver

    def _log_full(self, limit: str) -> None:
        if limit not in self._logged_limits:
            self._logged_limits.add(limit)
            _logger.warning(
                "%r refuses connections: %s are open; raise it, or find the clients that do not "
                "close theirs (this is logged once)",
                self,
                limit,
            )

    def stats(self) -> ServerStats:
        """The connections and the counts of each route, at this moment."""
        return ServerStats(
            connections=len(self._drivers),
            suspended=sum(each.connection.is_suspended for each in self._drivers),
            arriving=len(self._admission.arrivals),
            refused_connections=self.refused_connections,
            displaced_connections=self._admission.gave_way,
            unread_connections=self._responder.unread_connections,
            failed_handshakes=self._failed_handshakes,
            held_bytes=self._budget.used,
            routes=self._responder.counters.snapshot(self._drivers),
        )

    async def listen(
        self,
        uri: str,
        ssl: SSLContext | None,
        origins: Sequence[str] = (),
        unix_mode: int | None = None,
    ) -> Self:
        """Listen at *uri*; see `serve`."""
        require_uri("serve: uri", uri)
        address = Address.parse(uri)
        loop = LoopHandle("serve()").event_loop
        if ssl is not None:
            arrivals, key_at = self._admission.arrivals, self._admission.key_at
            self._handshakes = Handshakes(ssl, arrivals, key_at, self._handshake_failed)
        self._listener = await listen(
            loop, address, self.new_driver, self._handshakes, origins, unix_mode
        )
        self.address = bound_address(self._listener, address)
        return self

    def _handshake_failed(self, error: SSLError) -> None:
        """Count a TLS handshake that failed, and log each reason once."""
        self._failed_handshakes += 1
        reason = error.reason or type(error).__name__
        if reason not in self._handshake_errors:
            self._handshake_errors.add(reason)
            _logger.warning(
                "%r closed a connection in the TLS handshake: %s%s (each reason is logged once)",
                self,
                error,
                _HANDSHAKE_HINTS.get(reason, ""),
            )

    async def aclose(self, grace: Duration | None = None) -> None:
        """Stop listening, let open streams end within *grace* seconds, and cancel the others.

        Without *grace*, that of `ServerOptions` applies. Clients are notified at once: they send no
        more requests, and those already sent are rejected, so that they may be repeated elsewhere.
        Requests without a response are still served. A second call, with a shorter time, ends the
        first one sooner; if the call is cancelled, the connections are aborted, and no session is
        resumed.
        """
        seconds = self._grace if grace is None else to_seconds(grace, "grace", zero=True)
        self._is_closing = True
        if self._listener is not None:
            self._listener.close()
        try:
            if self._handshakes is not None:
                await self._handshakes.aclose()
            await end_all(list(self._drivers), seconds)
            if self._listener is not None:
                await self._listener.wait_closed()
        finally:
            self._is_closed = True
            if self._has_closed is not None:
                self._has_closed.set()

    async def closed(self) -> None:
        """Wait until `aclose` has ended, or is cancelled."""
        if not self._is_closed:
            if self._has_closed is None:
                self._has_closed = Event()
            await self._has_closed.wait()


def serve(
    uri: str,
    router: Router | Mapping[str, Any],
    *,
    ssl: SSLContext | None = None,
    origins: Sequence[str] = (),
    unix_mode: int | None = None,
    **options: Unpack[ServerOptions],
) -> Opening[Server]:
    """Listen at *uri* (``tcp://…:0`` for any free port) and serve *router*.

    This is a `Router`, or a mapping from routes to handlers or flows. The result is awaited, or
    entered by ``async with``, which closes the server as well.
    ``tls://`` and ``wss://`` require *ssl*; a context that requires certificates verifies clients.
    Over WebSocket, web pages of *origins* may connect, such as ``https://shop.example``; ``*``
    allows all. So may those of the same host and port, if that host is an IP address,
    ``localhost``, or the name in *uri*, or by ``wss://``: another name could be that of a stranger
    who has let it point here. Programs of the same user alone may connect to a Unix socket, unless
    *unix_mode* is another mode of that file than 0600. All other options are in `ServerOptions`.
    """
    require_known_options("serve", options, ("ssl", "unix_mode", *_APP_OPTIONS))
    if unix_mode is not None and not 0 <= require_int("serve", "unix_mode", unix_mode) <= 0o777:
        raise ValueError(f"serve: unix_mode must be from 0 to 0o777, not {unix_mode:#o}")
    served = to_router(router, "serve", "router")

    async def opened() -> Server:
        return await Server(served, **options).listen(uri, ssl, origins, unix_mode)

    return Opening("serve", opened())


class AsgiApp(Server):
    """An ASGI 3 application that serves RSocket over WebSocket.

    Mounted in another application, it is to be closed by that application; otherwise it closes when
    the server shuts down.
    """

    def __init__(
        self, router: Router, origins: Sequence[str], **options: Unpack[ServerOptions]
    ) -> None:
        super().__init__(router, **options)
        self._origins = require_origins("asgi_app", origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "websocket":
            await self._serve_websocket(scope, receive, send)
        elif kind == "http":
            await _respond(send, "http", 426, b"RSocket is spoken over WebSocket here\n")
        elif kind == "lifespan":
            await self._serve_lifespan(receive, send)
        else:
            raise ValueError(f"RSocket is spoken over WebSocket, not over {kind!r}")

    async def _serve_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        origin = headers.get("origin")
        is_secure = scope.get("scheme") == "wss"
        if not is_origin_allowed(origin, headers.get("host"), self._origins, is_secure=is_secure):
            await _refuse(scope, send, 403, refusal_of(origin, "asgi_app").encode())
            return
        client = tuple(scope.get("client") or ())
        driver, admission = self.new_driver(), self._admission
        reason = "the server is closing" if self._is_closing else ""
        if not (reason or self._has_sessions):
            now = driver.loop_handle.time()
            reason = admission.refusal(admission.key_at(client), now)
            if reason:
                self._aborted_connections += 1
                driver.ending.abort()
        transport = AsgiTransport(driver, receive, send, client)
        driver.attach(transport)
        if transport.is_aborted:
            driver.connection_lost()
            await _refuse(scope, send, 503, f"{reason or TOO_MANY}\n".encode())
        else:
            offered = scope.get("subprotocols", ())
            name = RSOCKET if RSOCKET in offered else None
            await transport.run({"type": "websocket.accept", "subprotocol": name})

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})


async def _refuse(scope: Scope, send: Send, status: int, reason: bytes) -> None:
    if "websocket.http.response" in (scope.get("extensions") or {}):
        await _respond(send, "websocket.http", status, reason)
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": reason.decode().strip()})


async def _respond(send: Send, kind: str, status: int, text: bytes) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"),
               (b"content-length", b"%d" % len(text))]  # fmt: skip
    if status == 426:
        headers += [(b"upgrade", b"websocket"), (b"connection", b"upgrade")]
    await send({"type": f"{kind}.response.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.response.body", "body": text})


def asgi_app(
    router: Router | Mapping[str, Any],
    *,
    origins: Sequence[str] = (),
    **options: Unpack[ServerOptions],
) -> AsgiApp:
    """Make an ASGI application that serves *router* over WebSocket.

    ::

        app = FastAPI()
        app.mount("/rsocket", asgi_app(router))          # clients connect to ws://…/rsocket/

    Web pages of *origins* may connect, such as ``https://shop.example``; ``*`` allows all. So may
    those of the same host and port, by ``wss://``, or if that host is an IP address or
    ``localhost``: another name could be that of a stranger who has let it point here. All other
    options are as in `serve`.
    """
    require_known_options("asgi_app", options, _APP_OPTIONS)
    return AsgiApp(to_router(router, "asgi_app", "router"), origins, **options)


class _Loopback(Requester[T]):
    """A requester that closes its server with itself."""

    def __init__(
        self,
        driver: Driver,
        codec: Codec[T],
        server_driver: Driver,
        interceptors: tuple[ClientInterceptor, ...],
    ) -> None:
        super().__init__(driver, codec, interceptors=interceptors)
        self._server = server_driver

    async def aclose(self) -> None:
        await super().aclose()
        await self._server.aclose()


def loopback(
    router: Router | Mapping[str, Any],
    *,
    codec: "Codec[Element] | None" = None,
    credentials: "Credentials | None" = None,
    limits: Limits | None = None,
    client: ClientOptions | None = None,
    **options: Unpack[ResponderOptions],
) -> "Requester[Element]":
    """Connect to *router* in memory: the whole protocol, without a socket.

    ::

        async with loopback(router, codec=JSON) as requester:
            assert await requester.request_response(route="time") == 12

    *client* has the other options of the client, such as a router for requests of the server; all
    other *options* are as in `serve`.
    """
    known = ("codec", "credentials", "limits", "client", *ResponderOptions.__annotations__)
    require_known_options("loopback", options, known)
    client_options = ClientOptions(limits=limits)
    client_options.update(client or {})
    client_options = checked_options("loopback: client", client_options)
    served = to_router(router, "loopback", "router")
    chosen: Any = codec or BYTES
    near = client_driver(chosen, client_options, credentials)
    far = Server(served, limits=limits, **options).new_driver()
    join(near, far)
    return _Loopback(near, chosen, far, checked_outgoing(client_options.get("interceptors", ())))
