"""Options of TCP sockets."""

import socket
from contextlib import suppress
from typing import Any, Final

MAX_UNSENT: Final = 128 * 1024
_NOTSENT_LOWAT: Final[int | None] = getattr(socket, "TCP_NOTSENT_LOWAT", None)
"""Linux and macOS have it."""


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
