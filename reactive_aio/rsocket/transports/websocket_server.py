"""The serving side of a WebSocket: who is let in, and at which path."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from logging import getLogger
from ssl import SSLContext
from typing import TYPE_CHECKING, Final

from websockets.http11 import Request, Response
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from ..._core.loop import AbstractEventLoop, BaseTransport
from ..driver import Driver
from .accepting import accept
from .message_framing import is_origin_allowed
from .websocket import WebSocketTransport

if TYPE_CHECKING:
    from ..._core.loop import Listener
    from ..uri import Address

__all__ = ("listen",)

_RSOCKET: Final = Subprotocol("rsocket")
_logger: Final = getLogger("reactive_aio.rsocket")


class WebSocketServerTransport(WebSocketTransport):
    """A client's connection, from its request for a WebSocket on.

    The driver is attached from the first byte on, so that its deadline for SETUP includes the
    handshake, and the connection counts among those that are open.
    """

    def __init__(self, driver: Driver, path: str, origins: Sequence[str]) -> None:
        protocol = ServerProtocol(
            select_subprotocol=_select,
            max_size=driver.connection.limits.max_frame,
            logger=_logger,
        )
        super().__init__(driver, protocol)
        self._answering = protocol
        self._path = path
        self._origins = origins

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self.driver.attach(self)

    def shake_hands(self, event: object) -> None:
        if isinstance(event, Request):
            self._answering.send_response(self._answer(event))

    def give_up(self) -> None:
        if not self._answering.eof_sent:
            message = "no WebSocket was asked for in time\n"
            response = self._answering.reject(HTTPStatus.REQUEST_TIMEOUT, message)
            self._answering.send_response(response)
            self.flush()

    def _answer(self, request: Request) -> Response:
        if request.path.partition("?")[0] != self._path:
            message = f"RSocket is served at {self._path}\n"
            return self._answering.reject(HTTPStatus.NOT_FOUND, message)
        origin, host = (", ".join(request.headers.get_all(each)) or None
                        for each in ("Origin", "Host"))  # fmt: skip
        if not is_origin_allowed(origin, host, self._origins):
            message = f"pages of {origin} may not connect; serve(origins=…) says whose may\n"
            return self._answering.reject(HTTPStatus.FORBIDDEN, message)
        return self._answering.accept(request)


async def listen(
    loop: AbstractEventLoop,
    address: "Address",
    welcome: Callable[[], Driver],
    ssl: SSLContext | None,
    origins: Sequence[str],
) -> "Listener":
    """Listen at *address*; *welcome* makes the driver of each connection."""

    def make() -> WebSocketServerTransport:
        return WebSocketServerTransport(welcome(), address.path, origins)

    return await accept(loop, address, make, ssl)


def _select(_: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """A client that names subprotocols is told that it is understood; most name none."""
    return _RSOCKET if _RSOCKET in offered else None
