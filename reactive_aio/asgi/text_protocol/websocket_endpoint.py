"""websocket: serves the routes of a router over WebSockets, as an ASGI app."""

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from inspect import isawaitable
from logging import getLogger
from typing import Any, Final

from ..._core.arguments import Duration, require_callable, require_int, to_seconds
from ..._core.loop import LoopHandle, timeout
from ...rsocket.link.transports.origins import is_origin_allowed, refusal_of, require_origins
from ...rsocket.serving.routing import Router, to_router
from ..app_streams import take_place
from ..formats import to_json
from ..function_errors import failure_of
from ..http import Endpoint, HttpRequest, Receive, Send, parse_count, send_problem
from ..options import SEND_TIMEOUT, Counters, send_timeout_of
from ..places import ClientKey, Places, address_of_client
from ..problem import Problem, Refused, error_policy
from .messages import MAX_SAFE_INTEGER, SUBPROTOCOL, Message
from .multiplexer import SocketConfig, StreamMultiplexer
from .streams import Peer

_RESERVED: Final = frozenset({"route", "n"})
_POLICY: Final = 1008  # the code of a handshake that is refused, for servers that send one
_TRY_AGAIN_LATER: Final = 1013
_log: Final = getLogger("reactive_aio.asgi")


def websocket(
    routes: Router | Mapping[str, Any],
    *,
    authenticate: Callable[[HttpRequest], Any] | None = None,
    auth_timeout: Duration = 5.0,
    origins: Collection[str] | None = None,
    on_connect: Callable[[Peer], Any] | None = None,
    encode: Callable[[Any], str | bytes] = to_json,
    max_message: int = 65536,
    max_streams: int = 100,
    max_sockets: int = 1000,
    max_per_client: int | None = None,
    client_key: ClientKey = address_of_client,
    max_useless: int = 1000,
    send_timeout: Duration | None = SEND_TIMEOUT,
    expose_errors: bool = False,
    on_error: Callable[[BaseException], object] | None = None,
    counters: Counters | None = None,
) -> "WebSocketEndpoint":
    """Serve many flows on one WebSocket, in the text protocol of docs/protocol.md.

    *routes* is a `Router`, as for RSocket, or a mapping from names to flows or handlers. A handler
    declares parameters for what it needs: ``payload`` (the params of the subscription), ``request``
    (with the handshake, ``request.http``), ``incoming`` (what the client publishes under the same
    route) and the names in braces. It returns a flow, an asynchronous iterator, a plain value, or
    an awaitable of one of these.

    ::

        WebSocketRoute("/live", endpoint=websocket({"prices.{symbol}": prices}))

    Demand: the client's, 16 elements at a time, as the socket takes them.
    Completes: with ``complete``, for each stream.
    Fails: with ``error`` and the status of `Refused`, or 500. Other texts than that of `Refused`
        are sent only with *expose_errors*; such errors go to *on_error*, or to the loop's
        exception handler.
    Cancels: all streams of a socket are cancelled at once when it closes, or when the client has
        not read a message within *send_timeout* seconds (15).
    Holds: 16 elements for each of *max_streams* streams on a socket, and 64 short answers.
    Rules: 1.1, 1.3, 1.7, 2.13, 3.6, 3.8, 3.9, 3.17

    *authenticate* receives each handshake and returns the user (``request.user``) or raises
    `Refused`; None and False are refused with 401. It may be a coroutine function, which has
    *auth_timeout* seconds; then the client receives 503. Pages of *origins* may connect, or of all
    with ``{"*"}``; so may those of the same host and port, by ``wss://``, or if that host is an IP
    address or ``localhost``. Other pages are refused with 403. *on_connect* receives the
    `Peer` of each socket, and may subscribe to what that publishes; a coroutine is cancelled when
    the client disconnects. At most *max_sockets* sockets are open, and *max_per_client* of one
    client (no limit by default), which *client_key* tells from others as for `sse`. The other
    limits are in the table of docs/protocol.md.
    """
    require_callable("websocket", "encode", encode)
    for parameter, function in (("authenticate", authenticate), ("on_connect", on_connect)):
        if function is not None:
            require_callable("websocket", parameter, function, takes=1)
    config = SocketConfig(
        router=to_router(routes, "websocket"),
        encode=encode,
        max_message=require_int("websocket", "max_message", max_message, least=1),
        max_streams=require_int("websocket", "max_streams", max_streams, least=1),
        max_useless=require_int("websocket", "max_useless", max_useless),
        send_timeout=send_timeout_of("websocket", send_timeout),
        errors=error_policy("websocket", expose_errors, on_error),
        on_connect=on_connect,
        counters=Counters() if counters is None else counters,
        authenticate=authenticate,
        auth_timeout=to_seconds(auth_timeout, "websocket: auth_timeout"),
        origins=require_origins("websocket", origins),
    )
    places = Places("websocket", "sockets", max_sockets, max_per_client, client_key)
    return WebSocketEndpoint(config, places)


class WebSocketEndpoint(Endpoint):
    """What `websocket` returns: an ASGI app."""

    def __init__(self, config: SocketConfig, places: Places) -> None:
        super().__init__([])
        self._config = config
        self._places = places

    def __repr__(self) -> str:
        return f"<websocket endpoint, {self._places.taken} sockets>"

    async def _answer(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        upgrade = {"upgrade": "websocket", "connection": "upgrade"}
        await send_problem(send, Problem(426, "this is a WebSocket", upgrade))

    async def _answer_handshake(self, http: HttpRequest, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        loop_handle = LoopHandle("a WebSocket")
        streams = StreamMultiplexer(loop_handle, send, self._config, http)
        with ExitStack() as place:
            try:
                place.enter_context(take_place(http, self._places, streams.stop))
                subprotocol, first = _subprotocol(http), _subscription_of_url(http)
                self._check_origin(http)
                streams.peer.user = await self._user_of(http)
            except BaseException as error:
                await self._refuse(loop_handle, http, send, failure_of(error, loop_handle))
                return
            try:
                await send({"type": "websocket.accept", "subprotocol": subprotocol})
            except OSError:  # the client has disconnected already
                return
            await streams.run(receive, first)

    async def _user_of(self, http: HttpRequest) -> Any:
        """Return what *authenticate* returns; refuse a client without a user."""
        config = self._config
        if config.authenticate is None:
            return None
        user = config.authenticate(http)
        if isawaitable(user):
            waiting = timeout(config.auth_timeout)
            try:
                async with waiting:
                    user = await user
            except TimeoutError:
                if not waiting.expired():
                    raise
                raise Refused(503, "the authentication took too long") from None
        if user is None or user is False:
            raise Refused(401, "the authentication failed")
        return user

    def _check_origin(self, http: HttpRequest) -> None:
        """Refuse pages of other origins: any page may open a socket, with its user's cookies."""
        origin, host = http.headers.get("origin"), http.headers.get("host")
        is_secure = http.scope.get("scheme") == "wss"
        if not is_origin_allowed(origin, host, self._config.origins, is_secure=is_secure):
            _log.warning("%s", refusal_of(origin, "websocket").strip())
            raise Refused(403, "pages of this origin are not allowed")

    async def _refuse(
        self, loop_handle: LoopHandle, http: HttpRequest, send: Send, error: BaseException
    ) -> None:
        context = "the authentication of a WebSocket failed"
        problem = self._config.errors.problem(error, loop_handle, context)
        if "websocket.http.response" not in (http.scope.get("extensions") or {}):
            code = _TRY_AGAIN_LATER if "retry-after" in problem.headers else _POLICY
            await send({"type": "websocket.close", "code": code, "reason": ""})
            return
        await send_problem(send, problem, kind="websocket.http.response")


def _subprotocol(http: HttpRequest) -> str | None:
    offered: list[str] = list(http.scope.get("subprotocols", ()))
    if not offered:
        return None
    if SUBPROTOCOL not in offered:
        raise Refused(400, f"the subprotocol here is {SUBPROTOCOL}")
    return SUBPROTOCOL


def _subscription_of_url(http: HttpRequest) -> Message | None:
    """The subscription that the query of the URL describes, if any."""
    route = http.query.get("route")
    if route is None:
        return None
    n = parse_count(http.query["n"], "n") if "n" in http.query else 0
    params = {name: each for name, each in http.query.items() if name not in _RESERVED}
    return Message("subscribe", 0, route, min(n, MAX_SAFE_INTEGER), params or None)
