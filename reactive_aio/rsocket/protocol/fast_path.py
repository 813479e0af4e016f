"""The fast path: frames that need no decision, between bytes and batches.

Most frames of a busy connection are of three kinds: an element, a request for one element, and the
response to such a request. They are whole, have one state to be in, and lead to one state, so that
the table is not asked. This module reads and writes them without making an object for each frame:

- in: `read` goes through received bytes while it finds such frames, and turns each run of them into
  one event, `Elements`, `ResponseRequests` or `Responses`. It stops at the first frame of any other
  kind, at one that is cut short, and at one that breaks a rule. The frame reader and the stream
  machine take that frame, and then this module continues.
- out: `send_all` queues many elements of a stream at once. `request_response` and `respond` queue
  their frames apart from the streams' own (`OutboundQueue.requests`, `.responses`), where they are
  all sent at once, while little is queued. Anything else (fragments, metadata of elements,
  leases, much output queued) goes through the machine.

The streams it opens have nothing of their own but their id: three objects stand for all of them,
until the machine needs one that it can change (`Streams.get`). A request makes no object for its
stream on either side.

The layers above keep the batches together. A `StreamRegistry` completes all futures of `Responses`,
a `Batch` answers all `ResponseRequests` that need nothing but their data, and an `OutboundStream`
sends together what its publisher produced in one turn. A driver writes a request that is alone at
once, and others in a turn.

What the fast path does is what the machine would do, with fewer steps; tests compare both. Without
it, an element of a stream costs its receiver nine times as much, and a request with its response
four times (`benchmarks.rsocket.stream`, `benchmarks.rsocket.requests`).
"""

from struct import Struct
from typing import Final

from .codec import (
    COMPLETE,
    ELEMENT_BITS,
    HEADER,
    LAST_BITS,
    LENGTH_SIZE,
    METADATA,
    small_header,
)
from .events import ResponseRequests, Responses
from .frames import MAX_31, FrameType, PayloadTuple
from .outbound_queue import COALESCE_LIMIT
from .stream_machine import TOP_UP_LEVEL, StreamMachine
from .stream_states import InteractionModel, State
from .streams import EXPECTED, OWED, QUEUED, STREAM_ID_STEP, Stream

# Looking up a member of an enum takes five times as long as looking up a global.
_RESPONSE: Final = InteractionModel.RESPONSE
_RESPONDER_STREAM: Final = State.RESPONDER_STREAM

_HEAD: Final = Struct(">BHIH").unpack_from
"""Length (of three bytes), stream id, type and flags."""
_HEAD_SIZE: Final = LENGTH_SIZE + HEADER
_REQUEST_BITS: Final = _RESPONSE << 10
_REQUEST_BITS_WITH_METADATA: Final = _REQUEST_BITS | METADATA
_REQUESTS: Final = (_REQUEST_BITS, _REQUEST_BITS_WITH_METADATA)
_REQUEST_N_BITS: Final = FrameType.REQUEST_N << 10
_REQUEST_N_SIZE: Final = HEADER + 4
_N: Final = Struct(">I").unpack_from
_REQUEST_HEAD: Final = Struct(">xHIHxH").pack
"""`small_header`, and the length of the metadata."""
_FEW: Final = 4
"""So many elements of one size are read without their `Struct`."""
_UNIFORM: Final[dict[int, Struct]] = {}
"""The layouts of elements by the size of their data: a frame without its data, and the data."""
_MAX_LAYOUTS: Final = 64


class FastPath:
    """The fast path of one connection, in both directions."""

    __slots__ = ("_by_id", "_machine", "_max_requests", "_open", "_output", "_small_frame")

    def __init__(self, machine: StreamMachine) -> None:
        self._machine = machine
        self._output = machine.output
        self._open = machine.open
        self._by_id = machine.open.by_id
        self._small_frame = machine.small_frame
        self._max_requests = machine.limits.max_requests

    # -- in ----------------------------------------------------------------------------------------
    def read(self, data: bytes, at: int) -> int:
        """Read frames from *at* on; where the first other frame begins.

        To be called only while the connection is open and counts no positions.
        """
        end = len(data)
        while at + _HEAD_SIZE <= end:
            high, low, stream_id, bits = _HEAD(data, at)
            if not at + _HEAD_SIZE <= at + 3 + (high << 16 | low) <= end:
                break
            begin = at
            if bits in _REQUESTS:
                at = self._read_requests(data, at)
            elif (bits | COMPLETE) == LAST_BITS:
                stream = self._by_id.get(stream_id)
                if stream is EXPECTED:
                    at = self._read_responses(data, at)
                elif stream is None or not stream.inbound_credit or stream.reassembly is not None:
                    break
                elif bits == ELEMENT_BITS and stream.model is not _RESPONSE:
                    at = self._read_elements(data, at, stream)
            elif bits == _REQUEST_N_BITS and low == _REQUEST_N_SIZE and not high:
                at = self._read_demand(data, at, stream_id)
            if at == begin:
                break
        return at

    def _read_elements(self, data: bytes, at: int, stream: Stream) -> int:
        """Read elements of *stream*, at least one."""
        end, stream_id, machine = len(data), stream.id, self._machine
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
        if machine.flood_guard.useless.level:
            machine.flood_guard.useful(before - credit)
        if stream.unsent_demand and credit < TOP_UP_LEVEL:
            machine.schedule_request(stream)
        return at

    def _read_responses(self, data: bytes, at: int) -> int:
        """Read responses, each of which ends its stream."""
        end, by_id, requests = len(data), self._by_id, self._output.requests
        responses: list[tuple[int, bytes]] = []
        while at + _HEAD_SIZE <= end:
            high, low, stream_id, bits = _HEAD(data, at)
            begin, stop = at + _HEAD_SIZE, at + 3 + (high << 16 | low)
            if (bits | COMPLETE) != LAST_BITS or not begin <= stop <= end:
                break
            if by_id.get(stream_id) is not EXPECTED:
                break
            if requests and stream_id in requests:  # a response before its request
                self._output.drop_request(stream_id)
            del by_id[stream_id]
            responses.append((stream_id, data[begin:stop]))
            at = stop
        self._machine.events.append(Responses(responses))
        if self._machine.flood_guard.useless.level:
            self._machine.flood_guard.useful(len(responses))
        return at

    def _read_requests(self, data: bytes, at: int) -> int:
        """Read requests for one element."""
        end, streams, by_id = len(data), self._open, self._by_id
        requests: list[tuple[int, bytes, bytes | None]] = []
        room = self._machine.room()
        highest, side = streams.highest_remote_id, streams.remote_side
        last_head, last_metadata = b"", b""
        while room and at + _HEAD_SIZE <= end:
            high, low, stream_id, bits = _HEAD(data, at)
            begin, stop = at + _HEAD_SIZE, at + 3 + (high << 16 | low)
            metadata = None
            if bits == _REQUEST_BITS_WITH_METADATA:
                if last_head and data.startswith(last_head, begin):
                    begin += len(last_head)
                else:
                    size = int.from_bytes(data[begin : begin + 3], "big")
                    last_head = data[begin : begin + 3 + size]
                    last_metadata = last_head[3:]
                    begin += 3 + size
                metadata = last_metadata  # one object for a route: its hash is computed once
            elif bits != _REQUEST_BITS:
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
            self._machine.events.append(ResponseRequests(requests))
        return at

    def _read_demand(self, data: bytes, at: int, stream_id: int) -> int:
        """Read a REQUEST_N of a stream that this side sends."""
        stream = self._by_id.get(stream_id)
        n = _N(data, at + _HEAD_SIZE)[0] & MAX_31
        if stream is None or stream.state is not _RESPONDER_STREAM or not n:
            return at
        self._machine.add_peer_demand(stream, n)
        return at + LENGTH_SIZE + _REQUEST_N_SIZE

    # -- out ---------------------------------------------------------------------------------------
    def request_response(self, payload: PayloadTuple) -> int:
        """Open a stream for one element; its id."""
        output, machine, by_id = self._output, self._machine, self._by_id
        data, metadata = payload
        size = len(data) + (HEADER if metadata is None else HEADER + 3 + len(metadata))
        # Streams begin in the order of their ids: no request precedes others that are queued.
        if (
            size > self._small_frame
            or output.queued_bytes >= COALESCE_LIMIT
            or output.rotation.ready
            or machine.close_reason
            or machine.received_lease is not None
            or len(by_id) >= self._max_requests
        ):
            return machine.open_local(_RESPONSE, payload, 1)
        streams = self._open
        stream_id = streams.next  # as `next_id` does, nearly always without its call
        if stream_id <= streams.last_id - STREAM_ID_STEP and stream_id not in by_id:
            streams.next = stream_id + STREAM_ID_STEP
        else:
            stream_id = streams.next_id()
        by_id[stream_id] = EXPECTED
        if metadata is None:
            frame = small_header(size, stream_id, _REQUEST_BITS) + data
        else:
            head = _REQUEST_HEAD(size, stream_id, _REQUEST_BITS_WITH_METADATA, len(metadata))
            frame = head + metadata + data
        output.requests[stream_id] = frame
        output.queued_bytes += size + LENGTH_SIZE
        return stream_id

    def respond_all(self, responses: list[tuple[int, bytes]]) -> int:
        """Send the one element of each stream; how many of these were not cancelled."""
        by_id, output, small = self._by_id, self._output, self._small_frame
        queued, accepted = output.responses, 0
        for stream_id, data in responses:
            size = len(data) + HEADER
            is_plain = by_id.get(stream_id) is OWED and size <= small
            if is_plain and output.queued_bytes < COALESCE_LIMIT:
                by_id[stream_id] = QUEUED
                queued[stream_id] = small_header(size, stream_id, LAST_BITS) + data
                output.queued_bytes += size + LENGTH_SIZE
                accepted += 1
            else:
                accepted += self._machine.send(stream_id, (data, None))
        return accepted

    def send_all(self, stream_id: int, elements: list[bytes]) -> bool:
        """Send elements without metadata; False if the peer no longer receives."""
        machine = self._machine
        stream = self._open.get(stream_id)
        if stream is None or not machine.may_send(stream, len(elements)):
            return False
        sizes = list(map(len, elements))
        largest = HEADER + max(sizes, default=0)
        if largest > self._small_frame or stream.model is _RESPONSE:
            return all(machine.send(stream_id, (each, None)) for each in elements)
        stream.outbound_credit -= len(elements)
        total = sum(sizes) + _HEAD_SIZE * len(sizes)
        heads = {size: small_header(size + HEADER, stream_id, ELEMENT_BITS) for size in set(sizes)}
        if len(heads) == 1 and total <= self._small_frame and self._output.resume_buffer is None:
            (head,) = heads.values()
            frames = [head + head.join(elements)]  # as one piece, made in one call
        else:
            frames = [heads[size] + data for size, data in zip(sizes, elements, strict=True)]
        self._output.put_all(stream, frames, total)
        machine.account_for_sent(stream, largest)
        return True


def _run(data: bytes, at: int, head: bytes, size: int, count: int, elements: list[bytes]) -> int:
    """Add the elements from *at* on to *elements*, at most *count*, while they begin with *head*.

    Returns how many there are. They are as long as the one before, so that one `Struct` reads all.
    """
    layout = _UNIFORM.get(size)
    if layout is None:
        if len(_UNIFORM) >= _MAX_LAYOUTS:
            _UNIFORM.clear()
        layout = _UNIFORM[size] = Struct(f"{_HEAD_SIZE}s{size - _HEAD_SIZE}s")
    before = len(elements)
    for found, element in layout.iter_unpack(memoryview(data)[at : at + size * count]):
        if found != head:
            break
        elements.append(element)
    return len(elements) - before
