"""The asking side of a WebSocket."""

from logging import getLogger
from ssl import SSLContext
from typing import TYPE_CHECKING, Final

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus
from websockets.uri import parse_uri

from ..._core.loop import AbstractEventLoop, BaseTransport, Future
from ..driver import Driver
from .websocket import WebSocketTransport

if TYPE_CHECKING:
    from ..uri import Address

__all__ = ("dial",)

_logger: Final = getLogger("reactive_aio.rsocket")


class WebSocketClientTransport(WebSocketTransport):
    """A connection to a server; its driver is attached when the handshake is done."""

    def __init__(self, driver: Driver, address: "Address") -> None:
        protocol = ClientProtocol(
            parse_uri(str(address)),
            max_size=driver.connection.limits.max_frame,
            logger=_logger,
        )
        super().__init__(driver, protocol)
        self._asking = protocol
        self.opened: Future[None] = driver.loop_handle.create_future()

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self._asking.send_request(self._asking.connect())
        self.flush()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._asking.handshake_exc is not None:
            self.abort()

    def shake_hands(self, event: object) -> None:
        if self._asking.handshake_exc is None and not self.opened.done():
            self.opened.set_result(None)
            self.driver.attach(self)

    def lost(self, error: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(self._why(error)))
        elif not self.opened.cancelled():
            self.driver.connection_lost(error)

    def _why(self, error: Exception | None) -> str:
        refused = self._asking.handshake_exc
        if isinstance(refused, InvalidStatus):
            response = refused.response
            body = bytes(response.body or b"")[:200].decode(errors="replace").strip()
            status = f"{response.status_code} {response.reason_phrase}"
            return f"no WebSocket there; the answer was {status}" + (f": {body}" if body else "")
        return f"no WebSocket there: {refused or error or 'the connection was closed'}"


async def dial(
    loop: AbstractEventLoop, address: "Address", driver: Driver, ssl: SSLContext | None
) -> None:
    """Connect *driver* to *address*."""
    wire = WebSocketClientTransport(driver, address)
    secure = (ssl or True) if address.is_secure else None
    transport, _ = await loop.create_connection(
        lambda: wire, address.host, address.port, ssl=secure
    )
    try:
        await wire.opened
    finally:
        if not wire.opened.done() or wire.opened.cancelled() or wire.opened.exception():
            wire.opened.cancel()
            transport.abort()
