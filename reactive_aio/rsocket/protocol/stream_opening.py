"""Requests in both directions: which streams may be opened, and how they begin."""

from dataclasses import dataclass
from typing import Final

from ..._core.demand import UNBOUNDED
from .codec import encode
from .errors import ConnectionLost, NoLease, ProtocolError
from .frames import (
    MAX_31,
    ErrorCode,
    Lease,
    PayloadTuple,
    RequestChannel,
    RequestFrame,
    RequestStream,
)
from .stream_machine import StreamMachine
from .stream_states import InteractionModel, State
from .streams import RemoteStream, Stream

__all__ = ("Allowance", "StreamOpener")

# Looking up a member of an enum takes five times as long as looking up a global.
_RESPONSE: Final = InteractionModel.RESPONSE
_STREAM: Final = InteractionModel.STREAM
_CHANNEL: Final = InteractionModel.CHANNEL

_REQUESTER_STATES = {
    _RESPONSE: State.REQUESTER_RESPONSE,
    InteractionModel.FNF: State.FLUSHING,
    _STREAM: State.REQUESTER_STREAM,
    _CHANNEL: State.REQUESTER_CHANNEL,
}


@dataclass(slots=True)
class Allowance:
    """The lease of one direction: a new one replaces it, and before the first, none is allowed."""

    requests: int = 0
    expires: float = 0.0

    def grant(self, requests: int, ttl: float, now: float) -> None:
        self.requests = requests
        self.expires = now + ttl

    def take(self, now: float) -> bool:
        """Use it for one request; whether it allows that."""
        if self.requests < 1 or now >= self.expires:
            return False
        self.requests -= 1
        return True


class StreamOpener:
    """Opens streams for this side and for the peer, within leases and limits."""

    def __init__(self, machine: StreamMachine) -> None:
        self._machine = machine
        self.close_reason: str = ""
        """Why no stream may be opened any more; empty while streams may be."""
        self.received_lease: Allowance | None = None
        """The lease for requests of this side, if they need one."""
        self.granted_lease: Allowance | None = None
        """The lease for requests of the peer, if they need one."""

    def require_leases(self) -> None:
        """Begin without a lease on either side: from now on requests need one."""
        self.received_lease, self.granted_lease = Allowance(), Allowance()

    def grant_lease(self, lease: Lease, now: float) -> None:
        """Allow the peer requests."""
        if self.granted_lease is None:
            raise ValueError("SETUP did not request leases")
        self.granted_lease.grant(lease.requests, lease.ttl / 1000, now)
        self._machine.output.put_control(encode(lease))

    def open(
        self, model: InteractionModel, payload: PayloadTuple, n: int, *, complete: bool = False
    ) -> int:
        """Open a stream of this side; its id."""
        machine = self._machine
        if self.close_reason:
            raise ConnectionLost(ErrorCode.CONNECTION_CLOSE, self.close_reason.encode())
        if self.received_lease is not None and not self.received_lease.take(machine.now):
            raise NoLease("no lease for another request: wait for the peer to grant one")
        stream_id = machine.open.next_id()
        state = State.REQUESTER_CHANNEL_IN if complete else _REQUESTER_STATES[model]
        stream = Stream(stream_id, model, state, machine.initial_mean_size)
        machine.open.add(stream)
        stream.inbound_credit = 1 if model is _RESPONSE else min(n, MAX_31)
        has_demand = model is _STREAM or model is _CHANNEL
        bits = model << 10 | (0x40 if complete else 0)
        machine.put_payload(stream, bits, payload, stream.inbound_credit if has_demand else 0)
        if n > MAX_31:
            machine.request(stream_id, n if n == UNBOUNDED else n - MAX_31)
        return stream_id

    def on_request(self, model: InteractionModel, frame: RequestFrame) -> None:
        """Open a stream of the peer, or refuse it."""
        machine = self._machine
        stream_id = frame.stream_id
        if stream_id == 0:
            raise ProtocolError("a request on stream 0")
        if stream_id in machine.open.by_id:
            machine.count_useless()
            return
        code, reason = self._refusal(frame)
        if reason:
            machine.count_useless()
            if model is not InteractionModel.FNF:  # it has no answer
                machine.refuse_request(stream_id, code, reason.encode())
            return
        state = State.RESPONDER_REASSEMBLY
        stream = RemoteStream(stream_id, model, state, machine.initial_mean_size)
        machine.open.add(stream)
        if isinstance(frame, RequestStream | RequestChannel):
            stream.peer_demand = frame.n
        complete = isinstance(frame, RequestChannel) and frame.complete
        if not frame.follows:
            machine.open_remote(stream, frame.payload, complete)
        elif machine.add_fragment(stream, frame.payload, True) and stream.reassembly is not None:
            stream.reassembly.complete = complete

    def room(self) -> int:
        """How many requests of the peer may be accepted without looking at each."""
        machine = self._machine
        if self.close_reason or self.granted_lease is not None:
            return 0
        return machine.limits.max_streams - machine.open.remote_count

    def _refusal(self, frame: RequestFrame) -> tuple[ErrorCode, str]:
        """Why a request is refused; an empty text if it is not."""
        machine = self._machine
        if machine.open.is_local_id(frame.stream_id):
            return ErrorCode.INVALID, f"stream id {frame.stream_id} is not of your side"
        if isinstance(frame, RequestStream | RequestChannel) and not frame.n:
            return ErrorCode.INVALID, "an initial request for 0 elements"
        if self.close_reason:
            return ErrorCode.REJECTED, self.close_reason
        if machine.open.remote_count >= machine.limits.max_streams:
            return ErrorCode.REJECTED, f"{machine.limits.max_streams} streams are open"
        if self.granted_lease is not None and not self.granted_lease.take(machine.now):
            return ErrorCode.REJECTED, "no lease"
        return ErrorCode.REJECTED, ""
