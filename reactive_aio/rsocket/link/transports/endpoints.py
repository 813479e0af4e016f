"""Connecting to an address and listening at it, by the transport that the address names.

Sockets (TCP, TLS and Unix) are the transports of the event loop, without a task; `websocket` is
imported when it is first used.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from ssl import SSLContext
from typing import Any, Final, cast

from anyio import to_thread

from ...._core.loop import AbstractEventLoop, BaseTransport, Listener, SocketProtocol
from ...._shared.unix_sockets import remove_unused_socket
from ....errors import MissingExtra
from ...option_checks import require_tls_side
from ...uri import Address
from ..driver import Driver
from .origins import require_origins
from .sockets import SharedBuffer, fills_buffer_at_once, limit_unsent
from .tls import AcceptingProtocol, Handshakes

UNIX_MODE: Final = 0o600
"""Programs of the same user alone may connect to a Unix socket."""


class DriverProtocol(SocketProtocol):
    """The asyncio protocol of a socket: it passes the calls of the loop to a driver."""

    driver: Driver
    _transport: Any = None

    def __init__(self, driver: Driver) -> None:
        self.rebind(driver)

    def rebind(self, driver: Driver) -> None:
        """Serve *driver* from now on: its session continues on this socket."""
        self.driver = driver
        vars(self)["data_received"] = driver.data_received  # which the loop calls directly
        if self._transport is not None:  # uvloop caches the methods of a protocol
            self._transport.set_protocol(self)

    def connection_made(self, transport: BaseTransport) -> None:
        self._transport = transport
        limit_unsent(transport)
        self.driver.attach(cast("Any", transport), self.rebind)

    def pause_writing(self) -> None:
        self.driver.pause_writing()

    def resume_writing(self) -> None:
        self.driver.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:  # else `give_up` has told the driver
            self._transport = None  # with TLS, it holds a buffer of 256 KiB
            self.driver.connection_lost(exc)

    def give_up(self) -> None:
        """The attempt to connect has failed or is cancelled: its transport, if any, ends now.

        asyncio would call `connection_lost` a little later. uvloop never does: it closes the
        transport of an attempt that is cancelled, and the driver would keep a dead one.
        """
        if (transport := self._transport) is not None:
            transport.abort()
            self.connection_lost(None)


class BufferedDriverProtocol(DriverProtocol, SharedBuffer):
    """The same, for loops that read into a buffer."""


def _driver_protocol(loop: AbstractEventLoop) -> type[DriverProtocol]:
    return BufferedDriverProtocol if fills_buffer_at_once(loop) else DriverProtocol


async def dial(
    loop: AbstractEventLoop, address: Address, driver: Driver, ssl: SSLContext | None
) -> None:
    """Connect *driver* to *address*."""
    if ssl is not None and not address.is_secure:
        raise ValueError(f"{address}: write tls:// or wss:// if there is to be TLS")
    require_tls_side(address, ssl, server=False)
    if address.is_websocket:
        await _websocket().dial(loop, address, driver, ssl)
        return

    protocol = _driver_protocol(loop)(driver)
    tls = (ssl or True) if address.is_secure else None
    try:
        if address.transport == "unix":
            await loop.create_unix_connection(lambda: protocol, address.path)
        else:
            await loop.create_connection(lambda: protocol, address.host, address.port, ssl=tls)
    except BaseException:
        protocol.give_up()
        raise


async def listen(
    loop: AbstractEventLoop,
    address: Address,
    new_driver: Callable[[], Driver],
    handshakes: Handshakes | None,
    origins: Sequence[str] = (),
    unix_mode: int | None = None,
) -> Listener:
    """Listen at *address*; *new_driver* makes the driver of each connection.

    With *handshakes*, there is TLS.
    """
    ssl = None if handshakes is None else handshakes.context
    if unix_mode is not None and address.transport != "unix":
        raise ValueError(f"{address}: unix_mode is that of a Unix socket; write unix:///path")
    if address.is_secure and ssl is None:
        raise ValueError(f"{address}: a server needs an ssl context, with its certificate")
    if ssl is not None and not address.is_secure:
        raise ValueError(f"{address}: write tls:// or wss:// if there is to be TLS")
    require_tls_side(address, ssl, server=True)
    allowed = require_origins("serve", origins)
    if allowed and not address.is_websocket:
        raise ValueError(f"{address}: origins are those of web pages; write ws:// or wss://")
    server_transport: Any = _websocket().server_transport(loop) if address.is_websocket else None
    protocol_type = _driver_protocol(loop)

    def make_protocol() -> SocketProtocol:
        if server_transport is None:
            return protocol_type(new_driver())
        protocol: SocketProtocol = server_transport(new_driver(), address, allowed)
        return protocol

    if address.transport == "unix":
        mode = UNIX_MODE if unix_mode is None else unix_mode
        return await _listen_at_path(loop, make_protocol, address.path, mode)
    if handshakes is None:
        return await loop.create_server(make_protocol, address.host, address.port)
    return await loop.create_server(
        lambda: AcceptingProtocol(handshakes, make_protocol), address.host, address.port
    )


async def _listen_at_path(
    loop: AbstractEventLoop, make_protocol: Callable[[], SocketProtocol], path: str, mode: int
) -> Listener:
    """Listen at a Unix socket that those may connect to whom *mode* allows to write.

    Nobody can connect between the two steps, as the socket does not listen yet.
    """
    await to_thread.run_sync(remove_unused_socket, "serve", path)
    listener = await loop.create_unix_server(make_protocol, path, start_serving=False)
    try:
        os.chmod(path, mode)
        await listener.start_serving()
    except BaseException:
        listener.close()
        raise
    return listener


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
