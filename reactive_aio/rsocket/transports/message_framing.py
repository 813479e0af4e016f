"""Transports that keep messages apart: there, a message is a frame, without its length.

The connection is the same as on TCP; lengths are put on and taken off at the transport. What came
in one piece thus reaches the connection in one piece, which reads runs of elements fastest.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

__all__ = ("Message", "allowed", "joined", "parted")

Message = bytes | bytearray | memoryview


def joined(messages: Iterable[Message]) -> bytes:
    """Frames as a stream of bytes has them."""
    pieces: list[Message] = []
    for message in messages:
        pieces += (len(message).to_bytes(3, "big"), message)
    return b"".join(pieces)


def parted(data: bytes) -> list[bytes]:
    """The frames in *data*, which holds whole ones only."""
    messages: list[bytes] = []
    at, end = 0, len(data)
    while at < end:
        start = at + 3
        at = start + int.from_bytes(data[at:start], "big")
        messages.append(data[start:at])
    return messages


def allowed(origin: str | None, host: str | None, origins: Iterable[str]) -> bool:
    """Whether a page of *origin* may connect to *host*.

    A browser lets any page connect to anywhere, with the cookies of there and past the firewall,
    and leaves it to the server to look at the origin. Programs other than browsers name none.
    """
    if origin is None or "*" in (known := {*origins}) or origin in known:
        return True
    return host is not None and urlsplit(origin).netloc.lower() == host.lower() != ""
