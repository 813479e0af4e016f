"""One end of a connection, without a transport: bytes and deadlines in, bytes and events out.

A driver owns the socket and the clock::

    events = connection.receive(data, now)      # or receive_frame, for transports with messages
    ... act on each event ...                   # commands: request, send, complete, fail, cancel …
    events = connection.flush(now)              # the end of a turn: demand that may be passed on
    data = connection.data_to_send()            # or frames_to_send
    deadline = connection.next_deadline()       # then: connection.tick(now)

Nothing that a peer sends raises an exception: it becomes an event, an answer, or the end. An
exception reports a mistake of this side. *now* is any monotonic clock in seconds.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ..._core.demand import require_demand
from .codec import (
    LENGTH_SIZE,
    add_length,
    decode,
    decode_body,
    encode,
    header,
    split_messages,
)
from .connection_state import ConnectionState, Phase
from .errors import ProtocolError
from .events import Event
from .frames import (
    MAX_31,
    MAX_FRAME,
    ErrorCode,
    Ext,
    FrameType,
    Lease,
    MetadataPush,
    PayloadTuple,
    RequestFrame,
    RequestN,
)
from .limits import Allowance
from .outbound_queue import COALESCE_LIMIT
from .stream_machine import StreamMachine
from .stream_states import RESPONDER_STATES, InteractionModel, State

# Looking up a member of an enum takes five times as long as looking up a global.
_START: Final = Phase.START
_DECIDING: Final = Phase.DECIDING
_OPEN: Final = Phase.OPEN
_RESUMING: Final = Phase.RESUMING
_CLOSED: Final = Phase.CLOSED
_ERROR: Final = FrameType.ERROR

_CONNECTION_FRAMES: Final = frozenset(
    {
        FrameType.SETUP,
        FrameType.LEASE,
        FrameType.KEEPALIVE,
        FrameType.METADATA_PUSH,
        FrameType.RESUME,
        FrameType.RESUME_OK,
    }
)
"""Frames that are valid on stream 0 only. All others count towards positions."""
_RESUME_ANSWERS: Final = frozenset({FrameType.RESUME_OK, FrameType.ERROR})
_NOT_READING: Final = frozenset({Phase.DECIDING, Phase.SUSPENDED, Phase.CLOSING, Phase.CLOSED})


def _on_request(model: InteractionModel, machine: StreamMachine, frame: RequestFrame) -> None:
    machine.on_request(model, frame)


_ON_STREAM: Final[dict[int, Callable[[StreamMachine, Any], object]]] = {
    FrameType.PAYLOAD: StreamMachine.on_payload,
    **{model: partial(_on_request, model) for model in RESPONDER_STATES},
    FrameType.CANCEL: StreamMachine.on_cancel,
}
_ON_CONNECTION: Final[dict[int, Callable[[ConnectionState, Any], object]]] = {
    FrameType.KEEPALIVE: ConnectionState._on_keepalive,
    FrameType.LEASE: ConnectionState._on_lease,
    FrameType.METADATA_PUSH: ConnectionState._on_metadata_push,
    FrameType.EXT: ConnectionState._on_ext,
    FrameType.SETUP: ConnectionState._on_setup,
    FrameType.RESUME: ConnectionState._on_resume,
    FrameType.RESUME_OK: ConnectionState._on_resume_ok,
}
"""What takes the frames of each kind. REQUEST_N and ERROR depend on more than that."""


class Connection(ConnectionState):
    """One RSocket connection, of a client or a server. It belongs to one thread."""

    frames_a_turn: int = MAX_31
    """How many frames are read at a time that take more than the fast path."""
    has_more: bool = False
    """Whether frames are left, for `read_more`."""
    _zero_requests: int = 0

    def __repr__(self) -> str:
        side = "client" if self.is_client else "server"
        count, queued = len(self.streams.open.by_id), self.queued_bytes
        return f"<Connection {side} {self.phase.name} streams={count} queued={queued}>"

    # -- in ----------------------------------------------------------------------------------------
    def receive(self, data: bytes, now: float) -> list[Event]:
        """Take in bytes, cut anywhere."""
        reader, streams, taken = self._reader, self.streams, 0
        self.note_activity(now)
        streams.flood_guard.last_id_before = streams.open.highest_remote_id
        if self.has_only_streams and reader.is_empty and len(data) <= reader.limit:
            taken = self.fast_path.read(data, 0)
        if taken < len(data) and self.is_receiving:
            reader.feed(data)
            reader.position += taken
            self._read()
        return self._take_events()

    def read_more(self, now: float) -> list[Event]:
        """Take in more of the bytes that were received."""
        self.streams.now = now
        self.has_more = False
        if self.is_receiving:
            self._read()
        return self._take_events()

    def receive_frame(self, frame: bytes, now: float) -> list[Event]:
        """Take in a message, which is a frame."""
        if len(frame) <= MAX_FRAME:
            return self.receive(add_length(frame), now)
        if self.is_receiving:
            self.fail(ErrorCode.CONNECTION_ERROR, f"a frame of {len(frame)} bytes is too long")
        return self._take_events()

    def _read(self) -> None:
        """Take in all whole frames, and end the connection if one breaks a rule."""
        try:
            self._read_frames()
        except ProtocolError as error:
            code = error.code
            if self.phase is _START and code == ErrorCode.CONNECTION_ERROR:
                code = ErrorCode.INVALID_SETUP
            self.fail(code, str(error))
        if self.streams.output.overdue > self.limits.max_backlog:
            self._end(ErrorCode.CONNECTION_ERROR, b"the peer does not read", local=True)

    def _read_frames(self) -> None:
        reader = self._reader
        begin, left = reader.position, self.frames_a_turn
        self.has_more = False
        while self.phase not in _NOT_READING:
            if not left:
                self.has_more = True
                break
            frame = self._next_frame()
            if frame is None:
                break
            left -= 1
            self._handle(frame)
        if reader.held > self.limits.max_early and self.is_awaiting_accept:
            raise ProtocolError("too much before the SETUP was answered")
        reader.update_deadline(self.streams.now, begin, is_paused=self.is_awaiting_accept)

    def _next_frame(self) -> bytes | None:
        reader = self._reader
        if self.has_only_streams and reader.held <= reader.limit:
            reader.position = self.fast_path.read(reader.data, reader.position)
        return reader.next()

    def _handle(self, frame: bytes) -> None:
        if self.phase is _START:
            self._check_first_frame(frame)
            self._on_first_frame(decode(frame))
            return
        stream_id, kind, flags = header(frame)
        if self.phase is _RESUMING and (stream_id or kind not in _RESUME_ANSWERS):
            raise ProtocolError("neither RESUME_OK nor an error in answer to RESUME")
        if stream_id and kind in _CONNECTION_FRAMES:
            self.streams.count_useless()
            return
        if stream_id:
            self._count_received(len(frame))
        decoded: Any = decode_body(stream_id, kind, flags, frame)
        if decoded is None:
            self.streams.count_useless()
            return
        if kind != _ERROR and not self.is_confirmed:
            self._confirmed()
        if kind in _ON_STREAM:
            _ON_STREAM[kind](self.streams, decoded)
        elif kind in _ON_CONNECTION:
            _ON_CONNECTION[kind](self, decoded)
        elif kind == _ERROR:
            (self.streams.on_error if decoded.stream_id else self._on_error)(decoded)
        else:
            self._on_request_n(decoded)

    def _on_request_n(self, frame: RequestN) -> None:
        if frame.n:
            self.streams.on_request_n(frame)
            return
        self.streams.count_useless()
        self._zero_requests += 1
        if self._zero_requests > self.limits.max_zero_requests:
            raise ProtocolError("requests for 0 elements, again and again")

    def _take_events(self) -> list[Event]:
        if self.is_draining:
            self._end_when_drained()
        events = self.streams.events
        if not events:
            return []
        self.streams.events = []
        return events

    # -- a server's decision -----------------------------------------------------------------------
    def accept(self, now: float) -> None:
        """Accept the client of a `Setup`; what it has sent since is taken in now."""
        self._accept(now)
        self._read()

    def detach(self) -> list[bytes]:
        """Leave the transport to the session that a RESUME named; what was read after the RESUME.

        That session takes it in by `receive` (or `receive_frame`, one by one) after `resume`.
        """
        self._detach()
        rest = self._reader.rest()
        if not self.length_prefixed:
            return split_messages(rest)
        return [rest] if rest else []

    # -- this side's requests ----------------------------------------------------------------------
    def require_room(self) -> None:
        """Raise `MustWait` if no request may be sent now."""
        self.streams.require_room()

    def request_response(self, payload: PayloadTuple) -> int:
        """Request one element. All requests return the id of their stream."""
        return self.fast_path.request_response(payload)

    def fire_and_forget(self, payload: PayloadTuple) -> int:
        return self.streams.open_local(InteractionModel.FNF, payload, 1)

    def request_stream(self, payload: PayloadTuple, n: int) -> int:
        """Request a stream, and its first *n* elements."""
        return self.streams.open_local(InteractionModel.STREAM, payload, require_demand(n))

    def request_channel(self, payload: PayloadTuple, n: int, *, complete: bool = False) -> int:
        """Open a channel with its first element, and request *n*."""
        model = InteractionModel.CHANNEL
        return self.streams.open_local(model, payload, require_demand(n), complete=complete)

    def metadata_push(self, metadata: bytes) -> None:
        if not self.streams.close_reason:
            self.streams.output.put_control(encode(MetadataPush(metadata)))

    def send_extension(self, frame: Ext) -> None:
        if not self.streams.close_reason:
            self.streams.output.put_control(encode(frame))

    # -- streams -----------------------------------------------------------------------------------
    def request(self, stream_id: int, n: int) -> None:
        """Request *n* more elements. Requests add up until output is taken."""
        self.streams.request(stream_id, n)

    def cancel(self, stream_id: int) -> bool:
        """Cancel a stream; nothing is sent on it after that.

        A requester ends the stream by it; on a channel, a responder stops what it receives.
        """
        return self.streams.cancel(stream_id)

    def send(self, stream_id: int, payload: PayloadTuple, *, complete: bool = False) -> bool:
        """Send an element that was requested, or a response; False if the peer cancelled."""
        return self.streams.send(stream_id, payload, complete=complete)

    def respond(self, stream_id: int, data: bytes) -> bool:
        """Send a response without metadata."""
        return self.fast_path.respond_all([(stream_id, data)]) == 1

    def send_all(self, stream_id: int, elements: list[bytes]) -> bool:
        """Send elements without metadata."""
        return self.fast_path.send_all(stream_id, elements)

    def complete(self, stream_id: int) -> bool:
        """Complete what is sent on a stream."""
        return self.streams.complete(stream_id)

    def fail_stream(self, stream_id: int, code: int, data: bytes = b"") -> bool:
        """End a stream with an error, after the elements already sent."""
        return self.streams.fail(stream_id, code, data)

    # -- leases ------------------------------------------------------------------------------------
    @property
    def received_lease(self) -> Allowance | None:
        """The lease of the peer for requests of this side; None if they need none."""
        return self.streams.received_lease

    @property
    def granted_lease(self) -> Allowance | None:
        """The lease of this side for requests of the peer; None if they need none."""
        return self.streams.granted_lease

    def grant_lease(self, requests: int, ttl: int, metadata: bytes | None = None) -> None:
        """Allow the peer *requests* requests within *ttl* milliseconds; this replaces the last."""
        self.streams.grant_lease(Lease(ttl, requests, metadata))

    # -- out ---------------------------------------------------------------------------------------
    @property
    def queued_bytes(self) -> int:
        """The output queued, in bytes."""
        return self.streams.output.queued_bytes

    @property
    def has_single_stream(self) -> bool:
        """Whether it is open with one stream."""
        return len(self.streams.open.by_id) == 1 and self.phase is _OPEN

    @property
    def has_output(self) -> bool:
        """Whether there is something to send, or demand to make frames of."""
        has_output = self.streams.output.queued_bytes or self.streams.requesting
        return bool(has_output) and self.phase is not _RESUMING

    @property
    def has_final_output(self) -> bool:
        """Whether complete output is queued that no answer would confirm."""
        output, streams = self.streams.output, self.streams.open.by_id.values()
        is_flushing = any(stream.state is State.FLUSHING for stream in streams)
        return bool(output) and (is_flushing or bool(output.control))

    def flush(self, now: float) -> list[Event]:
        """End a turn: pass on the peer's demand as far as there is room; the events so far."""
        self.streams.now = now
        if self.streams.grants and self.phase is _OPEN:
            self.streams.grants.grant(self.streams.events)
        return self._take_events()

    def last_output(self) -> bytes | None:
        """Take all output, perhaps none, if that is all there is to do in a turn, as in most.

        None if there are events, demand to pass on, a deadline of a frame, an end to consider, too
        much output, frames to be kept, or a peer that is to be read more slowly.
        """
        streams, output = self.streams, self.streams.output
        if (
            self.phase is not _OPEN
            or self.is_draining
            or streams.events
            or streams.grants
            or self._reader.deadline is not None
            or streams.reassemblies.deadline is not None
            or streams.pace.may_be_owed
            or self.has_more
            or output.resume_buffer is not None
            or output.rotation.fragmented_bytes
            or output.queued_bytes > COALESCE_LIMIT
        ):
            return None
        if not (output.queued_bytes or streams.requesting):
            return b""
        return b"".join(streams.take_output(COALESCE_LIMIT))

    def data_to_send(self, at_most: int = 64 * 1024) -> bytes:
        """Take output: all of it, or a little more than *at_most* bytes."""
        return b"".join(self._take_output(at_most))

    def frames_to_send(self, at_most: int = 64 * 1024) -> list[bytes]:
        """The same, frame by frame."""
        frames = self._take_output(at_most)
        return frames if self.length_prefixed else [frame[LENGTH_SIZE:] for frame in frames]

    def _take_output(self, at_most: int) -> list[bytes]:
        streams, phase = self.streams, self.phase
        if phase is _OPEN:
            if not (streams.output.queued_bytes or streams.requesting):
                return []
            return streams.take_output(at_most)
        if phase in (Phase.SUSPENDED, Phase.CLOSED):
            return []
        if phase is _RESUMING:
            return streams.output.take_control()
        frames = streams.take_output(at_most)
        self._close_when_sent()
        return frames

    # -- memory ------------------------------------------------------------------------------------
    @property
    def held_bytes(self) -> int:
        """What is held for the peer: output, part of a frame, frames that may be sent again.

        Unfinished payloads count by themselves.
        """
        output = self.streams.output
        kept = 0 if output.resume_buffer is None else output.resume_buffer.size
        return output.queued_bytes + self._reader.held + kept

    def hold_less(self, in_transport: int) -> bool:
        """The process holds too much for its peers: give up what can be, beyond a little.

        *in_transport* are bytes of a message that is not whole. Whether the connection ends by it.
        """
        most, kept = self.limits.watermark, self.streams.output.resume_buffer
        if kept is not None:
            kept.shrink(most)
        if self._reader.held + in_transport > most:
            message = "part of a frame, while the process holds as much as it may for its peers"
            self.fail(ErrorCode.CONNECTION_ERROR, message)
            return True
        return False

    # -- time, and the end of the transport --------------------------------------------------------
    def tick(self, now: float) -> list[Event]:
        """Act on deadlines that have passed."""
        self._act_on_deadlines(now)
        return self._take_events()

    def transport_lost(self, now: float, reason: str = "the transport was closed") -> list[Event]:
        """The transport has ended. A session that may be resumed is `Suspended`, another ends."""
        self._lose_transport(now, reason)
        return self._take_events()
