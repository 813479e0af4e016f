"""Frames out of a stream of bytes, in which each follows its length, of three bytes."""

from .codec import HEADER
from .errors import ProtocolError
from .frames import MAX_FRAME


class FrameReader:
    """Collects bytes until frames are whole; holds less than one frame of at most *limit* bytes.

    `feed` adds bytes, `next` takes out a frame. A length below six bytes or above *limit* raises
    `ProtocolError` as soon as it is seen, not when the frame is whole. The rest of a frame must
    arrive within *timeout* seconds.
    """

    __slots__ = ("_later", "_missing", "_timeout", "data", "deadline", "limit", "position")

    def __init__(self, limit: int = MAX_FRAME, timeout: float = 10.0) -> None:
        self.limit: int = limit
        self.data: bytes = b""
        self.position: int = 0
        self.deadline: float | None = None
        """When the rest of a frame must have arrived."""
        self._timeout = timeout
        self._later = bytearray()
        self._missing = 0

    @property
    def held(self) -> int:
        """The bytes that are not taken yet, or wait for the rest of their frame."""
        return len(self.data) - self.position + len(self._later)

    @property
    def is_empty(self) -> bool:
        """Whether all bytes were taken."""
        return self.position == len(self.data) and not self._later

    def feed(self, data: bytes) -> None:
        if self._missing > len(data):
            self._later += data  # the frame is still incomplete
            self._missing -= len(data)
        elif self.held:
            self.data = b"".join((self.data[self.position :], self._later, data))
            self._later.clear()
            self.position = self._missing = 0
        else:
            self.data = data
            self.position = self._missing = 0

    def next(self) -> bytes | None:
        """The next whole frame, without its length; None if there is none yet."""
        start, whole = self.position + 3, len(self.data)
        if self._missing or whole < start:
            return None
        length = int.from_bytes(self.data[start - 3 : start], "big")
        if length < HEADER:
            raise ProtocolError(f"a frame of {length} bytes is shorter than its header")
        if length > self.limit:
            raise ProtocolError(f"a frame of {length} bytes; at most {self.limit} are taken")
        end = start + length
        if whole < end:
            self._missing = end - whole
            return None
        self.position = end
        return self.data[start:end]

    def update_deadline(self, now: float, begin: int, *, is_paused: bool) -> None:
        """Set the deadline for the rest of a frame; *begin* is where reading began."""
        if is_paused or not self.held:
            self.deadline = None
        elif self.deadline is None or self.position != begin:
            self.deadline = now + self._timeout

    def restart_deadline(self, now: float) -> None:
        """Reading continues: the rest of a frame has all of its time again."""
        self.deadline = now + self._timeout if self.held else None

    def rest(self) -> bytes:
        """Take out all that is held, whole or not."""
        rest = self.data[self.position :] + bytes(self._later)
        self.clear()
        return rest

    def clear(self) -> None:
        self.data = b""
        self._later.clear()
        self.position = self._missing = 0
        self.deadline = None
