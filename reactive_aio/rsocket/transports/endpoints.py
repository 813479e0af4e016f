"""Connecting to an address and listening at it, by the transport that the address names."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from ssl import SSLContext
from typing import Any

from ..._core.loop import AbstractEventLoop, Listener, SocketProtocol
from ...errors import MissingExtra
from ..driver import Driver
from ..uri import Address
from .tcp import DriverProtocol, listen_tcp

__all__ = ("bound_address", "dial", "listen")


async def dial(
    loop: AbstractEventLoop, address: Address, driver: Driver, ssl: SSLContext | None
) -> None:
    """Connect *driver* to *address*."""
    if ssl is not None and not address.is_secure:
        raise ValueError(f"{address}: write tls:// or wss:// if there is to be TLS")
    if address.is_websocket:
        await _websocket().dial(loop, address, driver, ssl)
        return

    def make_protocol() -> DriverProtocol:
        return DriverProtocol(driver)

    if address.transport == "unix":
        await loop.create_unix_connection(make_protocol, address.path)
    else:
        tls = (ssl or True) if address.is_secure else None
        await loop.create_connection(make_protocol, address.host, address.port, ssl=tls)


async def listen(
    loop: AbstractEventLoop,
    address: Address,
    new_driver: Callable[[], Driver],
    ssl: SSLContext | None,
    origins: Sequence[str] = (),
) -> Listener:
    """Listen at *address*; *new_driver* makes the driver of each connection."""
    if address.is_secure and ssl is None:
        raise ValueError(f"{address}: a server needs an ssl context, with its certificate")
    if ssl is not None and not address.is_secure:
        raise ValueError(f"{address}: write tls:// or wss:// if there is to be TLS")
    if isinstance(origins, str):
        raise TypeError("origins must be a list of origins, not one str")
    if origins and not address.is_websocket:
        raise ValueError(f"{address}: origins are those of web pages; write ws:// or wss://")
    server_transport: Any = _websocket().ServerTransport if address.is_websocket else None

    def make_protocol() -> SocketProtocol:
        if server_transport is None:
            return DriverProtocol(new_driver())
        protocol: SocketProtocol = server_transport(new_driver(), address.path, origins)
        return protocol

    if address.transport == "unix":
        return await loop.create_unix_server(make_protocol, address.path)
    return await listen_tcp(loop, address, make_protocol, ssl)


def bound_address(listener: Listener, address: Address) -> Address:
    """*address* with the port that *listener* is bound to."""
    if address.transport == "unix" or address.port:
        return address
    name: Any = listener.sockets[0].getsockname()
    return replace(address, port=name[1])


def _websocket() -> Any:
    try:
        from . import websocket
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "websockets":
            raise
        raise MissingExtra("RSocket over WebSocket", "websockets") from error
    return websocket
