"""RSocket inside a web application: `asgi_app` makes what Starlette, FastAPI and others mount."""

from collections.abc import MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Unpack

from .responder import ResponderOptions, RouterResponder
from .server import Server
from .transports.asgi import AsgiTransport, Receive, Send
from .transports.message_framing import allowed

if TYPE_CHECKING:
    from .protocol.limits import Limits
    from .protocol.resume import Resumption
    from .routing import Router

__all__ = ("AsgiApp", "asgi_app")

RSOCKET: Final = "rsocket"
Scope = MutableMapping[str, Any]


class AsgiApp:
    """An application of ASGI 3 that speaks RSocket over WebSocket, and nothing else.

    It needs no server of its own and no library. Close it with the application that it is mounted
    in; on its own, it closes when the server shuts down.
    """

    def __init__(self, server: Server, origins: Sequence[str]) -> None:
        if isinstance(origins, str):
            raise TypeError("origins must be a list of origins, not one str")
        self._server = server
        self._origins = origins

    @property
    def connections(self) -> int:
        """How many there are."""
        return self._server.connections

    @property
    def refused(self) -> int:
        """How many connections there were too many."""
        return self._server.refused

    async def aclose(self) -> None:
        """Let nobody in any more, and end all connections with the streams that are open."""
        await self._server.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "websocket":
            await self._converse(scope, receive, send)
        elif kind == "http":
            await _answer(send, "http", 426, b"RSocket is spoken over WebSocket here\n")
        elif kind == "lifespan":
            await self._live(receive, send)
        else:
            raise ValueError(f"RSocket is spoken over WebSocket, not over {kind!r}")

    async def _converse(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        origin = headers.get("origin")
        if not allowed(origin, headers.get("host"), self._origins):
            reason = f"pages of {origin} may not connect; asgi_app(origins=…) says whose may\n"
            await _refuse(scope, send, 403, reason.encode())
            return
        transport = AsgiTransport(self._server.welcome(), receive, send, scope.get("client"))
        transport.driver.attach(transport)
        if transport.aborted:
            await _refuse(scope, send, 503, b"there are too many connections\n")
        else:
            offered = scope.get("subprotocols", ())
            name = RSOCKET if RSOCKET in offered else None
            await transport.run({"type": "websocket.accept", "subprotocol": name})

    async def _live(self, receive: Receive, send: Send) -> None:
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})


async def _refuse(scope: Scope, send: Send, status: int, reason: bytes) -> None:
    if "websocket.http.response" in (scope.get("extensions") or {}):
        await _answer(send, "websocket.http", status, reason)
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": reason.decode().strip()})


async def _answer(send: Send, kind: str, status: int, text: bytes) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"),
               (b"content-length", b"%d" % len(text))]  # fmt: skip
    if status == 426:
        headers += [(b"upgrade", b"websocket"), (b"connection", b"upgrade")]
    await send({"type": f"{kind}.response.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.response.body", "body": text})


def asgi_app(
    router: "Router",
    *,
    origins: Sequence[str] = (),
    limits: "Limits | None" = None,
    resume: "Resumption | None" = None,
    max_connections: int = 1024,
    **options: Unpack[ResponderOptions],
) -> AsgiApp:
    """Make an application of ASGI that serves by *router*, over the WebSockets that come to it.

    ::

        app = FastAPI()
        app.mount("/rsocket", asgi_app(router))          # clients connect to ws://…/rsocket/

    Web pages of the same host and port may connect, and those of *origins*, such as
    ``https://shop.example``; ``*`` stands for all. All else is as in `serve`.
    """
    responder = RouterResponder(router, **options)
    server = Server(
        responder,
        limits=limits,
        max_connections=max_connections,
        lease=responder.leases,
        resume=resume,
    )
    return AsgiApp(server, origins)
