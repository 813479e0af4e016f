"""Options of TCP sockets, and how they are read."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import Any, Final, NamedTuple

from ...._core.loop import AbstractEventLoop, BufferedProtocol, SelectorEventLoop

_BUFFER_SIZE: Final = 64 * 1024
MAX_UNSENT: Final = 128 * 1024
_NOTSENT_LOWAT: Final[int | None] = getattr(socket, "TCP_NOTSENT_LOWAT", None)
"""Linux and macOS have it."""
_PEERCRED: Final[int | None] = getattr(socket, "SO_PEERCRED", None)
"""Linux has it."""
_CREDENTIALS: Final = Struct("3i")


class _Thread(threading.local):
    """The buffer of one thread."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(_BUFFER_SIZE))


_thread: Final = _Thread()


class SharedBuffer(BufferedProtocol):
    """Reads into a buffer that all connections of a thread share; to be mixed into a protocol.

    asyncio's loop otherwise allocates 256 KiB for each read, and returns what is left of it: for a
    short message, these system calls take three times as long as reading it. Bytes are copied out
    of the buffer before anything else happens.
    """

    def get_buffer(self, sizehint: int) -> memoryview:
        return _thread.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(_thread.buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Take in *data*, as `asyncio.Protocol` does."""
        raise NotImplementedError


def fills_buffer_at_once(loop: AbstractEventLoop) -> bool:
    """Whether *loop* requests a buffer when there is something to read, and fills it at once.

    Only then can connections share it. uvloop does so, but reads into a buffer of its own as well.
    """
    return isinstance(loop, SelectorEventLoop)


def limit_unsent(transport: Any) -> None:
    """Let the kernel hold at most `MAX_UNSENT` bytes that it has not sent yet.

    Otherwise it holds megabytes, after which a keepalive has to wait: on a slow link for longer
    than the lifetime of the connection. Bytes that were sent and not acknowledged do not count, so
    that the throughput stays the same.
    """
    tcp = transport.get_extra_info("socket")
    if tcp is None or _NOTSENT_LOWAT is None or tcp.family not in (socket.AF_INET, socket.AF_INET6):
        return
    with suppress(OSError):  # a platform may refuse it, or the peer has closed already
        tcp.setsockopt(socket.IPPROTO_TCP, _NOTSENT_LOWAT, MAX_UNSENT)


class UnixPeer(NamedTuple):
    """The process at the other end of a Unix socket, which has no address."""

    pid: int
    uid: int
    gid: int


def peer_address(get_extra_info: Callable[[str], Any]) -> Any:
    """The address of a peer by the *get_extra_info* of its transport; a `UnixPeer` if it has none.

    None, or an empty text, if neither is known.
    """
    name, connection = get_extra_info("peername"), get_extra_info("socket")
    if name or connection is None or connection.family != getattr(socket, "AF_UNIX", None):
        return name
    if _PEERCRED is None:
        return name
    found = connection.getsockopt(socket.SOL_SOCKET, _PEERCRED, _CREDENTIALS.size)
    return UnixPeer(*_CREDENTIALS.unpack(found))
