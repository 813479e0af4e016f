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

The streams it opens are of two classes, `ExpectedResponse` and `OwedResponse`, whose attributes are
those of their class until the machine changes them: a request makes one small object on each side.
The application's layer keeps the batches together. A `StreamRegistry` completes all futures of
`Responses`, a responder calls the direct handlers of all `ResponseRequests`, and an
`OutboundStream` sends together what its publisher produced in one turn. A driver writes a request
that is alone at once, and others in a turn.

What the fast path does is what the machine would do, with fewer steps; tests compare both.
"""

from struct import Struct
from typing import Final

from .codec import COMPLETE, ELEMENT_BITS, HEADER, LAST_BITS, LENGTH_SIZE, METADATA, small_header
from .events import ResponseRequests, Responses
from .frames import MAX_31, PayloadTuple
from .outbound_queue import COALESCE_LIMIT
from .stream_machine import TOP_UP_LEVEL, StreamMachine
from .stream_states import InteractionModel, State
from .streams import STREAM_ID_STEP, ExpectedResponse, OwedResponse, Stream

# Looking up a member of an enum takes five times as long as looking up a global.
_RESPONSE: Final = InteractionModel.RESPONSE
_FLUSHING: Final = State.FLUSHING

_HEAD: Final = Struct(">BHIH").unpack_from
"""Length (of three bytes), stream id, type and flags."""
_HEAD_SIZE: Final = LENGTH_SIZE + HEADER
_REQUEST_BITS: Final = _RESPONSE << 10
_REQUEST_BITS_WITH_METADATA: Final = _REQUEST_BITS | METADATA
_REQUEST_HEAD: Final = Struct(">xHIHxH").pack
"""`small_header`, and the length of the metadata."""
_new: Final = object.__new__  # ExpectedResponse(id) takes half as long again


class FastPath:
    """The fast path of one connection, in both directions."""

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
            if bits in (_REQUEST_BITS, _REQUEST_BITS_WITH_METADATA):
                at = self._read_requests(data, at)
            elif (bits | COMPLETE) == LAST_BITS:
                stream = self._by_id.get(stream_id)
                if stream is None or not stream.inbound_credit or stream.reassembly is not None:
                    break
                if type(stream) is ExpectedResponse:
                    at = self._read_responses(data, at)
                elif bits == ELEMENT_BITS and stream.model is not _RESPONSE:
                    at = self._read_elements(data, at, stream)
            if at == begin:
                break
        return at

    def _read_elements(self, data: bytes, at: int, stream: Stream) -> int:
        """Read elements of *stream*, at least one."""
        end, stream_id, machine = len(data), stream.id, self._machine
        append = machine.elements_event(stream_id).data.append
        before = credit = stream.inbound_credit
        while credit and at + _HEAD_SIZE <= end:
            high, low, other_id, bits = _HEAD(data, at)
            stop = at + 3 + (high << 16 | low)
            if bits != ELEMENT_BITS or other_id != stream_id or not at + _HEAD_SIZE <= stop <= end:
                break
            append(data[at + _HEAD_SIZE : stop])
            at = stop
            credit -= 1
        stream.inbound_credit = credit
        machine.flood_guard.useful(before - credit)
        if stream.unsent_demand and credit < TOP_UP_LEVEL:
            machine.schedule_request(stream)
        return at

    def _read_responses(self, data: bytes, at: int) -> int:
        """Read responses, each of which ends its stream."""
        end, by_id, output = len(data), self._by_id, self._output
        responses: list[tuple[int, bytes]] = []
        while at + _HEAD_SIZE <= end:
            high, low, stream_id, bits = _HEAD(data, at)
            stop = at + 3 + (high << 16 | low)
            if (bits | COMPLETE) != LAST_BITS or not at + _HEAD_SIZE <= stop <= end:
                break
            stream = by_id.get(stream_id)
            if type(stream) is not ExpectedResponse or stream.reassembly is not None:
                break
            if stream_id in output.requests:  # a response before its request
                output.clear(stream)
            del by_id[stream_id]
            responses.append((stream_id, data[at + _HEAD_SIZE : stop]))
            at = stop
        self._machine.events.append(Responses(responses))
        self._machine.flood_guard.useful(len(responses))
        return at

    def _read_requests(self, data: bytes, at: int) -> int:
        """Read requests for one element."""
        end, streams, by_id = len(data), self._open, self._by_id
        requests: list[tuple[int, bytes, bytes | None]] = []
        room = self._machine.room()
        highest = streams.highest_remote_id
        while room and at + _HEAD_SIZE <= end:
            high, low, stream_id, bits = _HEAD(data, at)
            begin, stop = at + _HEAD_SIZE, at + 3 + (high << 16 | low)
            metadata = None
            if bits == _REQUEST_BITS_WITH_METADATA:
                size = int.from_bytes(data[begin : begin + 3], "big")
                metadata = data[begin + 3 : begin + 3 + size]
                begin += 3 + size
            elif bits != _REQUEST_BITS:
                break
            # An id that was used before is not one of a correct peer, unless ids begin again.
            if stream_id <= highest or stream_id in by_id or streams.is_local_id(stream_id):
                break
            if stream_id > MAX_31:
                break
            if not begin <= stop <= end:
                break
            by_id[stream_id] = OwedResponse(stream_id)
            highest = stream_id
            requests.append((stream_id, data[begin:stop], metadata))
            at = stop
            room -= 1
        if requests:
            streams.remote_count += len(requests)
            streams.highest_remote_id = highest
            self._machine.events.append(ResponseRequests(requests))
        return at

    # -- out ---------------------------------------------------------------------------------------
    def request_response(self, payload: PayloadTuple) -> int:
        """Open a stream for one element; its id."""
        output, machine = self._output, self._machine
        data, metadata = payload
        size = len(data) + (HEADER if metadata is None else HEADER + 3 + len(metadata))
        # Streams begin in the order of their ids: no request precedes others that are queued.
        is_busy = output.queued_bytes >= COALESCE_LIMIT or output.rotation.ready
        is_restricted = (
            machine.close_reason
            or machine.received_lease is not None
            or len(self._by_id) >= self._max_requests
        )
        if size > self._small_frame or is_busy or is_restricted:
            return machine.open_local(_RESPONSE, payload, 1)
        streams, by_id = self._open, self._by_id
        stream_id = streams.next  # as `next_id` does, nearly always without its call
        if stream_id <= streams.last_id - STREAM_ID_STEP and stream_id not in by_id:
            streams.next = stream_id + STREAM_ID_STEP
        else:
            stream_id = streams.next_id()
        by_id[stream_id] = stream = _new(ExpectedResponse)
        stream.id = stream_id
        if metadata is None:
            frame = small_header(size, stream_id, _REQUEST_BITS) + data
        else:
            head = _REQUEST_HEAD(size, stream_id, _REQUEST_BITS_WITH_METADATA, len(metadata))
            frame = head + metadata + data
        output.requests[stream_id] = frame
        output.queued_bytes += len(frame)
        return stream_id

    def respond(self, stream_id: int, data: bytes) -> bool:
        """Send the one element of a response; False if the peer no longer receives."""
        stream = self._by_id.get(stream_id)
        output = self._output
        size = len(data) + HEADER
        is_busy = size > self._small_frame or output.queued_bytes >= COALESCE_LIMIT
        is_plain = type(stream) is OwedResponse and stream.outbound_credit
        if is_busy or stream is None or not is_plain:
            return self._machine.send(stream_id, (data, None))
        stream.outbound_credit = 0
        stream.state = _FLUSHING
        output.responses[stream_id] = small_header(size, stream_id, LAST_BITS) + data
        output.queued_bytes += size + LENGTH_SIZE
        return True

    def send_all(self, stream_id: int, elements: list[bytes]) -> bool:
        """Send elements without metadata; False if the peer no longer receives."""
        machine = self._machine
        stream = self._by_id.get(stream_id)
        if stream is None or not machine.may_send(stream, len(elements)):
            return False
        sizes = list(map(len, elements))
        largest = HEADER + max(sizes, default=0)
        if largest > self._small_frame or stream.model is _RESPONSE:
            return all(machine.send(stream_id, (each, None)) for each in elements)
        stream.outbound_credit -= len(elements)
        frames = [
            small_header(size + HEADER, stream_id, ELEMENT_BITS) + data
            for size, data in zip(sizes, elements, strict=True)
        ]
        self._output.put_all(stream, frames, sum(sizes) + _HEAD_SIZE * len(sizes))
        machine.account_for_sent(stream, largest)
        return True
