"""The record of one stream that the kit has opened: what was requested and what the peer sent."""

from dataclasses import dataclass, field

from .frames import CANCEL, ERROR, PAYLOAD, REQUEST_N, REQUEST_RESPONSE, Codes, ParsedFrame

_STREAM_CODES = range(Codes.APPLICATION_ERROR, Codes.INVALID + 1)

Fault = tuple[str, str]
"""The rule that a frame breaks, and how."""


def is_stream_code(code: int) -> bool:
    """Whether a stream may fail with that code."""
    return code in _STREAM_CODES or 0x301 <= code <= 0xFFFFFFFE


@dataclass
class StreamRecord:
    """One stream that the kit has opened."""

    id: int
    kind: int
    requested: int
    elements: list[bytes] = field(default_factory=list[bytes])
    end: str = ""
    """``complete`` or ``error``, when the peer has terminated the stream."""
    code: int = 0
    """The code of the peer's error."""
    is_cancelled: bool = False
    """Whether the kit has sent CANCEL."""
    frames_after_cancel: int = 0
    requested_by_peer: int = 0
    """What the peer has requested on a channel."""
    is_cancelled_by_peer: bool = False
    """Whether the peer has sent CANCEL on a channel."""
    _data: bytes | None = None
    _is_element: bool = False

    def receive(self, frame: ParsedFrame) -> Fault | None:
        """Record a frame; return its fault, if it has one."""
        if frame.kind == REQUEST_N:
            self.requested_by_peer += frame.number
            return None
        if frame.kind == CANCEL:
            self.is_cancelled_by_peer = True
            return None
        if frame.kind not in (PAYLOAD, ERROR):
            return "N.12", f"{frame} is not a frame that a responder sends"
        if self.end:
            return "N.19", f"after its end came {frame}"
        if self.is_cancelled:
            self.frames_after_cancel += 1
            return None
        if frame.kind == PAYLOAD:
            return self._receive_payload(frame)
        self.end, self.code = "error", frame.number
        if not is_stream_code(frame.number):
            return "N.26", f"a stream failed by {frame}, which is not a code of streams"
        return None

    def _receive_payload(self, frame: ParsedFrame) -> Fault | None:
        if self._data is None and not (frame.is_next or frame.is_complete or frame.has_follows):
            return "N.12", "a PAYLOAD that is neither NEXT nor COMPLETE"
        if frame.metadata is not None and self._data:
            # Metadata precedes data in the fragments of an element.
            return "N.30", "metadata came in a fragment after data"
        data, is_element = (self._data or b"") + frame.data, self._is_element or frame.is_next
        if frame.has_follows:
            self._data, self._is_element = data, is_element
            return None
        self._data, self._is_element = None, False
        if frame.is_complete:
            self.end = "complete"
        if not is_element:
            return None
        self.elements.append(data)
        if self.kind == REQUEST_RESPONSE:
            if not frame.is_complete:
                self.end = "complete"
                return "N.20", "the answer is not COMPLETE"
        elif len(self.elements) > self.requested:
            return "N.14", f"{self.requested} were requested in all, {len(self.elements)} came"
        return None
