"""Received bytes or messages, and the frames in them.

A frame is returned once it is whole. The reader bounds what it holds: one incomplete frame, and
what arrives while the application decides on a SETUP.
"""

from collections import deque

from .errors import ProtocolError
from .framing import FrameSplitter

__all__ = ("FrameReader",)


class FrameReader:
    """Reads frames from a stream of bytes, or takes messages that are a frame each."""

    def __init__(self, max_frame: int, frame_timeout: float) -> None:
        self.splitter: FrameSplitter = FrameSplitter(max_frame)
        self.deadline: float | None = None
        """When the rest of a frame must have arrived."""
        self._frame_timeout = frame_timeout
        self._messages: deque[bytes] = deque()
        self._messages_size = 0

    @property
    def max_frame(self) -> int:
        return self.splitter.limit

    @max_frame.setter
    def max_frame(self, limit: int) -> None:
        self.splitter.limit = limit

    @property
    def held_bytes(self) -> int:
        """The bytes that no frame has been made of yet."""
        return self.splitter.held + self._messages_size

    def feed_message(self, frame: bytes) -> None:
        self._messages.append(frame)
        self._messages_size += len(frame)

    def next_message(self) -> bytes | None:
        """The next message; None if there is none."""
        if not self._messages:
            return None
        frame = self._messages.popleft()
        self._messages_size -= len(frame)
        if len(frame) > self.max_frame:
            raise ProtocolError(
                f"a frame of {len(frame)} bytes; at most {self.max_frame} are taken"
            )
        return frame

    def update_deadline(self, now: float, begin: int, *, is_paused: bool) -> None:
        """Set the deadline for the rest of a frame; *begin* is where reading began."""
        if not self.splitter.held or is_paused:
            self.deadline = None
        elif self.deadline is None or self.splitter.position != begin:
            self.deadline = now + self._frame_timeout

    def rest(self) -> list[bytes]:
        """Take everything that is held: bytes, then messages."""
        rest = [self.splitter.rest(), *self._messages]
        self.clear()
        return [each for each in rest if each]

    def clear(self) -> None:
        self.splitter.clear()
        self._messages.clear()
        self._messages_size = 0
        self.deadline = None
