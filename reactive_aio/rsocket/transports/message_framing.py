"""Frames as messages: a WebSocket message is a frame without its length prefix.

The connection is the same as over TCP; the transport adds and removes the length prefixes. Frames
that arrive in one piece reach the connection in one piece, which reads runs of elements fastest.
"""

from collections.abc import Iterable

__all__ = ("Message", "join_messages", "split_messages")

Message = bytes | bytearray | memoryview


def join_messages(messages: Iterable[Message]) -> bytes:
    """The frames in *messages* as a byte stream, each with its length prefix."""
    pieces: list[Message] = []
    for message in messages:
        pieces += (len(message).to_bytes(3, "big"), message)
    return b"".join(pieces)


def split_messages(data: bytes) -> list[bytes]:
    """The frames in *data*, which holds whole frames only, without their length prefixes."""
    messages: list[bytes] = []
    at, end = 0, len(data)
    while at < end:
        start = at + 3
        at = start + int.from_bytes(data[at:start], "big")
        messages.append(data[start:at])
    return messages
