"""Runs: frames of the most common kinds, which are read without making an object for each.

Most frames of a busy connection are of three kinds: an element, a request for one element, and the
response to such a request. They are whole, have one state to be in, and lead to one state, so that
the table is not asked. `read_runs` goes through received bytes while it finds such frames, and
turns each run of them into one event, `Elements`, `ResponseRequests` or `Responses`. It stops at
the first frame of any other kind, at one that is cut short, and at one that breaks a rule. The
frame reader and the stream machine take that frame, and then it continues.

The layers above keep the batches together. A `StreamRegistry` completes all futures of `Responses`,
a `Batch` answers all `ResponseRequests` that need nothing but their data, and an `OutboundStream`
sends together what its publisher produced in one turn.

What is read here leads to what the machine would do; tests compare both.
"""

from functools import lru_cache
from struct import Struct
from typing import Final

from .codec import COMPLETE, ELEMENT_BITS, HEADER, LAST_BITS, LENGTH_SIZE
from .events import ResponseRequests, Responses
from .frames import MAX_31
from .stream_machine import (
    REQUEST_BITS,
    REQUEST_BITS_WITH_METADATA,
    TOP_UP_LEVEL,
    StreamMachine,
)
from .stream_states import InteractionModel
from .streams import EXPECTED, OWED, Stream

# Looking up a member of an enum takes five times as long as looking up a global.
_RESPONSE: Final = InteractionModel.RESPONSE

_HEAD: Final = Struct(">BHIH").unpack_from
"""Length (of three bytes), stream id, type and flags."""
_HEAD_SIZE: Final = LENGTH_SIZE + HEADER
_FEW: Final = 4
"""So many elements of one size are read without their `Struct`."""


def read_runs(machine: StreamMachine, data: bytes, at: int) -> int:
    """Read frames from *at* on; where the first other frame begins.

    To be called only while the connection is open and counts no positions.
    """
    end, by_id = len(data), machine.streams.by_id
    while at + _HEAD_SIZE <= end:
        high, low, stream_id, bits = _HEAD(data, at)
        if not at + _HEAD_SIZE <= at + 3 + (high << 16 | low) <= end:
            break
        begin = at
        if bits in (REQUEST_BITS, REQUEST_BITS_WITH_METADATA):
            at = _read_requests(machine, data, at)
        elif (bits | COMPLETE) == LAST_BITS:
            stream = by_id.get(stream_id)
            if stream is None or not stream.inbound_credit or stream.reassembly is not None:
                break
            if stream is EXPECTED:
                at = _read_responses(machine, data, at)
            elif bits == ELEMENT_BITS and stream.model is not _RESPONSE:
                at = _read_elements(machine, data, at, stream)
        if at == begin:
            break
    return at


def _read_elements(machine: StreamMachine, data: bytes, at: int, stream: Stream) -> int:
    """Read elements of *stream*, at least one."""
    end, stream_id = len(data), stream.id
    elements = machine.elements_event(stream_id).data
    before = credit = stream.inbound_credit
    while credit and at + _HEAD_SIZE <= end:
        high, low, other_id, bits = _HEAD(data, at)
        begin, stop = at + _HEAD_SIZE, at + 3 + (high << 16 | low)
        if bits != ELEMENT_BITS or other_id != stream_id or not begin <= stop <= end:
            break
        elements.append(data[begin:stop])
        credit -= 1
        head, size, at = data[at:begin], stop - at, stop
        count = min(credit, (end - at) // size)
        if count >= _FEW and data.startswith(head, at):
            found = _run(data, at, head, size, count, elements)
            at += size * found
            credit -= found
    stream.inbound_credit = credit
    if machine.flood.useless.level:
        machine.flood.useless.useful(before - credit)
    if stream.unsent_demand and credit < TOP_UP_LEVEL:
        machine.schedule_request(stream)
    return at


def _read_responses(machine: StreamMachine, data: bytes, at: int) -> int:
    """Read responses, each of which ends its stream."""
    end, by_id, requests = len(data), machine.streams.by_id, machine.output.requests
    responses: list[tuple[int, bytes]] = []
    while at + _HEAD_SIZE <= end:
        high, low, stream_id, bits = _HEAD(data, at)
        begin, stop = at + _HEAD_SIZE, at + 3 + (high << 16 | low)
        if (bits | COMPLETE) != LAST_BITS or not begin <= stop <= end:
            break
        if by_id.get(stream_id) is not EXPECTED:
            break
        if requests and stream_id in requests:  # a response before its request
            machine.output.drop_request(stream_id)
        del by_id[stream_id]
        responses.append((stream_id, data[begin:stop]))
        at = stop
    machine.events.append(Responses(responses))
    if machine.flood.useless.level:
        machine.flood.useless.useful(len(responses))
    return at


def _read_requests(machine: StreamMachine, data: bytes, at: int) -> int:
    """Read requests for one element."""
    end, streams, by_id = len(data), machine.streams, machine.streams.by_id
    requests: list[tuple[int, bytes, bytes | None]] = []
    room = machine.room()
    highest, side = streams.highest_remote_id, streams.remote_side
    last_head, last_metadata = b"", b""
    while room and at + _HEAD_SIZE <= end:
        high, low, stream_id, bits = _HEAD(data, at)
        begin, stop = at + _HEAD_SIZE, at + 3 + (high << 16 | low)
        metadata = None
        if bits == REQUEST_BITS_WITH_METADATA:
            if last_head and data.startswith(last_head, begin):
                begin += len(last_head)
            else:
                size = int.from_bytes(data[begin : begin + 3], "big")
                last_head = data[begin : begin + 3 + size]
                last_metadata = last_head[3:]
                begin += 3 + size
            metadata = last_metadata  # one object for a route: its hash is computed once
        elif bits != REQUEST_BITS:
            break
        # An id that was used before is not one of a correct peer, unless ids begin again.
        if stream_id <= highest or stream_id in by_id or stream_id & 1 != side:
            break
        if stream_id > MAX_31:
            break
        if not begin <= stop <= end:
            break
        by_id[stream_id] = OWED
        highest = stream_id
        requests.append((stream_id, data[begin:stop], metadata))
        at = stop
        room -= 1
    if requests:
        streams.remote_count += len(requests)
        streams.highest_remote_id = highest
        machine.events.append(ResponseRequests(requests))
    return at


def _run(data: bytes, at: int, head: bytes, size: int, count: int, elements: list[bytes]) -> int:
    """Add the elements from *at* on to *elements*, at most *count*, while they begin with *head*.

    Returns how many there are. They are as long as the one before, so that one `Struct` reads all.
    """
    before = len(elements)
    for found, element in _layout(size).iter_unpack(memoryview(data)[at : at + size * count]):
        if found != head:
            break
        elements.append(element)
    return len(elements) - before


@lru_cache(64)
def _layout(size: int) -> Struct:
    """An element whose frame has *size* bytes: what precedes its data, and the data."""
    return Struct(f"{_HEAD_SIZE}s{size - _HEAD_SIZE}s")
