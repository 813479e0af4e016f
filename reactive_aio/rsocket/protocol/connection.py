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
from math import inf
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
from .fast_path import FastPath
from .frame_reader import FrameReader
from .frames import (
    MAX_31,
    MAX_FRAME,
    Error,
    ErrorCode,
    Ext,
    FrameType,
    Lease,
    MetadataPush,
    PayloadTuple,
    RequestFrame,
    RequestN,
    Resume,
    Setup,
)
from .limits import Allowance, Limits
from .outbound_queue import COALESCE_LIMIT
from .resume import Resumption
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
    FrameType.KEEPALIVE: ConnectionState.on_keepalive,
    FrameType.LEASE: ConnectionState.on_lease,
    FrameType.METADATA_PUSH: ConnectionState.on_metadata_push,
    FrameType.EXT: ConnectionState.on_ext,
    FrameType.SETUP: ConnectionState.on_setup,
    FrameType.RESUME: ConnectionState.on_resume,
    FrameType.RESUME_OK: ConnectionState.on_resume_ok,
}
"""What takes the frames of each kind. REQUEST_N and ERROR depend on more than that."""


class Connection:
    """One RSocket connection, of a client or a server. It belongs to one thread."""

    def __init__(
        self,
        setup: Setup | None,
        now: float,
        *,
        limits: Limits | None = None,
        length_prefixed: bool = True,
        lease: bool = False,
        resumption: Resumption | None = None,
        extensions: frozenset[int] = frozenset(),
        metadata_pushes: bool = False,
    ) -> None:
        """Make a client's connection if there is a *setup*, else a server's.

        *length_prefixed*: each frame follows its length, as on TCP. *lease*, *resumption*: whether
        a server accepts clients that use leases, or resume; for a client, *resumption* requests it.
        *extensions*: types of EXT frames that the application understands. *metadata_pushes*:
        whether the application takes METADATA_PUSH frames; otherwise they are useless.
        """
        limits = limits or Limits()
        is_client = setup is not None
        self.limits: Limits = limits
        self.length_prefixed: bool = length_prefixed
        """Whether each frame follows its length; else each is a message."""
        self.streams: StreamMachine = StreamMachine(limits, client=is_client)
        max_frame = limits.max_frame if is_client else limits.max_setup
        self._reader = FrameReader(max_frame, limits.frame_timeout)
        self.fast_path: FastPath = FastPath(self.streams)
        """What most commands and most received bytes take; see there."""
        self._zero_requests = 0
        self.frames_a_turn: int = MAX_31
        """How many frames are read at a time that take more than the fast path."""
        self.has_more: bool = False
        """Whether frames are left, for `read_more`."""
        self._state = ConnectionState(
            self.streams,
            self._reader,
            setup,
            now,
            allow_leases=lease,
            resumption=resumption,
            extensions=extensions,
            metadata_pushes=metadata_pushes,
        )

    def __repr__(self) -> str:
        side = "client" if self.is_client else "server"
        count, queued = len(self.streams.open.by_id), self.queued_bytes
        return f"<Connection {side} {self.phase.name} streams={count} queued={queued}>"

    # -- the state ---------------------------------------------------------------------------------
    @property
    def is_client(self) -> bool:
        return self._state.is_client

    @property
    def phase(self) -> Phase:
        return self._state.phase

    @property
    def setup(self) -> Setup | None:
        """The client's SETUP, once it has been sent or received."""
        return self._state.setup

    @property
    def is_awaiting_accept(self) -> bool:
        """Whether nothing should be read from the transport until `accept` or `reject`."""
        return self._state.phase is _DECIDING

    @property
    def is_confirmed(self) -> bool:
        """Whether a frame of the peer has proved that it knows of the connection."""
        return self._state.is_confirmed

    @property
    def may_request(self) -> bool:
        """Whether this side may open streams: neither side is closing the connection."""
        return not self.streams.close_reason

    @property
    def is_suspended(self) -> bool:
        """Whether it has no transport, and waits for another."""
        return self._state.phase is Phase.SUSPENDED

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left to send or to expect: the transport can be closed."""
        return self._state.phase is _CLOSED

    @property
    def is_peer_silent(self) -> bool:
        """Whether it has ended since the peer gave no sign of life."""
        return self._state.is_peer_silent

    # -- in ----------------------------------------------------------------------------------------
    def receive(self, data: bytes, now: float) -> list[Event]:
        """Take in bytes, cut anywhere."""
        state, reader, streams, taken = self._state, self._reader, self.streams, 0
        state.note_activity(now)
        streams.flood_guard.last_id_before = streams.open.highest_remote_id
        if state.has_only_streams and reader.is_empty and len(data) <= reader.limit:
            taken = self.fast_path.read(data, 0)
        if taken < len(data) and state.is_receiving:
            reader.feed(data)
            reader.position += taken
            self._read()
        return self._take_events()

    def read_more(self, now: float) -> list[Event]:
        """Take in more of the bytes that were received."""
        self.streams.now = now
        self.has_more = False
        if self._state.is_receiving:
            self._read()
        return self._take_events()

    def receive_frame(self, frame: bytes, now: float) -> list[Event]:
        """Take in a message, which is a frame."""
        if len(frame) <= MAX_FRAME:
            return self.receive(add_length(frame), now)
        if self._state.is_receiving:
            self.fail(ErrorCode.CONNECTION_ERROR, f"a frame of {len(frame)} bytes is too long")
        return self._take_events()

    def note_activity(self, now: float) -> None:
        """The peer has sent something that is not a frame yet: it is alive."""
        self._state.note_activity(now)

    def pause_reading(self, now: float) -> None:
        """The driver reads nothing from now on, since the application is busy."""
        self._state.pause_reading(now)

    def resume_reading(self, now: float) -> None:
        """The driver reads again."""
        self._state.resume_reading(now)

    def _read(self) -> None:
        """Take in all whole frames, and end the connection if one breaks a rule."""
        try:
            self._read_frames()
        except ProtocolError as error:
            code = error.code
            if self._state.phase is _START and code == ErrorCode.CONNECTION_ERROR:
                code = ErrorCode.INVALID_SETUP
            self.fail(code, str(error))
        if self.streams.output.overdue > self.limits.max_backlog:
            self._state.end(ErrorCode.CONNECTION_ERROR, b"the peer does not read", local=True)

    def _read_frames(self) -> None:
        state, reader = self._state, self._reader
        begin, left = reader.position, self.frames_a_turn
        self.has_more = False
        while state.phase not in _NOT_READING:
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
        if self._state.has_only_streams and reader.held <= reader.limit:
            reader.position = self.fast_path.read(reader.data, reader.position)
        return reader.next()

    def _handle(self, frame: bytes) -> None:
        state = self._state
        if state.phase is _START:
            state.check_first_frame(frame)
            state.on_first_frame(decode(frame))
            return
        stream_id, kind, flags = header(frame)
        if state.phase is _RESUMING and (stream_id or kind not in _RESUME_ANSWERS):
            raise ProtocolError("neither RESUME_OK nor an error in answer to RESUME")
        if stream_id and kind in _CONNECTION_FRAMES:
            self.streams.count_useless()
            return
        if stream_id:
            state.count_received(len(frame))
        decoded: Any = decode_body(stream_id, kind, flags, frame)
        if decoded is None:
            self.streams.count_useless()
            return
        if kind != _ERROR and not state.is_confirmed:
            state.confirm()
        if kind in _ON_STREAM:
            _ON_STREAM[kind](self.streams, decoded)
        elif kind in _ON_CONNECTION:
            _ON_CONNECTION[kind](state, decoded)
        elif kind == _ERROR:
            self._on_error(decoded)
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

    def _on_error(self, frame: Error) -> None:
        if frame.stream_id:
            self.streams.on_error(frame)
        else:
            self._state.on_error(frame)

    def _take_events(self) -> list[Event]:
        if self._state.is_draining:
            self._state.end_when_drained()
        events = self.streams.events
        if not events:
            return []
        self.streams.events = []
        return events

    # -- a client's question -----------------------------------------------------------------------
    def confirm(self) -> None:
        """Request an answer to SETUP: the event `Confirmed`, or the end."""
        self._state.request_confirmation()

    # -- a server's decision -----------------------------------------------------------------------
    def accept(self, now: float) -> None:
        """Accept the client of a `Setup`; what it has sent since is taken in now."""
        self._state.accept(now)
        self._read()

    def reject(self, reason: str = "", code: int | None = None) -> None:
        """Reject a client's SETUP or RESUME; nothing it sends is served."""
        self._state.reject(reason, code)

    def detach(self) -> list[bytes]:
        """Leave the transport to the session that a RESUME named; what was read after the RESUME.

        That session takes it in by `receive` (or `receive_frame`, one by one) after `resume`.
        """
        self._state.detach()
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
        return len(self.streams.open.by_id) == 1 and self._state.phase is _OPEN

    @property
    def has_output(self) -> bool:
        """Whether there is something to send, or demand to make frames of."""
        has_output = self.streams.output.queued_bytes or self.streams.requesting
        return bool(has_output) and self._state.phase is not _RESUMING

    @property
    def has_final_output(self) -> bool:
        """Whether complete output is queued that no answer would confirm."""
        output, streams = self.streams.output, self.streams.open.by_id.values()
        is_flushing = any(stream.state is State.FLUSHING for stream in streams)
        return bool(output) and (is_flushing or bool(output.control))

    def flush(self, now: float) -> list[Event]:
        """End a turn: pass on the peer's demand as far as there is room; the events so far."""
        self.streams.now = now
        if self.streams.grants and self._state.phase is _OPEN:
            self.streams.grants.grant(self.streams.events)
        return self._take_events()

    def last_output(self) -> bytes | None:
        """Take all output, perhaps none, if that is all there is to do in a turn, as in most.

        None if there are events, demand to pass on, a deadline of a frame, an end to consider, too
        much output, frames to be kept, or a peer that is to be read more slowly.
        """
        state, streams = self._state, self.streams
        output = streams.output
        if (
            state.phase is not _OPEN
            or state.is_draining
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
        streams, phase = self.streams, self._state.phase
        if phase is _OPEN:
            if not (streams.output.queued_bytes or streams.requesting):
                return []
            return streams.take_output(at_most)
        if phase in (Phase.SUSPENDED, Phase.CLOSED):
            return []
        if phase is _RESUMING:
            return streams.output.take_control()
        frames = streams.take_output(at_most)
        self._state.close_when_sent()
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

    # -- time --------------------------------------------------------------------------------------
    def next_deadline(self) -> float | None:
        """When `tick` is due, if nothing happens before."""
        return self._state.next_deadline()

    def tick(self, now: float) -> list[Event]:
        """Act on deadlines that have passed."""
        self._state.tick(now)
        return self._take_events()

    # -- the end -----------------------------------------------------------------------------------
    def fail(self, code: int, message: str) -> None:
        """Send an ERROR on stream 0, and close."""
        self._state.fail(code, message)

    def close(self, message: str = "") -> None:
        """Close now; open streams fail."""
        is_busy = bool(self.streams.open.by_id)
        code = ErrorCode.CONNECTION_ERROR if is_busy else ErrorCode.CONNECTION_CLOSE
        self.fail(code, message)

    def close_gracefully(self, message: str = "", until: float = -inf) -> None:
        """Open no more streams, and close when the open ones have ended.

        The peer, which may have sent more requests, has time to close it first, *until* then.
        """
        self._state.drain(message, until)

    def transport_lost(self, now: float, reason: str = "the transport was closed") -> list[Event]:
        """The transport has ended. A session that may be resumed is `Suspended`."""
        self._state.lose_transport(now, reason)
        return self._take_events()

    def transport_replaced(self, now: float) -> None:
        """A client has a new transport for a suspended session: RESUME is sent."""
        self._state.request_resume(now)

    def resume(self, frame: Resume, now: float) -> bool:
        """Resume a server's session on the transport that received *frame*; False if impossible.

        Then the connection that received it must `reject` it, and the session has ended.
        """
        return self._state.resume(frame, now)
