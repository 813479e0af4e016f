"""The streams of one connection: frames of the peer and commands of this side, by the table.

`stream_states.TABLE` decides; this acts: it accounts for demand and fragments, queues frames and
adds events. Nothing here reads a clock or calls the application.

Demand is counted once in each direction. What the application requests becomes one REQUEST_N for
each stream when output is taken. What the peer requests is passed on by `DemandGrants`.

Three commands take a shorter way where nothing has to be decided: a request for one element that
is a single frame, the response to such a request, and elements of one turn. They queue what the
others would queue, with fewer steps, while little is queued; with the runs of `runs`, without which
an element of a stream costs its receiver nine times as much, and a request with its response four
times (`benchmarks.rsocket.stream`, `benchmarks.rsocket.requests`).
"""

from struct import Struct
from typing import Final

from ..._core.demand import UNBOUNDED, require_demand
from ...errors import RuleViolation
from .codec import (
    COMPLETE,
    ELEMENT_BITS,
    HEADER,
    LAST_BITS,
    LENGTH_SIZE,
    METADATA,
    add_length,
    encode,
    encode_payload,
    small_header,
)
from .demand_grants import DemandGrants
from .errors import NoLease, ProtocolError, TooManyRequests, error_of
from .events import (
    Cancelled,
    Completed,
    Elements,
    Event,
    Failed,
    RequestReceived,
    ResponseRequests,
)
from .flood import FloodGuard
from .fragmentation import Reassemblies, Reassembly, TooMuch, fragments
from .frames import (
    EMPTY_PAYLOAD,
    MAX_31,
    Cancel,
    Error,
    ErrorCode,
    FrameType,
    Lease,
    Payload,
    PayloadFrame,
    PayloadTuple,
    RequestChannel,
    RequestFnf,
    RequestFrame,
    RequestN,
    RequestResponse,
    RequestStream,
)
from .limits import Allowance, Limits
from .outbound_queue import COALESCE_LIMIT, OutboundQueue
from .stream_states import (
    RECEIVING_STATES,
    RESPONDER_STATES,
    SENDING_STATES,
    TABLE,
    Action,
    Input,
    InteractionModel,
    State,
)
from .streams import (
    EXPECTED,
    OWED,
    QUEUED,
    STREAM_ID_STEP,
    RemoteStream,
    Stream,
    Streams,
)

TOP_UP_LEVEL: Final = MAX_31 // 2
"""Demand beyond 31 bits is topped up when no more credit than this is left."""

# Looking up a member of an enum takes five times as long as looking up a global.
_RESPONSE: Final = InteractionModel.RESPONSE
_STREAM: Final = InteractionModel.STREAM
_CHANNEL: Final = InteractionModel.CHANNEL
_FNF: Final = InteractionModel.FNF
_NEXT: Final = Input.NEXT
_LAST: Final = Input.LAST
_SEND_COMPLETE: Final = Input.SEND_COMPLETE
_IGNORE: Final = Action.IGNORE
_FINISH: Final = Action.FINISH
_REASSEMBLY: Final = State.RESPONDER_REASSEMBLY
_FLUSHING: Final = State.FLUSHING
_CLOSED: Final = State.CLOSED

_REQUESTER_STATES: Final = {
    _RESPONSE: State.REQUESTER_RESPONSE,
    _FNF: _FLUSHING,
    _STREAM: State.REQUESTER_STREAM,
    _CHANNEL: State.REQUESTER_CHANNEL,
}
_MODELS: Final[dict[type[RequestFrame], InteractionModel]] = {
    RequestResponse: _RESPONSE,
    RequestFnf: _FNF,
    RequestStream: _STREAM,
    RequestChannel: _CHANNEL,
}
_COMPLETE_BITS: Final = FrameType.PAYLOAD << 10 | COMPLETE
REQUEST_BITS: Final = _RESPONSE << 10
REQUEST_BITS_WITH_METADATA: Final = REQUEST_BITS | METADATA
_REQUEST_HEAD: Final = Struct(">xHIHxH").pack
"""`small_header`, and the length of the metadata."""
_CHANNEL_CANCELLED: Final = b"the requester cancelled the channel"


class StreamMachine:
    """All streams of one connection: their states, their demand, their output and their events.

    Streams are opened by this side and by the peer, within leases and limits.
    """

    # What few connections ever set is an attribute of the class: an instance with more than thirty
    # of its own takes longer to look up each.
    close_reason: str = ""
    """Why no stream may be opened any more; empty while streams may be."""
    received_lease: Allowance | None = None
    """The lease for requests of this side, if they need one."""
    granted_lease: Allowance | None = None
    """The lease for requests of the peer, if they need one."""

    def __init__(self, limits: Limits, *, client: bool) -> None:
        self.limits: Limits = limits
        self.origin: object = object()
        """Stands for this connection, in errors that were received by it or tell of its end."""
        self.now: float = 0.0
        self.events: list[Event] = []
        self.streams: Streams = Streams(client=client)
        self.output: OutboundQueue = OutboundQueue(limits)
        self.reassemblies: Reassemblies = Reassemblies(limits)
        self.flood: FloodGuard = FloodGuard(limits, self.streams)
        self.small_frame: int = min(limits.mtu, 0xFFFF)
        """The size up to which a frame needs neither fragments nor more than `small_header`."""
        self.initial_mean_size: int = max(limits.watermark // 8, 1)
        self._low_credit = limits.chunk >> 2
        self.requesting: list[Stream] = []
        """Streams with demand of the application that has not been sent."""
        self.grants: DemandGrants = DemandGrants(limits, self.output)
        """The demand of the peer that has not been passed on."""

    # -- requests of this side ---------------------------------------------------------------------
    def require_leases(self) -> None:
        """Begin without a lease on either side: from now on requests need one."""
        self.received_lease, self.granted_lease = Allowance(), Allowance()

    def grant_lease(self, requests: int, ttl: int, metadata: bytes | None = None) -> None:
        """Allow the peer *requests* requests within *ttl* milliseconds; this replaces the last."""
        if self.granted_lease is None:
            raise ValueError("SETUP did not request leases")
        self.granted_lease.grant(requests, ttl / 1000, self.now)
        self.output.put_control(encode(Lease(ttl, requests, metadata)))

    def require_room(self, payload: PayloadTuple | None = None) -> None:
        """Raise `MustWait` if no request, or none with *payload*, may be sent now."""
        limits = self.limits
        if self.streams.local_count >= limits.max_requests:
            raise TooManyRequests(f"{limits.max_requests} requests are open")
        size = 0 if payload is None else _size(payload)
        if size > limits.mtu and not self.output.rotation.may_start(size):
            raise TooManyRequests("as many payloads are being sent as max_started allows")
        lease, now = self.received_lease, self.now
        if lease is not None and (lease.requests < 1 or now >= lease.expires):
            raise NoLease("no lease for another request: wait for the peer to grant one")

    def request_response(self, payload: PayloadTuple) -> int:
        """Request one element. All requests return the id of their stream."""
        output, streams = self.output, self.streams
        data, metadata = payload
        size = len(data) + (HEADER if metadata is None else HEADER + 3 + len(metadata))
        # Streams begin in the order of their ids: no request precedes others that are queued.
        if (
            size > self.small_frame
            or output.queued_bytes >= COALESCE_LIMIT
            or output.rotation.ready
            or self.close_reason
            or self.received_lease is not None
            or len(streams.by_id) >= self.limits.max_requests
        ):
            return self._open_local(_RESPONSE, payload, 1)
        stream_id = streams.next  # as `next_id` does, nearly always without its call
        if stream_id <= streams.last_id - STREAM_ID_STEP and stream_id not in streams.by_id:
            streams.next = stream_id + STREAM_ID_STEP
        else:
            stream_id = streams.next_id()
        streams.by_id[stream_id] = EXPECTED
        if metadata is None:
            frame = small_header(size, stream_id, REQUEST_BITS) + data
        else:
            head = _REQUEST_HEAD(size, stream_id, REQUEST_BITS_WITH_METADATA, len(metadata))
            frame = head + metadata + data
        output.requests[stream_id] = frame
        output.queued_bytes += size + LENGTH_SIZE
        return stream_id

    def fire_and_forget(self, payload: PayloadTuple) -> int:
        return self._open_local(_FNF, payload, 1)

    def request_stream(self, payload: PayloadTuple, n: int) -> int:
        """Request a stream, and its first *n* elements."""
        return self._open_local(_STREAM, payload, require_demand(n))

    def request_channel(self, payload: PayloadTuple, n: int, *, complete: bool = False) -> int:
        """Open a channel with its first element, and request *n*."""
        return self._open_local(_CHANNEL, payload, require_demand(n), complete=complete)

    def _open_local(
        self, model: InteractionModel, payload: PayloadTuple, n: int, *, complete: bool = False
    ) -> int:
        """Open a stream of this side; its id."""
        if self.close_reason:
            reason = self.close_reason.encode()
            raise error_of(ErrorCode.CONNECTION_CLOSE, reason, self.origin)
        self.require_room(payload)
        if self.received_lease is not None:
            self.received_lease.take(self.now)
        stream_id = self.streams.next_id()
        state = State.REQUESTER_CHANNEL_IN if complete else _REQUESTER_STATES[model]
        stream = Stream(stream_id, model, state, self.initial_mean_size)
        self.streams.add(stream)
        stream.inbound_credit = 1 if model is _RESPONSE else min(n, MAX_31)
        has_demand = model is _STREAM or model is _CHANNEL
        bits = model << 10 | (COMPLETE if complete else 0)
        self._put_payload(stream, bits, payload, stream.inbound_credit if has_demand else 0)
        if n > MAX_31:
            self.request(stream_id, n if n == UNBOUNDED else n - MAX_31)
        return stream_id

    # -- commands of this side ---------------------------------------------------------------------
    def request(self, stream_id: int, n: int) -> None:
        """Request *n* more elements. Requests add up until output is taken."""
        require_demand(n)
        stream = self.streams.get(stream_id)
        if stream is None or stream.state not in RECEIVING_STATES or stream.model is _RESPONSE:
            return
        if stream.first_element is not None:
            first, stream.first_element = stream.first_element, None
            if stream.is_first_last:
                self._finish(stream, _LAST, first)
                return
            self.elements_event(stream_id).add(first)
            n -= 1
        stream.unsent_demand.add(n)
        self.schedule_request(stream)

    def send(self, stream_id: int, payload: PayloadTuple, *, complete: bool = False) -> bool:
        """Send an element that was requested, or a response; False if the peer cancelled."""
        stream = self.streams.get(stream_id)
        if stream is None or not self._may_send(stream, 1):
            return False
        stream.outbound_credit -= 1
        bits = LAST_BITS if complete or stream.model is _RESPONSE else ELEMENT_BITS
        data, metadata = payload
        size = len(data) + HEADER
        if metadata is not None or size > self.small_frame:
            size = self._put_payload(stream, bits, payload)
        else:
            self.output.put(stream, small_header(size, stream_id, bits) + data)
        if stream.model is _RESPONSE:  # no demand to account for: the response was the last
            stream.state = TABLE[stream.state, _SEND_COMPLETE].state
        elif bits == LAST_BITS:
            self.flood.useless.useful()
            self._move(stream, _SEND_COMPLETE)
        else:
            self._account_for_sent(stream, size)
        return True

    def respond_all(self, responses: list[tuple[int, bytes]]) -> int:
        """Send the one element of each stream; how many of these were not cancelled."""
        by_id, output, small = self.streams.by_id, self.output, self.small_frame
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
                accepted += self.send(stream_id, (data, None))
        return accepted

    def send_all(self, stream_id: int, elements: list[bytes]) -> bool:
        """Send elements of a stream or a channel; False if the peer no longer receives."""
        stream = self.streams.get(stream_id)
        if stream is None or not self._may_send(stream, len(elements)):
            return False
        sizes = list(map(len, elements))
        largest = HEADER + max(sizes, default=0)
        if largest > self.small_frame:
            return all(self.send(stream_id, (each, None)) for each in elements)
        stream.outbound_credit -= len(elements)
        total = sum(sizes) + (LENGTH_SIZE + HEADER) * len(sizes)
        heads = {size: small_header(size + HEADER, stream_id, ELEMENT_BITS) for size in set(sizes)}
        if len(heads) == 1 and total <= self.small_frame and self.output.resume_buffer is None:
            (head,) = heads.values()
            frames = [head + head.join(elements)]  # as one piece, made in one call
        else:
            frames = [heads[size] + data for size, data in zip(sizes, elements, strict=True)]
        self.output.put_all(stream, frames, total)
        self._account_for_sent(stream, largest)
        return True

    def _may_send(self, stream: Stream, count: int) -> bool:
        """Whether the peer still receives; raises if it has not requested *count* elements."""
        if stream.outbound_credit >= count:
            return True
        if stream.state not in SENDING_STATES:
            return False
        raise RuleViolation("1.1", f"an element on {stream!r} that was not requested")

    def _account_for_sent(self, stream: Stream, size: int) -> None:
        """Elements of up to *size* bytes have been queued: more demand may be passed on."""
        stream.is_measured = True
        if size > stream.mean_size:
            stream.mean_size = size
        if stream.outbound_credit <= self._low_credit and stream.peer_demand:
            self.grants.schedule(stream)

    def complete(self, stream_id: int) -> bool:
        """Complete what is sent on a stream; False if the peer no longer receives."""
        stream = self.streams.get(stream_id)
        if stream is None or TABLE[stream.state, _SEND_COMPLETE].action is _IGNORE:
            return False
        self._put_payload(stream, _COMPLETE_BITS, EMPTY_PAYLOAD)
        self._move(stream, _SEND_COMPLETE)
        return True

    def fail_stream(self, stream_id: int, code: int, data: bytes = b"") -> bool:
        """End a stream with an error, after the elements already sent."""
        stream = self.streams.get(stream_id)
        if stream is None or TABLE[stream.state, Input.SEND_ERROR].action is _IGNORE:
            return False
        is_receiving = stream.state in RECEIVING_STATES
        self.flood.expect(stream.inbound_credit + is_receiving)
        self.output.put(stream, add_length(encode(self._error(stream_id, code, data))))
        self._move(stream, Input.SEND_ERROR)
        if is_receiving:
            self.events.append(Failed(stream_id, code, data, local=True))
        return True

    def cancel(self, stream_id: int) -> bool:
        """Cancel what is received; False if that has ended.

        A requester ends the whole stream by it, output included; on a channel, a responder stops
        what it receives.
        """
        stream = self.streams.get(stream_id)
        if stream is None or TABLE[stream.state, Input.SEND_CANCEL].action is _IGNORE:
            return False
        stops_sending = stream.is_local and stream.state in SENDING_STATES
        self.flood.expect(stream.inbound_credit + 2)
        if stream.is_started and stream_id not in self.output.requests:
            self.output.put_signal(encode(Cancel(stream_id)))
        self._move(stream, Input.SEND_CANCEL)
        if stops_sending:
            self.events.append(Cancelled(stream_id))
        return True

    # -- requests of the peer ----------------------------------------------------------------------
    def on_request(self, frame: RequestFrame) -> None:
        """Open a stream of the peer, or refuse it."""
        model, stream_id = _MODELS[type(frame)], frame.stream_id
        if stream_id == 0:
            raise ProtocolError("a request on stream 0")
        if stream_id in self.streams.by_id:
            self.count_useless()
            return
        code, reason = self._refusal(frame)
        is_rejected = code == ErrorCode.REJECTED
        if (reason and not is_rejected) or not self.streams.use_remote_id(stream_id):
            self.count_useless()
        if reason:
            if model is not _FNF:  # it has no answer
                self._refuse_request(stream_id, code, reason.encode())
            return
        stream = RemoteStream(stream_id, model, _REASSEMBLY, self.initial_mean_size)
        self.streams.add(stream)
        if isinstance(frame, RequestStream | RequestChannel):
            stream.peer_demand.add(frame.n)
        complete = isinstance(frame, RequestChannel) and frame.complete
        if not frame.follows:
            self._open_remote(stream, frame.payload, complete)
        elif (reassembly := self._add_fragment(stream, frame.payload, True)) is not None:
            reassembly.complete = complete

    def room(self) -> int:
        """How many requests of the peer may be accepted without looking at each."""
        if self.close_reason or self.granted_lease is not None:
            return 0
        return self.limits.max_streams - self.streams.remote_count

    def _refusal(self, frame: RequestFrame) -> tuple[ErrorCode, str]:
        """Why a request is refused; an empty text if it is not."""
        if self.streams.is_local_id(frame.stream_id):
            return ErrorCode.INVALID, f"stream id {frame.stream_id} is not of your side"
        if isinstance(frame, RequestStream | RequestChannel) and not frame.n:
            return ErrorCode.INVALID, "an initial request for 0 elements"
        # A request without a response may have been sent before its sender knew: it is served.
        if self.close_reason and not isinstance(frame, RequestFnf):
            return ErrorCode.REJECTED, self.close_reason
        if self.streams.remote_count >= self.limits.max_streams:
            return ErrorCode.REJECTED, f"{self.limits.max_streams} streams are open"
        if self.granted_lease is not None and not self.granted_lease.take(self.now):
            return ErrorCode.REJECTED, "no lease"
        return ErrorCode.REJECTED, ""

    def _refuse_request(self, stream_id: int, code: int, reason: bytes) -> None:
        """Answer a request that is not served."""
        self.output.put_signal(encode(self._error(stream_id, code, reason)))

    def _open_remote(self, stream: Stream, payload: Payload, complete: bool) -> None:
        """A request of the peer is whole: pass it to the application."""
        model = stream.model
        complete = complete and model is _CHANNEL
        stream.state = RESPONDER_STATES[model]
        if model is _FNF:
            self._close_stream(stream)
        if model is _RESPONSE:
            stream.outbound_credit = 1
            self.events.append(ResponseRequests([(stream.id, payload[0], payload[1])]))
            return
        self.events.append(RequestReceived(stream.id, model, payload, complete))
        if model is _CHANNEL:
            stream.first_element = payload
            stream.is_first_last = complete
        self.grants.schedule(stream)

    # -- frames of the peer ------------------------------------------------------------------------
    def on_payload(self, frame: PayloadFrame) -> None:
        stream = self.streams.get(frame.stream_id)
        if stream is None or TABLE[stream.state, _NEXT].action is _IGNORE:
            self.flood.count_late_payload(frame, self.now)
            return
        payload, has_element, complete = frame.payload, frame.next, frame.complete
        is_payload = has_element or frame.follows
        if is_payload and not stream.inbound_credit and stream.reassembly is None:
            self._refuse(stream, b"more elements than were requested")
            return
        if frame.follows or stream.reassembly is not None:
            whole = self._reassemble(stream, frame)
            if whole is None:
                return
            payload, has_element, complete = whole
            if stream.state is _REASSEMBLY:
                self._open_remote(stream, payload, complete)
                return
        if not (has_element or complete):
            self.count_useless()
        elif stream.first_element is not None and not has_element:
            stream.is_first_last = True  # it is delivered once the first element is requested
        elif not has_element:
            self._finish(stream, Input.COMPLETE, None)
        elif complete or TABLE[stream.state, _NEXT].action is _FINISH:
            self._finish(stream, _LAST, payload)
        else:
            self._deliver(stream, payload)

    def _add_fragment(self, stream: Stream, payload: Payload, follows: bool) -> Reassembly | None:
        """Add a fragment; None if it exceeds a limit, and the stream has been refused."""
        reassembly = stream.reassembly
        if reassembly is None:
            reassembly = stream.reassembly = self.reassemblies.begin(stream.id, self.now)
        try:
            self.reassemblies.add(reassembly, payload, follows, self.now)
        except ProtocolError as error:
            self._refuse(stream, str(error).encode())
            if not isinstance(error, TooMuch):
                self.flood.count_oversized(error)
            return None
        return reassembly

    def refuse_overdue(self) -> None:
        """Refuse the streams of payloads whose fragments do not come."""
        for stream_id in self.reassemblies.overdue(self.now):
            stream = self.streams.get(stream_id)
            assert stream is not None
            self._refuse(stream, b"the rest of a payload did not come in time")

    def _reassemble(self, stream: Stream, frame: PayloadFrame) -> tuple[Payload, bool, bool] | None:
        """The whole payload, whether it is an element, and whether it is the last one."""
        reassembly = self._add_fragment(stream, frame.payload, frame.follows)
        if reassembly is None:
            return None
        reassembly.next |= frame.next
        reassembly.complete |= frame.complete
        if frame.follows:
            return None
        self._end_reassembly(stream)
        return reassembly.whole(), reassembly.next, reassembly.complete

    def _deliver(self, stream: Stream, payload: Payload) -> None:
        stream.inbound_credit -= 1
        self.flood.useless.useful()
        self.elements_event(stream.id).add(payload)
        if stream.unsent_demand and stream.inbound_credit < TOP_UP_LEVEL:
            self.schedule_request(stream)

    def elements_event(self, stream_id: int) -> Elements:
        """The event for the next elements of a stream: the last one if it is of that stream."""
        events = self.events
        if events:
            last = events[-1]
            if type(last) is Elements and last.stream_id == stream_id and not last.complete:
                return last
        event = Elements(stream_id, [])
        events.append(event)
        return event

    def _finish(self, stream: Stream, input_: Input, payload: Payload | None) -> None:
        self.flood.useless.useful()
        if payload is None:
            self.events.append(Completed(stream.id))
        else:
            elements = self.elements_event(stream.id)
            elements.add(payload)
            elements.complete = True
        self._move(stream, input_)

    def on_request_n(self, frame: RequestN) -> None:
        if not frame.n:
            self.flood.count_zero_request(self.now)
            return
        stream = self.streams.get(frame.stream_id)
        if stream is None or not self._move(stream, Input.REQUEST_N):
            self.flood.count_late(frame.stream_id, self.now)
            return
        stream.peer_demand.add(frame.n)
        if stream.outbound_credit <= self._low_credit and stream.state in SENDING_STATES:
            self.grants.schedule(stream)

    def on_cancel(self, frame: Cancel) -> None:
        self._end_by_peer(frame.stream_id, Input.CANCEL, ErrorCode.CANCELED, _CHANNEL_CANCELLED)

    def on_error(self, frame: Error) -> None:
        self._end_by_peer(frame.stream_id, Input.ERROR, frame.code, frame.data)

    def _end_by_peer(self, stream_id: int, input_: Input, code: int, data: bytes) -> None:
        """End the stream, or one direction of it."""
        stream = self.streams.get(stream_id)
        if stream is None:
            self.flood.count_late(stream_id, self.now)
            return
        self.flood.count_end(stream, self.now)
        action = self._move(stream, input_)
        ended: list[Failed | Cancelled] = []
        if action in (Action.FAIL_RECEIVING, Action.ABORT):
            ended.append(Failed(stream.id, code, data))
        if action in (Action.STOP_SENDING, Action.ABORT):
            self.output.clear(stream)
            ended.append(Cancelled(stream.id))
        # A handler whose channel is cancelled has not failed with its incoming elements.
        self.events += reversed(ended) if input_ is Input.CANCEL else ended
        if action is _IGNORE:
            self.flood.count_late(stream_id, self.now)

    def _refuse(self, stream: Stream, reason: bytes) -> None:
        """End a stream on which the peer broke a rule, and report that to both sides."""
        is_receiving = stream.state in RECEIVING_STATES
        is_sending = stream.state in SENDING_STATES
        self.flood.expect(stream.inbound_credit + 1)
        action = self._move(stream, Input.VIOLATION)
        if action is Action.REFUSE_ERROR:
            self._refuse_request(stream.id, ErrorCode.INVALID, reason)
        else:
            self.flood.expect(1024)
            self.output.put_signal(encode(Cancel(stream.id)))
        if is_receiving:
            self.events.append(Failed(stream.id, ErrorCode.INVALID, reason, local=True))
        if is_sending:
            self.events.append(Cancelled(stream.id))

    def count_useless(self) -> None:
        """Count a frame that no correct peer sends; `ProtocolError` if there are too many."""
        self.flood.count_useless(self.now)

    # -- demand ------------------------------------------------------------------------------------
    def schedule_request(self, stream: Stream) -> None:
        """Send a REQUEST_N for the stream when output is next taken."""
        if not stream.is_requesting and stream.unsent_demand:
            stream.is_requesting = True
            self.requesting.append(stream)

    def _send_demand(self) -> None:
        """Queue the demand of the application: one REQUEST_N for each stream."""
        requesting, self.requesting = self.requesting, []
        for stream in requesting:
            stream.is_requesting = False
            demand, credit = stream.unsent_demand, stream.inbound_credit
            if not demand or stream.state is _CLOSED:
                continue
            if not stream.is_started:  # not before its request
                self.schedule_request(stream)
            elif credit + demand.outstanding <= MAX_31 or credit < TOP_UP_LEVEL:
                n = demand.take(MAX_31 - credit)
                stream.inbound_credit += n
                self.output.put_demand(stream.id, n)

    # -- output ------------------------------------------------------------------------------------
    def _put_payload(self, stream: Stream, bits: int, payload: PayloadTuple, n: int = 0) -> int:
        """Queue a request or an element, in fragments if it is large; its approximate size.

        *bits* are the type and the flags of its frame.
        """
        size = _size(payload)
        if size <= self.limits.mtu:
            self.output.put(stream, encode_payload(stream.id, bits, payload, n))
        else:
            frames = fragments(stream.id, bits, payload, n, self.limits.mtu)
            self.output.put_fragments(stream, frames, size)
        return size

    def _error(self, stream_id: int, code: int, data: bytes) -> Error:
        return Error(stream_id, code, data[: self.limits.mtu - HEADER - 4])

    def take_output(self, at_most: int) -> list[bytes]:
        """Take frames to be sent: all of them, or a little more than *at_most* bytes."""
        if self.requesting:
            self._send_demand()
        flushed: list[Stream] = []
        responded: list[int] = []
        frames = self.output.take(at_most, flushed, responded)
        ended = len(responded)
        if responded:
            by_id = self.streams.by_id
            for stream_id in responded:
                del by_id[stream_id]
            self.streams.remote_count -= ended
        for stream in flushed:
            if stream.state is _FLUSHING:
                self._close_stream(stream)
                ended += not stream.is_local
        if ended and self.flood.useless.level:
            self.flood.useless.useful(ended)
        return frames

    # -- states ------------------------------------------------------------------------------------
    def _move(self, stream: Stream, input_: Input) -> Action:
        state, action = TABLE[stream.state, input_]
        if state is not stream.state:
            if state is _CLOSED:
                self._close_stream(stream)
            else:
                stream.state = state
                self._settle(stream)
        return action

    def _settle(self, stream: Stream) -> None:
        """Drop what does not count in the stream's new state."""
        state = stream.state
        if state is _FLUSHING and not stream.frames:
            self._close_stream(stream)
            return
        if state not in RECEIVING_STATES and state is not _REASSEMBLY:
            stream.inbound_credit = stream.unsent_demand.outstanding = 0
            stream.first_element = None
            self._end_reassembly(stream)
        if state not in SENDING_STATES:
            stream.outbound_credit = stream.peer_demand.outstanding = 0

    def _close_stream(self, stream: Stream) -> None:
        stream.state = _CLOSED
        if stream.reassembly is not None:
            self._end_reassembly(stream)
        output = self.output
        if stream.frames or output.requests or output.responses:
            output.clear(stream)
        self.streams.remove(stream)

    def _end_reassembly(self, stream: Stream) -> None:
        if stream.reassembly is not None:
            self.reassemblies.end(stream.reassembly)
            stream.reassembly = None

    def end_all(self, code: int, data: bytes, *, local: bool) -> None:
        """End every stream with the connection."""
        for stream_id in [*self.streams.by_id]:
            stream = self.streams.get(stream_id)
            assert stream is not None
            if stream.state in RECEIVING_STATES:
                self.events.append(Failed(stream.id, code, data, local))
            if stream.state in SENDING_STATES:
                self.events.append(Cancelled(stream.id))
            self._close_stream(stream)
        self.requesting.clear()
        self.grants.clear()
        self.output.drop_all()


def _size(payload: PayloadTuple) -> int:
    """The approximate size of a request or an element, with its header."""
    data, metadata = payload
    size = len(data) + HEADER + 4
    return size if metadata is None else size + len(metadata) + 3
