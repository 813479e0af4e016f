"""Payloads that do not fit a frame: they are sent in fragments, and reassembled.

Metadata goes before data. Only the last fragment of a request or element completes the stream. Each
fragment is a whole frame, so that frames of other streams can be sent in between.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from .codec import COMPLETE, ELEMENT_BITS, FOLLOWS, HEADER, LENGTH_SIZE, encode_payload
from .errors import ProtocolError
from .frames import Payload, PayloadTuple
from .limits import Limits

_FLAGS: Final = LENGTH_SIZE + HEADER - 1
"""Where the lower eight flags of a frame are."""
_SLOWEST: Final = 4 * 1024
"""How many bytes of a payload give its sender another second."""


def fragments(
    stream_id: int, bits: int, payload: PayloadTuple, n: int, mtu: int
) -> Iterator[bytes]:
    """The frames of a request or an element, of up to *mtu* bytes each, made when they are taken.

    The parameters are those of `encode_payload`.
    """
    complete = bits & COMPLETE
    bits ^= complete
    data, metadata = payload
    at = 0
    is_last = False
    while not is_last:
        room = mtu - HEADER - (4 if n else 0)
        piece = None
        if metadata is not None:
            piece = metadata[: room - 3]
            metadata = metadata[room - 3 :] or None
            room -= 3 + len(piece)
        taken = data[at : at + room]  # nothing, while metadata fills the frame
        at += room
        is_last = metadata is None and at >= len(data)
        flags = complete if is_last else FOLLOWS
        yield encode_payload(stream_id, bits | flags, (taken, piece), n)
        bits, n = ELEMENT_BITS, 0


def fragment_follows(fragment: bytes) -> bool:
    """Whether another fragment follows *fragment*, a frame after its length."""
    return bool(fragment[_FLAGS] & FOLLOWS)


class TooMuch(ProtocolError):
    """The payload is correct by itself, but there are too many like it at the same time."""


@dataclass(slots=True, eq=False)
class Reassembly:
    """A payload whose fragments are still being received."""

    stream_id: int
    deadline: float
    """When the next fragment must have arrived."""
    size: int = 0
    empty: int = 0
    next: bool = False
    complete: bool = False
    _data: bytearray = field(default_factory=bytearray)
    _metadata: bytearray | None = None

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
    """All unfinished payloads of a connection, within common limits.

    They are bounded by their bytes, of the connection and of the process, and by time: a payload
    whose rest does not come would be held for as long as the connection lives.
    """

    __slots__ = ("_limits", "_open", "deadline", "size")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: dict[int, Reassembly] = {}
        self.size: int = 0
        self.deadline: float | None = None
        """When to ask which are `overdue`: no later than the soonest deadline of them all."""

    @property
    def count(self) -> int:
        return len(self._open)

    def begin(self, stream_id: int, now: float) -> Reassembly:
        deadline = now + self._limits.fragment_timeout
        reassembly = self._open[stream_id] = Reassembly(stream_id, deadline)
        if self.deadline is None:
            self.deadline = deadline
        return reassembly

    def add(self, reassembly: Reassembly, payload: Payload, follows: bool, now: float) -> None:
        """Add a fragment to *reassembly*; `ProtocolError` if that exceeds a limit of payloads.

        `TooMuch` if it exceeds a limit of all payloads together.
        """
        limits = self._limits
        added = reassembly.add(payload)
        self.size += added
        has_room = limits.budget.hold(added)
        gained = reassembly.deadline + added / _SLOWEST
        reassembly.deadline = min(gained, now + limits.fragment_timeout)
        if reassembly.size > limits.max_payload:
            raise ProtocolError(f"a payload of more than {limits.max_payload} bytes")
        if reassembly.empty > limits.max_empty_fragments:
            most = limits.max_empty_fragments
            raise ProtocolError(f"more than {most} empty fragments of one payload")
        if self.size > limits.max_partial:
            raise TooMuch(f"more than {limits.max_partial} bytes of unfinished payloads")
        if follows and self.count > limits.max_partials:
            raise TooMuch(f"more than {limits.max_partials} unfinished payloads")
        if follows and not has_room:
            raise TooMuch("as many bytes of unfinished payloads as the process holds")

    def end(self, reassembly: Reassembly) -> None:
        """*reassembly* is whole, or was given up."""
        del self._open[reassembly.stream_id]
        self.size -= reassembly.size
        self._limits.budget.hold(-reassembly.size)
        if not self._open:
            self.deadline = None

    def overdue(self, now: float) -> list[int]:
        """The streams of those whose next fragment did not come in time."""
        found = [each.stream_id for each in self._open.values() if each.deadline <= now]
        later = [each.deadline for each in self._open.values() if each.deadline > now]
        self.deadline = min(later, default=None)
        return found

    def pause(self) -> None:
        """Nothing is read from now on: no missing fragment is the peer's fault."""
        self.deadline = None

    def restart(self, now: float) -> None:
        """Reading continues: each has all of its time again."""
        deadline = now + self._limits.fragment_timeout
        for each in self._open.values():
            each.deadline = deadline
        self.deadline = deadline if self._open else None
