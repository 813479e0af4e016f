"""RSocket inside a web application: `asgi_app` makes an application for Starlette, FastAPI …"""

from collections.abc import MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Unpack

from .server import Server, ServerOptions
from .transports.asgi import AsgiTransport, Receive, Send
from .transports.origins import is_origin_allowed

if TYPE_CHECKING:
    from .routing import Router

__all__ = ("AsgiApp", "asgi_app")

RSOCKET: Final = "rsocket"
Scope = MutableMapping[str, Any]


class AsgiApp(Server):
    """An ASGI 3 application that serves RSocket over WebSocket.

    Mounted in another application, it is to be closed by that application; otherwise it closes when
    the server shuts down.
    """

    def __init__(
        self, router: "Router", origins: Sequence[str], **options: Unpack[ServerOptions]
    ) -> None:
        if isinstance(origins, str):
            raise TypeError("origins must be a list of origins, not one str")
        super().__init__(router, **options)
        self._origins = origins

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
        if not is_origin_allowed(origin, headers.get("host"), self._origins):
            reason = f"pages of {origin} may not connect; asgi_app(origins=…) says whose may\n"
            await _refuse(scope, send, 403, reason.encode())
            return
        transport = AsgiTransport(self.new_driver(), receive, send, scope.get("client"))
        transport.driver.attach(transport)
        if transport.is_aborted:
            await _refuse(scope, send, 503, b"there are too many connections\n")
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
    router: "Router",
    *,
    origins: Sequence[str] = (),
    **options: Unpack[ServerOptions],
) -> AsgiApp:
    """Make an ASGI application that serves *router* over WebSocket.

    ::

        app = FastAPI()
        app.mount("/rsocket", asgi_app(router))          # clients connect to ws://…/rsocket/

    Web pages of the same host and port may connect, and those of *origins*, such as
    ``https://shop.example``; ``*`` allows all. All other options are as in `serve`.
    """
    return AsgiApp(router, origins, **options)
