"""Listening at a host and port, with TLS or without."""

from collections.abc import Callable
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final, cast

from ..._core.loop import AbstractEventLoop, BaseTransport, SocketProtocol

if TYPE_CHECKING:
    from ..._core.loop import Listener
    from ..uri import Address

__all__ = ("TLS_WITHIN", "accept")

TLS_WITHIN: Final = 5.0
"""How many seconds a client has to agree on TLS; asyncio would wait a minute."""

Make = Callable[[], SocketProtocol]


class Entrance(SocketProtocol):
    """Lets in who has agreed on TLS.

    The loop makes a protocol before that, and says nothing to it if it comes to nothing: whoever
    counts connections by their protocols would count those for ever.
    """

    def __init__(self, make: Make) -> None:
        self._make = make

    def connection_made(self, transport: BaseTransport) -> None:
        protocol = self._make()
        cast("Any", transport).set_protocol(protocol)
        protocol.connection_made(transport)


async def accept(
    loop: AbstractEventLoop, address: "Address", make: Make, ssl: SSLContext | None
) -> "Listener":
    """Listen at *address*; *make* makes the protocol of each connection."""
    if ssl is None:
        return await loop.create_server(make, address.host, address.port)
    return await loop.create_server(
        lambda: Entrance(make),
        address.host,
        address.port,
        ssl=ssl,
        ssl_handshake_timeout=TLS_WITHIN,
    )
