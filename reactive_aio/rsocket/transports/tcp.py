"""Sockets: TCP, TLS and Unix, by the transports of the event loop, without a task."""

from collections.abc import Callable
from ssl import SSLContext
from typing import Any, Final, cast

from ..._core.loop import AbstractEventLoop, BaseTransport, Listener, SocketProtocol
from ..driver import Driver
from ..uri import Address

__all__ = ("TLS_TIMEOUT", "DriverProtocol", "listen_tcp")

TLS_TIMEOUT: Final = 5.0
"""The number of seconds for the TLS handshake of a client; the default of asyncio is a minute."""

MakeProtocol = Callable[[], SocketProtocol]


class DriverProtocol(SocketProtocol):
    """The asyncio protocol of a socket: it passes the calls of the loop to a driver."""

    driver: Driver

    def __init__(self, driver: Driver) -> None:
        self._transport: Any = None
        self.rebind(driver)

    def rebind(self, driver: Driver) -> None:
        """Serve *driver* from now on: its session continues on this socket."""
        self.driver = driver
        # The loop calls the methods of the driver directly.
        vars(self).update(
            data_received=driver.data_received,
            pause_writing=driver.pause_writing,
            resume_writing=driver.resume_writing,
        )
        if self._transport is not None:  # uvloop caches the methods of a protocol
            self._transport.set_protocol(self)

    def connection_made(self, transport: BaseTransport) -> None:
        self._transport = transport
        self.driver.attach(cast("Any", transport), self.rebind)

    def connection_lost(self, exc: Exception | None) -> None:
        self.driver.connection_lost(exc)


class HandshakeProtocol(SocketProtocol):
    """Makes the protocol of a connection after its TLS handshake.

    asyncio makes a protocol before the handshake, and does not notify the protocol if the handshake
    fails. Connections counted by their protocols would then be counted forever.
    """

    def __init__(self, make_protocol: MakeProtocol) -> None:
        self._make_protocol = make_protocol

    def connection_made(self, transport: BaseTransport) -> None:
        protocol = self._make_protocol()
        cast("Any", transport).set_protocol(protocol)
        protocol.connection_made(transport)


async def listen_tcp(
    loop: AbstractEventLoop, address: Address, make_protocol: MakeProtocol, ssl: SSLContext | None
) -> Listener:
    """Listen at the host and port of *address*, with TLS if *ssl* is given."""
    if ssl is None:
        return await loop.create_server(make_protocol, address.host, address.port)
    return await loop.create_server(
        lambda: HandshakeProtocol(make_protocol),
        address.host,
        address.port,
        ssl=ssl,
        ssl_handshake_timeout=TLS_TIMEOUT,
    )
