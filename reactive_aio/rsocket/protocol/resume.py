"""Resuming after the transport was lost: positions, frames to be sent again, resumable sessions.

A position is a count of bytes: of the frames of streams, without their length, from the session's
beginning. Both sides count what they send and what they receive, so a position says which frames
the other side has.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Generic, TypeVar

S = TypeVar("S")
_OVERHEAD: Final = 128
"""What a frame that is kept takes besides its bytes: three objects, and a place in a queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """Allow resuming within *timeout* seconds, with up to *max_store* bytes of sent frames kept.

    These are bytes of memory: a frame counts with its object, which for a small one is most of it.
    """

    timeout: float = 60.0
    max_store: int = 1024 * 1024

    def __post_init__(self) -> None:
        if not self.timeout > 0 or self.max_store < 1:
            raise ValueError("timeout and max_store must be greater than zero")


class ResumeBuffer:
    """Sent frames that the peer may not have received; the oldest are dropped first.

    *limit* is that of the memory they take.
    """

    __slots__ = ("_frames", "first", "limit", "received", "sent", "size")

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        self.size: int = 0
        """The memory that the frames take."""
        self._frames: deque[tuple[bytes, int]] = deque()
        self.first: int = 0
        """The position of the first frame that is kept."""
        self.sent: int = 0
        """The position of the next frame to be sent."""
        self.received: int = 0
        """The position of the next frame to be received."""

    def add(self, frame: bytes, length: int) -> None:
        """Keep *frame*, which counts as *length* bytes."""
        self._frames.append((frame, length))
        self.sent += length
        self.size += len(frame) + _OVERHEAD
        self.shrink(self.limit)

    def shrink(self, most: int) -> None:
        """Drop frames, the oldest first, until they take at most *most* bytes."""
        while self.size > most:
            self._drop()

    def _drop(self) -> None:
        frame, length = self._frames.popleft()
        self.first += length
        self.size -= len(frame) + _OVERHEAD

    def acknowledge(self, position: int) -> None:
        """The peer has everything before *position*."""
        while self._frames and self.first + self._frames[0][1] <= position <= self.sent:
            self._drop()

    def can_resume(self, position: int) -> bool:
        """Whether all frames from *position* on are kept, and *position* is where one begins."""
        return position in accumulate((length for _, length in self._frames), initial=self.first)

    def frames(self) -> list[bytes]:
        """All that is kept."""
        return [frame for frame, _ in self._frames]


MAX_SESSIONS: Final = 1024


class Sessions(Generic[S]):
    """The sessions of clients that may resume, by their tokens: a bounded number."""

    __slots__ = ("_sessions", "limit")

    def __init__(self, limit: int = MAX_SESSIONS) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        self.limit: int = limit
        self._sessions: dict[bytes, S] = {}

    def __iter__(self) -> Iterator[S]:
        """All sessions, the oldest first."""
        return iter(self._sessions.values())

    @property
    def is_full(self) -> bool:
        return len(self._sessions) >= self.limit

    def __len__(self) -> int:
        return len(self._sessions)

    def add(self, token: bytes, session: S) -> bool:
        """Add *session*; False if there is no room, or its *token* is in use."""
        if token in self._sessions or self.is_full:
            return False
        self._sessions[token] = session
        return True

    def find(self, token: bytes) -> S | None:
        return self._sessions.get(token)

    def remove(self, token: bytes) -> None:
        self._sessions.pop(token, None)
