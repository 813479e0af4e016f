"""websocket: the routes of a router on WebSockets, as an ASGI app."""

from collections.abc import AsyncIterable, Callable, Collection, Iterable, Mapping
from inspect import isawaitable
from logging import getLogger
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from ..._core.arguments import require_callable, require_int
from ..._core.loop import LoopHandle
from ...coerce import to_flow
from ...rsocket.routing import Router
from ..delivery import encoded, refuse, respond
from ..endpoint import live
from ..forms import to_json
from ..problem import Problem, Refused, problem_of
from ..request import HttpRequest, Receive, Scope, Send, count_of
from ..tally import Tally
from .incoming import Peer
from .messages import MOST, Message
from .session import Manner, Session

if TYPE_CHECKING:
    from ...flow import Flow

__all__ = ("SUBPROTOCOL", "WebSocketEndpoint", "websocket")

SUBPROTOCOL: Final = "reactive-streams.v1"
_LINK: Final = frozenset({"route", "n"})
_log: Final = getLogger("reactive_aio.asgi")


def websocket(
    routes: Router | Mapping[str, Any],
    *,
    admit: Callable[[HttpRequest], Any] | None = None,
    origins: Collection[str] | None = None,
    on_connect: Callable[[Peer], Any] | None = None,
    encode: Callable[[Any], str | bytes] = to_json,
    max_message: int = 65536,
    max_streams: int = 100,
    max_sockets: int = 1000,
    max_useless: int = 1000,
    tell_errors: bool = False,
    on_error: Callable[[BaseException], object] | None = None,
    tally: Tally | None = None,
) -> "WebSocketEndpoint":
    """Serve many flows on one WebSocket, in the text protocol of docs/protocol.md.

    *routes* is a `Router`, the very one that RSocket takes, or names with flows or handlers. A
    handler names what it wants: ``payload`` (the params of the subscription), ``request`` (with the
    handshake, ``request.http``), ``incoming`` (what the client publishes under the same route) and
    the names in braces; it returns a flow, an asynchronous iterator, a plain value, or an awaitable
    of one of these.

    ::

        WebSocketRoute("/live", endpoint=websocket({"prices.{symbol}": prices}))

    Demand: the client's, 16 elements at a time, as the socket takes them.
    Completes: with ``complete``, one for each stream.
    Fails: with ``error`` and a status, that of `Refused` or 500. Other texts than that of `Refused`
        stay here, unless *tell_errors*; they go to *on_error*, or to the loop's exception handler.
    Cancels: every stream of a socket is cancelled at once when it closes.
    Holds: 16 elements for each of *max_streams* streams on a socket, and 64 short answers.
    Rules: 1.1, 1.3, 1.7, 2.13, 3.6, 3.8, 3.9, 3.17

    *admit* gets each handshake and returns who that is (``request.user``), or raises `Refused`; it
    may be awaitable. Pages of other origins than the host itself are refused, unless *origins*
    names them, or is ``{"*"}``. *on_connect* gets the `Peer` of each socket, and may subscribe to
    what that publishes; as a coroutine it is cancelled when the client leaves. The socket after
    *max_sockets* is refused. The other limits are in the table of docs/protocol.md.
    """
    require_callable("websocket", "encode", encode)
    manner = Manner(
        router=_router(routes),
        encode=encode,
        max_message=require_int("websocket", "max_message", max_message, least=1),
        max_streams=require_int("websocket", "max_streams", max_streams, least=1),
        max_useless=require_int("websocket", "max_useless", max_useless),
        tell_errors=tell_errors,
        on_error=on_error,
        on_connect=on_connect,
        tally=Tally() if tally is None else tally,
    )
    most = require_int("websocket", "max_sockets", max_sockets, least=1)
    return WebSocketEndpoint(manner, admit, None if origins is None else frozenset(origins), most)


def _router(routes: Router | Mapping[str, Any]) -> Router:
    if isinstance(routes, Router):
        return routes
    router = Router()
    for pattern, served in routes.items():
        if isinstance(served, AsyncIterable | Iterable) or hasattr(served, "subscribe"):
            router.route(pattern)(_always(to_flow(cast("Any", served), name="websocket")))
        else:
            require_callable("websocket", f"routes[{pattern!r}]", served)
            router.route(pattern)(served)
    return router


def _always(flow: "Flow[Any]") -> "Callable[[], Flow[Any]]":
    return lambda: flow


class WebSocketEndpoint:
    """What `websocket` returns: an ASGI app."""

    def __init__(
        self,
        manner: Manner,
        admit: Callable[[HttpRequest], Any] | None,
        origins: frozenset[str] | None,
        max_sockets: int,
    ) -> None:
        self._manner = manner
        self._admit = admit
        self._origins = origins
        self._max_sockets = max_sockets
        self._open = 0

    def __repr__(self) -> str:
        return f"<websocket endpoint, {self._open} sockets>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._answer(HttpRequest(scope), receive, send)
        elif scope["type"] == "http":
            upgrade = {"upgrade": "websocket", "connection": "upgrade"}
            await refuse(send, Problem(426, "this is a WebSocket", upgrade))
        else:
            await live(receive, send)

    async def _answer(self, http: HttpRequest, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        loop_handle = LoopHandle("a WebSocket")
        self._open += 1
        try:
            try:
                if self._open > self._max_sockets:
                    raise Refused(503, f"all {self._max_sockets} sockets are in use")
                subprotocol, first = self._subprotocol(http), _linked(http)
                self._judge(http)
                user = None if self._admit is None else self._admit(http)
                if isawaitable(user):
                    user = await user
            except Exception as error:
                await self._deny(loop_handle, http, send, error)
                return
            try:
                await send({"type": "websocket.accept", "subprotocol": subprotocol})
            except OSError:  # the client could not wait
                return
            await Session(loop_handle, send, self._manner, http, user).run(receive, first)
        finally:
            self._open -= 1

    def _subprotocol(self, http: HttpRequest) -> str | None:
        offered: list[str] = list(http.scope.get("subprotocols", ()))
        if not offered:
            return None
        if SUBPROTOCOL not in offered:
            raise Refused(400, f"the subprotocol here is {SUBPROTOCOL}")
        return SUBPROTOCOL

    def _judge(self, http: HttpRequest) -> None:
        """Browsers let any page open a socket, with the cookies of its user: look who it is."""
        origin = http.headers.get("origin")
        if origin is None or (self._origins is not None and {"*", origin} & self._origins):
            return
        if urlsplit(origin).netloc != http.headers.get("host"):
            _log.warning("a page of %s was refused; websocket(origins=…) would let it in", origin)
            raise Refused(403, "pages of this origin are not let in")

    async def _deny(
        self, loop_handle: LoopHandle, http: HttpRequest, send: Send, error: Exception
    ) -> None:
        problem, meant = problem_of(error, self._manner.tell_errors)
        if not meant and self._manner.on_error is not None:
            self._manner.on_error(error)
        elif not meant:
            loop_handle.report("the admission to a WebSocket failed", error)
        if "websocket.http.response" not in (http.scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": 1000, "reason": ""})
            return
        headers = [(b"content-type", b"application/problem+json"), *encoded(problem.headers)]
        body = problem.json().encode()
        await respond(send, problem.status, headers, body, kind="websocket.http.response")


def _linked(http: HttpRequest) -> Message | None:
    """The stream that the address itself denotes."""
    route = http.query.get("route")
    if route is None:
        return None
    n = count_of(http.query["n"], "n") if "n" in http.query else 0
    params = {name: each for name, each in http.query.items() if name not in _LINK}
    return Message("subscribe", 0, route, min(n, MOST), params or None)
