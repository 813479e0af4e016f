"""Connecting to an address and listening at it, by the transport that the address names."""

from collections.abc import Callable, Sequence
from ssl import SSLContext
from typing import TYPE_CHECKING, Any

from ..._core.loop import AbstractEventLoop
from ...errors import MissingExtra
from . import tcp
from .tcp import bound_address

if TYPE_CHECKING:
    from ..._core.loop import Listener
    from ..driver import Driver
    from ..uri import Address

__all__ = ("bound_address", "dial", "listen")


async def dial(
    loop: AbstractEventLoop, address: "Address", driver: "Driver", ssl: SSLContext | None
) -> None:
    """Connect *driver* to *address*."""
    if ssl is not None and not address.is_secure:
        raise ValueError(f"{address}: write tls:// or wss:// if there is to be TLS")
    transport: Any = _websocket() if address.is_websocket else tcp
    await transport.dial(loop, address, driver, ssl)


async def listen(
    loop: AbstractEventLoop,
    address: "Address",
    new_driver: "Callable[[], Driver]",
    ssl: SSLContext | None,
    origins: Sequence[str] = (),
) -> "Listener":
    """Listen at *address*; *new_driver* makes the driver of each connection."""
    if address.is_secure and ssl is None:
        raise ValueError(f"{address}: a server needs an ssl context, with its certificate")
    if ssl is not None and not address.is_secure:
        raise ValueError(f"{address}: write tls:// or wss:// if there is to be TLS")
    if isinstance(origins, str):
        raise TypeError("origins must be a list of origins, not one str")
    if not address.is_websocket:
        if origins:
            raise ValueError(f"{address}: origins are those of web pages; write ws:// or wss://")
        return await tcp.listen(loop, address, new_driver, ssl)
    listener: Listener = await _websocket().listen(loop, address, new_driver, ssl, origins)
    return listener


def _websocket() -> Any:
    try:
        from . import websocket
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "websockets":
            raise
        raise MissingExtra("RSocket over WebSocket", "websockets") from error
    return websocket
