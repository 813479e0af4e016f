"""Frames out of a stream of bytes: each stands behind its length, three bytes.

Transports that keep messages apart (WebSocket) need none of this: a message is a frame.
"""

from .codec import HEADER
from .errors import ProtocolError
from .frames import MAX_FRAME

__all__ = ("Splitter",)


class Splitter:
    """Collects bytes until frames are whole; holds less than one frame of at most *limit* bytes.

    `feed` adds bytes, `next` takes out a frame. A length below six bytes or above *limit* raises
    `ProtocolError` as soon as it is seen, not when the frame is whole.
    """

    __slots__ = ("data", "limit", "position")

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self.limit: int = limit
        self.data: bytes = b""
        self.position: int = 0

    @property
    def held(self) -> int:
        """How many bytes wait for the rest of their frame, or to be taken."""
        return len(self.data) - self.position

    def feed(self, data: bytes) -> None:
        self.data = self.data[self.position :] + data if self.held else data
        self.position = 0

    def next(self) -> bytes | None:
        """The next whole frame, without its length; None if there is none yet."""
        length = self.length()
        start = self.position + 3
        if length is None or len(self.data) < start + length:
            return None
        self.position = start + length
        return self.data[start : start + length]

    def length(self) -> int | None:
        """How long the next frame says it is; None if that is not known yet."""
        at = self.position
        if len(self.data) < at + 3:
            return None
        length = int.from_bytes(self.data[at : at + 3], "big")
        if length < HEADER:
            raise ProtocolError(f"a frame of {length} bytes is shorter than its header")
        if length > self.limit:
            raise ProtocolError(f"a frame of {length} bytes; at most {self.limit} are taken")
        return length

    def rest(self) -> bytes:
        """Take out all that is held, whole or not."""
        rest = self.data[self.position :]
        self.clear()
        return rest

    def clear(self) -> None:
        self.data = b""
        self.position = 0
