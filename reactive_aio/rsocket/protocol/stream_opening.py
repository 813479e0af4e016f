"""Requests, in both directions: who may open a stream, and what becomes of it."""

from struct import Struct
from typing import TYPE_CHECKING, Final

from ..._core.demand import UNBOUNDED
from .codec import HEADER, encode, encode_payload
from .errors import ConnectionLost, NoLease, ProtocolError
from .frames import (
    MAX_31,
    ErrorCode,
    Lease,
    PayloadTuple,
    RequestChannel,
    RequestFnf,
    RequestResponse,
    RequestStream,
)
from .outbound_queue import COALESCE_LIMIT
from .stream_machine import StreamMachine
from .stream_states import InteractionModel, State
from .streams import STREAM_ID_STEP, ExpectedResponse, RemoteStream, Stream

if TYPE_CHECKING:
    from .lease import Allowance

__all__ = ("Request", "StreamOpener")

# To look up a member of an enum takes five times as long as to look up a global.
_RESPONSE: Final = InteractionModel.RESPONSE
_GATHER: Final = State.RESPONDER_REASSEMBLY
_CALL_IN: Final = State.REQUESTER_CHANNEL_IN
_STREAM: Final = InteractionModel.STREAM
_CHANNEL: Final = InteractionModel.CHANNEL

Request = RequestResponse | RequestFnf | RequestStream | RequestChannel

_MODELS: dict[type[Request], InteractionModel] = {
    RequestResponse: _RESPONSE,
    RequestFnf: InteractionModel.FNF,
    RequestStream: _STREAM,
    RequestChannel: _CHANNEL,
}
_NUMBERED: Final = (RequestStream, RequestChannel)
_ASKED = {
    _RESPONSE: State.REQUESTER_RESPONSE,
    InteractionModel.FNF: State.FLUSHING,
    _STREAM: State.REQUESTER_STREAM,
    _CHANNEL: State.REQUESTER_CHANNEL,
}
_RESPONSE_BITS: Final = _RESPONSE << 10
_new: Final = object.__new__  # Asked(id) takes half as long again
_ASK_BITS: Final = _RESPONSE_BITS | 0x100  # with metadata
_ASK: Final = Struct(">xHIHxH").pack
"""What stands before the metadata, of a frame that is small: both lengths, stream, type, flags."""


class StreamOpener:
    """Opens streams for this side, and for the peer."""

    def __init__(self, exchanges: StreamMachine) -> None:
        self._exchanges = exchanges
        self._out = exchanges.out
        self._streams = exchanges.streams
        self._live = exchanges.streams.live
        self._small = exchanges.small
        self.closed: str = ""
        """Why no stream may be opened any more; empty while they may."""
        self.held: Allowance | None = None
        """The lease that this side needs for its requests, if it needs one."""
        self.given: Allowance | None = None
        """The lease that the peer needs."""

    def lease(self, lease: Lease, now: float) -> None:
        """Allow the peer so many requests."""
        if self.given is None:
            raise ValueError("no lease was asked for in SETUP")
        self.given.grant(lease.requests, lease.ttl / 1000, now)
        self._exchanges.out.control(encode(lease))

    # -- of this side ------------------------------------------------------------------------------
    def begin(
        self, model: InteractionModel, payload: PayloadTuple, n: int, now: float, complete: bool
    ) -> int:
        """Open a stream; its id."""
        if self.closed:
            raise ConnectionLost(ErrorCode.CONNECTION_CLOSE, self.closed.encode())
        if self.held is not None and not self.held.take(now):
            raise NoLease("no lease for another request: wait for the peer to grant one")
        exchanges = self._exchanges
        stream_id = exchanges.streams.next_id()
        state = _CALL_IN if complete else _ASKED[model]
        stream = Stream(stream_id, model, state, exchanges.mean)
        exchanges.streams.add(stream)
        stream.wire = 1 if model is _RESPONSE else min(n, MAX_31)
        numbered = model is _STREAM or model is _CHANNEL
        bits = model << 10 | (0x40 if complete else 0)
        exchanges.put(stream, bits, payload, stream.wire if numbered else 0)
        if n > MAX_31:
            exchanges.request(stream_id, n if n == UNBOUNDED else n - MAX_31)
        return stream_id

    def ask_one(self, payload: PayloadTuple) -> int:
        """Open a stream for one element: what `begin` does, but faster."""
        out = self._out
        data, metadata = payload
        size = len(data) + (HEADER if metadata is None else HEADER + 3 + len(metadata))
        # Streams begin in the order of their ids: no request goes before others that wait.
        if (
            size > self._small
            or out.queued >= COALESCE_LIMIT
            or out.ready
            or self.closed
            or self.held
        ):
            return self.begin(_RESPONSE, payload, 1, self._exchanges.now, False)
        streams, live = self._streams, self._live
        stream_id = streams.next  # as `next_id` does, nearly always without its call
        if stream_id <= streams.last - STREAM_ID_STEP and stream_id not in live:
            streams.next = stream_id + STREAM_ID_STEP
        else:
            stream_id = streams.next_id()
        live[stream_id] = asked = _new(ExpectedResponse)
        asked.id = stream_id
        if metadata is None or not out.prefixed:
            frame = encode_payload(stream_id, _RESPONSE_BITS, payload, prefixed=out.prefixed)
        else:
            frame = _ASK(size, stream_id, _ASK_BITS, len(metadata)) + metadata + data
        out.asks[stream_id] = frame
        out.queued += len(frame)
        return stream_id

    # -- of the peer -------------------------------------------------------------------------------
    def on_request(self, frame: Request) -> None:
        exchanges = self._exchanges
        stream_id = frame.stream_id
        if stream_id == 0:
            raise ProtocolError("a request on stream 0")
        if stream_id in exchanges.streams.live:
            exchanges.useless()
            return
        code, reason = self._objection(frame)
        if reason:
            exchanges.useless()
            if not isinstance(frame, RequestFnf):  # nobody waits for an answer to that
                exchanges.refuse(stream_id, code, reason.encode())
            return
        model = _MODELS[type(frame)]
        stream = RemoteStream(stream_id, model, _GATHER, exchanges.mean)
        exchanges.streams.add(stream)
        if isinstance(frame, _NUMBERED):
            stream.credit = frame.n
        complete = isinstance(frame, RequestChannel) and frame.complete
        if not frame.follows:
            exchanges.open(stream, frame.payload, complete)
        elif exchanges.gather(stream, frame.payload, True) and stream.partial is not None:
            stream.partial.complete = complete

    def room(self) -> int:
        """How many requests of the peer may be taken in without a closer look."""
        exchanges = self._exchanges
        if self.closed or self.given is not None:
            return 0
        return exchanges.limits.max_streams - exchanges.streams.theirs

    def _objection(self, frame: Request) -> tuple[ErrorCode, str]:
        """Why a request is not served, if so."""
        exchanges = self._exchanges
        if exchanges.streams.mine(frame.stream_id):
            return ErrorCode.INVALID, f"stream id {frame.stream_id} is not of your side"
        if isinstance(frame, _NUMBERED) and not frame.n:
            return ErrorCode.INVALID, "an initial request for 0 elements"
        if self.closed:
            return ErrorCode.REJECTED, self.closed
        if exchanges.streams.theirs >= exchanges.limits.max_streams:
            return ErrorCode.REJECTED, f"{exchanges.limits.max_streams} streams are open"
        if self.given is not None and not self.given.take(exchanges.now):
            return ErrorCode.REJECTED, "no lease"
        return ErrorCode.REJECTED, ""
