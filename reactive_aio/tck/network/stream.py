"""The books of one stream, kept by the kit: what was asked for, what came, how it ended."""

from dataclasses import dataclass, field

from .frames import (
    CANCEL,
    ERROR,
    PAYLOAD,
    REQUEST_CHANNEL,
    REQUEST_N,
    REQUEST_RESPONSE,
    Codes,
    Seen,
)

__all__ = ("Books", "stream_code")

_STREAM_CODES = range(Codes.APPLICATION_ERROR, Codes.INVALID + 1)


def stream_code(code: int) -> bool:
    """Whether a stream may end by that code."""
    return code in _STREAM_CODES or 0x301 <= code <= 0xFFFFFFFE


@dataclass
class Books:
    """One stream that the kit has opened."""

    id: int
    kind: int
    credit: int
    elements: list[bytes] = field(default_factory=list[bytes])
    metadata: list[bytes | None] = field(default_factory=list[bytes | None])
    ended: str = ""
    """``complete`` or ``error``, by the peer."""
    code: int = 0
    """Of the error."""
    cancelled: bool = False
    """By the kit."""
    late: int = 0
    """Frames that came after the kit's CANCEL."""
    asked: int = 0
    """What the peer requested of a channel."""
    stopped: bool = False
    """Whether the peer wants no more of a channel."""
    _part: bytes | None = None
    _part_metadata: bytes | None = None
    _next: bool = False

    def take(self, seen: Seen) -> tuple[str, str] | None:
        """Write a frame down; the rule that it breaks, and how."""
        if seen.kind == REQUEST_N:
            self.asked += seen.number
            return None
        if seen.kind == CANCEL:
            self.stopped = True
            return None
        if seen.kind not in (PAYLOAD, ERROR):
            return "N.12", f"{seen} is nothing that a responder sends"
        if self.ended:
            return "N.19", f"after its end came {seen}"
        if self.cancelled:
            self.late += 1
            return None
        return self._failed(seen) if seen.kind == ERROR else self._payload(seen)

    def _failed(self, seen: Seen) -> tuple[str, str] | None:
        self.ended, self.code = "error", seen.number
        if not stream_code(seen.number):
            return "N.26", f"a stream ended by {seen}, which is no code of streams"
        return None

    def _payload(self, seen: Seen) -> tuple[str, str] | None:
        if self._part is None and not (seen.next or seen.complete or seen.follows):
            return "N.12", "a PAYLOAD that is neither NEXT nor COMPLETE"
        # Metadata is there from the first fragment on; nothing is there without one.
        if seen.metadata is not None:
            if self._part:
                return "N.30", "metadata came in a fragment behind data"
            self._part_metadata = (self._part_metadata or b"") + seen.metadata
        self._next = self._next or seen.next
        self._part = (self._part or b"") + seen.data
        if seen.follows:
            return None
        whole, metadata, is_element = self._part, self._part_metadata, self._next
        self._part, self._part_metadata, self._next = None, None, False
        if seen.complete:
            self.ended = "complete"
        if not is_element:
            return None
        self.elements.append(whole)
        self.metadata.append(metadata)
        return self._counted(seen)

    def _counted(self, seen: Seen) -> tuple[str, str] | None:
        if self.kind == REQUEST_RESPONSE:
            if not seen.complete:
                self.ended = "complete"
                return "N.20", "the answer is not COMPLETE"
        elif len(self.elements) > self.credit:
            what = f"{self.credit} were requested in all, {len(self.elements)} came"
            return "N.14", what
        return None

    @property
    def is_channel(self) -> bool:
        return self.kind == REQUEST_CHANNEL
