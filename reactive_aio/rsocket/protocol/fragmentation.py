"""Payloads that do not fit a frame: they are sent in fragments, and reassembled.

Metadata goes before data. Only the last fragment of a request or element completes the stream. Each
fragment is a whole frame, so that frames of other streams can be sent in between.
"""

from collections.abc import Iterator

from .codec import HEADER, encode
from .errors import ProtocolError
from .frames import (
    Payload,
    PayloadFrame,
    RequestChannel,
    RequestFnf,
    RequestResponse,
    RequestStream,
)
from .limits import Limits

__all__ = ("Fragmentable", "Reassemblies", "Reassembly", "fragments", "payload_length")

Fragmentable = RequestResponse | RequestFnf | RequestStream | RequestChannel | PayloadFrame


def payload_length(payload: Payload) -> int:
    """The size of *payload* in a frame."""
    data, metadata = payload
    return len(data) if metadata is None else len(data) + 3 + len(metadata)


def fragments(frame: Fragmentable, mtu: int) -> Iterator[bytes]:
    """*frame* as encoded frames of up to *mtu* bytes each, each made when it is taken."""
    numbered = isinstance(frame, RequestStream | RequestChannel)
    room = mtu - HEADER - (4 if numbered else 0)
    if payload_length(frame.payload) <= room:
        yield encode(frame)
        return
    complete = isinstance(frame, RequestChannel | PayloadFrame) and frame.complete
    first = True
    for payload, last in _cut(frame.payload, room, mtu - HEADER):
        if first:
            yield encode(_beginning(frame, payload))
            first = False
        else:
            stream_id = frame.stream_id
            yield encode(PayloadFrame(stream_id, payload, True, complete and last, not last))


def _beginning(frame: Fragmentable, payload: Payload) -> Fragmentable:
    match frame:
        case RequestResponse(stream_id):
            return RequestResponse(stream_id, payload, True)
        case RequestFnf(stream_id):
            return RequestFnf(stream_id, payload, True)
        case RequestStream(stream_id, n):
            return RequestStream(stream_id, n, payload, True)
        case RequestChannel(stream_id, n):
            return RequestChannel(stream_id, n, payload, True)
        case PayloadFrame(stream_id):
            return PayloadFrame(stream_id, payload, follows=True)


def _cut(payload: Payload, room: int, later: int) -> Iterator[tuple[Payload, bool]]:
    """Pieces of *payload*, and whether each is the last: the first takes *room* bytes."""
    data, metadata = payload
    tail = metadata
    at = 0
    while True:
        piece, left = None, room
        if tail is not None:
            piece = tail[: room - 3]
            tail = tail[room - 3 :] or None
            left -= 3 + len(piece)
        taken = data[at : at + left]  # nothing, while metadata fills the frame
        at += left
        last = tail is None and at >= len(data)
        yield Payload(taken, piece), last
        if last:
            return
        room = later


class Reassembly:
    """A payload whose fragments are still being received."""

    __slots__ = ("_data", "_metadata", "complete", "empty", "next", "size")

    def __init__(self) -> None:
        self._data = bytearray()
        self._metadata: bytearray | None = None
        self.size: int = 0
        self.empty: int = 0
        self.next: bool = False
        self.complete: bool = False

    def add(self, payload: Payload) -> int:
        """Add a fragment; returns how many bytes it brought."""
        data, metadata = payload
        added = len(data)
        self._data += data
        if metadata is not None:
            added += len(metadata)
            if self._metadata is None:
                self._metadata = bytearray()
            self._metadata += metadata
        self.size += added
        self.empty += not added
        return added

    def whole(self) -> Payload:
        metadata = self._metadata
        return Payload(bytes(self._data), None if metadata is None else bytes(metadata))


class Reassemblies:
    """All unfinished payloads of a connection, within common limits."""

    __slots__ = ("_limits", "count", "size")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.count: int = 0
        self.size: int = 0

    def begin(self) -> Reassembly:
        self.count += 1
        return Reassembly()

    def add(self, reassembly: Reassembly, payload: Payload, follows: bool) -> None:
        """Add a fragment to *reassembly*; `ProtocolError` if that exceeds a limit."""
        self.size += reassembly.add(payload)
        excess = self._excess(reassembly, follows)
        if excess:
            raise ProtocolError(excess)

    def _excess(self, reassembly: Reassembly, follows: bool) -> str:
        limits = self._limits
        if reassembly.size > limits.max_payload:
            return f"a payload of more than {limits.max_payload} bytes"
        if self.size > limits.max_partial:
            return f"more than {limits.max_partial} bytes of unfinished payloads"
        if follows and self.count > limits.max_partials:
            return f"more than {limits.max_partials} unfinished payloads"
        if reassembly.empty > limits.max_empty_fragments:
            return f"more than {limits.max_empty_fragments} empty fragments of one payload"
        return ""

    def end(self, reassembly: Reassembly) -> None:
        """*reassembly* is whole, or was given up."""
        self.count -= 1
        self.size -= reassembly.size
