"""Sockets: TCP, TLS and Unix, by the loop's own transports, without a task."""

from collections.abc import Callable
from dataclasses import replace
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, cast

from ..._core.loop import AbstractEventLoop, BaseTransport, SocketProtocol
from ..driver import Driver
from ..uri import Address
from .accepting import accept

if TYPE_CHECKING:
    from ..._core.loop import Listener
    from ..interfaces import Transport

__all__ = ("Wire", "dial", "listen")


class Wire(SocketProtocol):
    """Passes on to its driver what the loop says of a socket."""

    driver: Driver

    def __init__(self, driver: Driver) -> None:
        self._transport: Any = None
        self.rebind(driver)

    def rebind(self, driver: Driver) -> None:
        """Pass it on to *driver* from now on."""
        self.driver = driver
        # What the loop calls most is the driver's own method.
        vars(self).update(
            data_received=driver.data_received,
            pause_writing=driver.pause_writing,
            resume_writing=driver.resume_writing,
        )
        if self._transport is not None:  # uvloop remembers the methods it calls
            self._transport.set_protocol(self)

    def connection_made(self, transport: BaseTransport) -> None:
        self._transport = transport
        self.driver.attach(cast("Transport", transport), self.rebind)

    def connection_lost(self, exc: Exception | None) -> None:
        self.driver.connection_lost(exc)


async def dial(
    loop: AbstractEventLoop, address: Address, driver: Driver, ssl: SSLContext | None
) -> None:
    """Connect *driver* to *address*."""

    def make() -> Wire:
        return Wire(driver)

    if address.transport == "unix":
        await loop.create_unix_connection(make, address.path)
    elif address.transport == "tls":
        await loop.create_connection(make, address.host, address.port, ssl=ssl or True)
    else:
        await loop.create_connection(make, address.host, address.port)


async def listen(
    loop: AbstractEventLoop,
    address: Address,
    welcome: Callable[[], Driver],
    ssl: SSLContext | None,
) -> "Listener":
    """Listen at *address*; *welcome* makes the driver of each connection."""

    def make() -> Wire:
        return Wire(welcome())

    if address.transport == "unix":
        return await loop.create_unix_server(make, address.path)
    return await accept(loop, address, make, ssl)


def place(listener: "Listener", address: Address) -> Address:
    """Where *listener* really listens: a port of 0 means any."""
    if address.transport == "unix" or address.port:
        return address
    name: Any = listener.sockets[0].getsockname()
    return replace(address, port=name[1])
