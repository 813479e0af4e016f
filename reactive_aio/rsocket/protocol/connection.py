"""One end of a connection, without a transport: bytes and deadlines in, bytes and events out.

A driver owns the socket and the clock::

    events = connection.receive(data, now)
    ... act on each event ...                   # commands: request, send, complete, fail, cancel …
    events = connection.flush(now)              # the end of a turn: demand that may be passed on
    data = connection.data_to_send()
    deadline = connection.next_deadline()       # then: connection.tick(now)

Nothing that a peer sends raises an exception: it becomes an event, an answer, or the end. An
exception reports a mistake of this side. *now* is any monotonic clock in seconds.

Its life::

    client                                    server
      OPEN ── SETUP is sent first               START ── SETUP ──▶ DECIDING ── accept ──▶ OPEN
      OPEN ◀── RESUME_OK ── RESUMING            START ── RESUME ─▶ DECIDING ── detach ──▶ CLOSED
    both
      OPEN ── transport lost ──▶ SUSPENDED (if it may be resumed) or CLOSED
      any ── error, close ──▶ CLOSING ── all output taken ──▶ CLOSED
"""

from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from math import inf
from secrets import token_bytes
from struct import Struct
from typing import Any, Final

from .codec import (
    decode_body,
    encode,
    header,
)
from .errors import ProtocolError
from .events import Closed, Event, Resumed
from .flood import KEEPALIVE
from .frame_reader import FrameReader
from .frames import (
    MAX_31,
    VERSION,
    Error,
    ErrorCode,
    Ext,
    FrameType,
    KeepAlive,
    Lease,
    MetadataPush,
    Resume,
    ResumeOk,
    Setup,
)
from .keepalive import KeepAliveTimer
from .limits import Limits
from .outbound_queue import COALESCE_LIMIT
from .resume import ResumeBuffer, Resumption
from .runs import read_runs
from .stream_machine import StreamMachine
from .stream_states import RESPONDER_STATES, State


class Phase(IntEnum):
    """The phases of a connection, in their order."""

    START = 0
    DECIDING = 1
    OPEN = 2
    SUSPENDED = 3
    RESUMING = 4
    CLOSING = 5
    CLOSED = 6


# Looking up a member of an enum takes five times as long as looking up a global.
_START: Final = Phase.START
_OPEN: Final = Phase.OPEN
_RESUMING: Final = Phase.RESUMING
_ERROR: Final = FrameType.ERROR

_VERSION: Final = Struct(">HH").unpack_from
_FIRST_FRAMES: Final = {
    FrameType.SETUP: ({VERSION}, ErrorCode.UNSUPPORTED_SETUP),
    FrameType.RESUME: ({VERSION, (0, 1)}, ErrorCode.REJECTED_RESUME),
}
"""The versions accepted in a client's first frame, and the code of the answer to others. rsocket-js
says 1.0 in SETUP and 0.1 in RESUME, of one session."""
_SETUP_ERRORS: Final = frozenset(
    {
        ErrorCode.INVALID_SETUP,
        ErrorCode.UNSUPPORTED_SETUP,
        ErrorCode.REJECTED_SETUP,
        ErrorCode.REJECTED_RESUME,
    }
)
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

_MIN_INTERVAL: Final = 1.0
_MAX_INTERVAL: Final = 20.0
"""The interval of a server's keepalives while it reads nothing: only when it sends does it notice
that the client has gone, but it does not send as often as the client would have it."""


class Connection(StreamMachine):
    """One RSocket connection, of a client or a server. It belongs to one thread.

    The commands and the frames of streams are those of the `StreamMachine` that it is. What is
    added here: the phase, what SETUP agreed on, the frames of stream 0, deadlines, and the
    transport that may be another one after a while.
    """

    now: float
    events: list[Event]
    close_reason: str
    frames_a_turn: int = MAX_31
    """How many frames are read at a time that are not in runs."""
    has_more: bool = False
    """Whether frames are left, for `read_more`."""
    is_confirmed: bool = False
    """Whether a frame of the peer has proved that it knows of the connection."""
    is_draining: bool = False
    """Whether the connection closes when its streams have ended."""
    is_peer_silent: bool = False
    """Whether it has ended since the peer gave no sign of life."""
    _is_paused: bool = False
    """Whether this side reads nothing for the time being, by its own decision."""
    _drains_by_own_will: bool = False
    _drain_reason: bytes = b""
    _drain_until: float = -inf
    """Until when the peer may close a connection that this side is closing."""

    def __init__(
        self,
        setup: Setup | None,
        now: float,
        *,
        limits: Limits | None = None,
        lease: bool = False,
        resumption: Resumption | None = None,
        metadata_pushes: bool = False,
    ) -> None:
        """Make a client's connection if there is a *setup*, else a server's.

        *lease*, *resumption*: whether a server accepts clients that use leases, or resume; for a
        client, *resumption* requests it. *metadata_pushes*: whether the application takes
        METADATA_PUSH frames; otherwise they are useless.
        """
        super().__init__(limits or Limits(), client=setup is not None)
        self.is_client: bool = setup is not None
        self.phase: Phase = Phase.START
        self.setup: Setup | None = None
        """The client's SETUP, once it has been sent or received."""
        max_frame = self.limits.max_frame if self.is_client else self.limits.max_setup
        self._reader = FrameReader(max_frame, self.limits.frame_timeout)
        self._allow_leases = lease
        self._resumption = resumption
        self._takes_pushes = metadata_pushes
        self._keepalive_timer: KeepAliveTimer | None = None
        self._deadline: float | None = now + self.limits.setup_timeout
        if setup is not None:
            if resumption is not None and setup.token is None:
                setup = replace(setup, token=token_bytes(16))
            self.output.put_control(encode(setup))
            self._open(setup, now)

    def __repr__(self) -> str:
        side = "client" if self.is_client else "server"
        count, queued = len(self.streams.by_id), self.queued_bytes
        return f"<Connection {side} {self.phase.name} streams={count} queued={queued}>"

    @property
    def is_awaiting_accept(self) -> bool:
        """Whether nothing should be read from the transport until `accept` or `reject`."""
        return self.phase is Phase.DECIDING

    @property
    def may_request(self) -> bool:
        """Whether this side may open streams: neither side is closing the connection."""
        return not self.close_reason

    @property
    def is_suspended(self) -> bool:
        """Whether it has no transport, and waits for another."""
        return self.phase is Phase.SUSPENDED

    @property
    def is_resuming(self) -> bool:
        """Whether it has a new transport, on which the server has not answered RESUME yet."""
        return self.phase is Phase.RESUMING

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left to send or to expect: the transport can be closed."""
        return self.phase is Phase.CLOSED

    @property
    def has_only_streams(self) -> bool:
        """Whether only streams are left to consider: runs may be read."""
        return self.is_confirmed and self.output.resume_buffer is None and self.phase is _OPEN

    @property
    def is_receiving(self) -> bool:
        """Whether bytes of the transport are still taken in."""
        return self.phase < Phase.CLOSING and self.phase is not Phase.SUSPENDED

    # -- in ----------------------------------------------------------------------------------------
    def receive(self, data: bytes, now: float) -> list[Event]:
        """Take in bytes, cut anywhere."""
        reader, taken = self._reader, 0
        self.note_activity(now)
        self.flood.last_id_before = self.streams.highest_remote_id
        if self.has_only_streams and reader.is_empty and len(data) <= reader.limit:
            taken = read_runs(self, data, 0)  # most of what arrives is nothing else
        if taken < len(data) and self.is_receiving:
            reader.feed(data)
            reader.position += taken
            self._read()
        return self._take_events()

    def read_more(self, now: float) -> list[Event]:
        """Take in more of the bytes that were received."""
        self.now = now
        self.has_more = False
        if self.is_receiving:
            self._read()
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
        if self.output.overdue > self.limits.max_backlog:
            self._end(ErrorCode.CONNECTION_ERROR, b"the peer does not read", local=True)

    def _read_frames(self) -> None:
        reader = self._reader
        begin, left = reader.position, self.frames_a_turn
        self.has_more = False
        while self.phase not in _NOT_READING:
            if not left:
                self.has_more = True
                break
            if self.has_only_streams and reader.held <= reader.limit:
                reader.position = read_runs(self, reader.data, reader.position)
            frame = reader.next()
            if frame is None:
                break
            left -= 1
            self._handle(frame)
        if reader.held > self.limits.max_early and self.is_awaiting_accept:
            raise ProtocolError("too much before the SETUP was answered")
        reader.update_deadline(self.now, begin, is_paused=self.is_awaiting_accept)

    def _handle(self, frame: bytes) -> None:
        stream_id, kind, flags = header(frame)
        if self.phase is _START:
            self._check_first_frame(stream_id, kind, frame)
        elif self.phase is _RESUMING and (stream_id or kind not in _RESUME_ANSWERS):
            raise ProtocolError("neither RESUME_OK nor an error in answer to RESUME")
        elif stream_id and kind in _CONNECTION_FRAMES:
            self.count_useless()
            return
        elif stream_id and self.output.resume_buffer is not None:
            self.output.resume_buffer.received += len(frame)
        decoded: Any = decode_body(stream_id, kind, flags, frame)
        if self.phase is _START:
            self._on_first_frame(decoded)
        elif decoded is None:
            self.count_useless()
        else:
            if kind != _ERROR:
                self.is_confirmed = True
            _ON_FRAME[kind](self, decoded)

    def _take_events(self) -> list[Event]:
        if self.is_draining:
            self._end_when_drained()
        events, self.events = self.events, []
        return events

    # -- setup -------------------------------------------------------------------------------------
    def confirm(self) -> None:
        """Request an answer to SETUP, after which the connection `is_confirmed`, or has ended.

        It is a KEEPALIVE, which the server answers once it has accepted the SETUP.
        """
        if not self.is_confirmed:
            self._send_keepalive(True)

    def _open(self, setup: Setup, now: float) -> None:
        self.setup = setup
        self.phase = Phase.OPEN
        self._deadline = None
        if setup.lease:
            self.require_leases()
        if setup.token is not None and self._resumption is not None:
            self.output.resume_buffer = ResumeBuffer(self._resumption.max_store)
        self._restart_keepalive(now)

    def _restart_keepalive(self, now: float) -> None:
        if self.setup is not None:
            lifetime = self.setup.lifetime / 1000
            if not self.is_client:
                lifetime = min(lifetime, self.limits.max_lifetime)
            interval = self.setup.keepalive / 1000 if self.is_client else None
            if self._is_paused and not self.is_client:
                interval = min(max(self.setup.keepalive / 1000, _MIN_INTERVAL), _MAX_INTERVAL)
            self._keepalive_timer = KeepAliveTimer(now, lifetime, interval)

    def _check_first_frame(self, stream_id: int, kind: int, frame: bytes) -> None:
        """Check that a client's first frame is SETUP or RESUME, in a known version."""
        if kind not in _FIRST_FRAMES or stream_id:
            raise ProtocolError("the first frame is neither SETUP nor RESUME")
        versions, code = _FIRST_FRAMES[FrameType(kind)]
        if len(frame) >= 10 and _VERSION(frame, 6) not in versions:
            raise ProtocolError("only version 1.0 is spoken here", code)

    def _on_first_frame(self, frame: Setup | Resume | None) -> None:
        """Let the application decide on SETUP or RESUME."""
        if isinstance(frame, Resume):
            if self._resumption is None:
                message = "sessions are not resumed here"
                raise ProtocolError(message, ErrorCode.REJECTED_RESUME)
            self.events.append(frame)
        elif isinstance(frame, Setup):
            if frame.token is not None and self._resumption is None:
                message = "sessions are not resumed here"
                raise ProtocolError(message, ErrorCode.REJECTED_SETUP)
            if frame.lease and not self._allow_leases:
                raise ProtocolError("no leases are given here", ErrorCode.UNSUPPORTED_SETUP)
            self.setup = frame
            self.events.append(frame)
        self._deadline = None
        self.phase = Phase.DECIDING

    def accept(self, now: float) -> None:
        """Accept the client of a `Setup`; what it has sent since is taken in now."""
        if self.phase is not Phase.DECIDING or self.setup is None:
            raise RuntimeError("there is no SETUP to accept")
        self.now = now
        self._open(self.setup, now)
        self.is_confirmed = True
        self._reader.limit = self.limits.max_frame
        self._read()

    def reject(self, reason: str = "", code: int | None = None) -> None:
        """Reject a client's SETUP or RESUME; nothing it sends is served."""
        if self.phase is not Phase.DECIDING:
            raise RuntimeError("there is no SETUP or RESUME to reject")
        if code is None:
            code = ErrorCode.REJECTED_RESUME if self.setup is None else ErrorCode.REJECTED_SETUP
        self.fail(code, reason)

    def detach(self) -> bytes:
        """Leave the transport to the session that a RESUME named; what was read after the RESUME.

        That session takes it in by `receive` after `resume`.
        """
        if self.phase is not Phase.DECIDING or self.setup is not None:
            raise RuntimeError("only a connection that asked to RESUME can be handed over")
        self.phase = Phase.CLOSED
        return self._reader.rest()

    # -- frames of stream 0 ------------------------------------------------------------------------
    def metadata_push(self, metadata: bytes) -> None:
        if not self.close_reason:
            self.output.put_control(encode(MetadataPush(metadata)))

    def _on_setup(self, _: Setup) -> None:
        self.count_useless()

    def _on_resume(self, _: Resume) -> None:
        if not self.is_client:
            raise ProtocolError("RESUME on a connection that is set up")
        self.count_useless()

    def _on_lease(self, frame: Lease) -> None:
        lease = self.received_lease
        if lease is None:
            self.count_useless()
            return
        lease.grant(frame.requests, frame.ttl / 1000, self.now)
        self.events.append(frame)

    def _on_keepalive(self, frame: KeepAlive) -> None:
        self.count_useless()
        if self.output.resume_buffer is not None:
            self.output.resume_buffer.acknowledge(frame.position)
        if frame.respond:
            self.flood.spend(KEEPALIVE, self.now)
            self._send_keepalive(False, frame.data)

    def _send_keepalive(self, respond: bool, data: bytes = b"") -> None:
        buffer = self.output.resume_buffer
        frame = KeepAlive(respond, buffer.received if buffer else 0, data)
        self.output.put_control(encode(frame))

    def _on_metadata_push(self, frame: MetadataPush) -> None:
        if not self._takes_pushes:
            self.count_useless()
        self.events.append(frame)

    def _on_ext(self, frame: Ext) -> None:
        if not frame.ignore:
            raise ProtocolError(f"an unknown extension: 0x{frame.extended_type:X}")
        self.count_useless()

    def on_error(self, frame: Error) -> None:
        """An ERROR on a stream; on stream 0, it is one of the connection."""
        if frame.stream_id:
            super().on_error(frame)
        elif frame.code in _SETUP_ERRORS:
            # It may be late: a server may answer keepalives before it has authenticated the client.
            if self.is_client:
                self._end(frame.code, frame.data, local=False)
            else:
                self.count_useless()
        elif frame.code == ErrorCode.CONNECTION_ERROR:
            self._end(frame.code, frame.data, local=False)
        elif frame.code == ErrorCode.CONNECTION_CLOSE and not self.is_draining:
            self.is_draining, self._drain_reason = True, frame.data
            self.close_reason = "the peer is closing the connection"
        else:
            self.count_useless()

    # -- out ---------------------------------------------------------------------------------------
    @property
    def queued_bytes(self) -> int:
        """The output queued, in bytes."""
        return self.output.queued_bytes

    @property
    def has_single_stream(self) -> bool:
        """Whether it is open with one stream."""
        return len(self.streams.by_id) == 1 and self.phase is _OPEN

    @property
    def has_output(self) -> bool:
        """Whether there is something to send, or demand to make frames of."""
        return bool(self.output.queued_bytes or self.requesting) and self.phase is not _RESUMING

    @property
    def has_final_output(self) -> bool:
        """Whether complete output is queued that no answer would confirm."""
        output, streams = self.output, self.streams.by_id.values()
        is_flushing = any(stream.state is State.FLUSHING for stream in streams)
        return bool(output) and (is_flushing or bool(output.control))

    def flush(self, now: float) -> list[Event]:
        """End a turn: pass on the peer's demand as far as there is room; the events so far."""
        self.now = now
        if self.grants and self.phase is _OPEN:
            self.grants.grant(self.events)
        return self._take_events()

    def last_output(self) -> bytes | None:
        """Take all output, perhaps none, if that is all there is to do in a turn, as in most.

        None if there are events, demand to pass on, a deadline of a frame, an end to consider, too
        much output, frames to be kept, or a peer that is to be read more slowly.
        """
        output = self.output
        if (
            self.phase is not _OPEN
            or self.is_draining
            or self.events
            or self.grants
            or self._reader.deadline is not None
            or self.reassemblies.deadline is not None
            or self.flood.may_be_owed
            or self.has_more
            or output.resume_buffer is not None
            or output.rotation.fragmented_bytes
            or output.queued_bytes > COALESCE_LIMIT
        ):
            return None
        if not (output.queued_bytes or self.requesting):
            return b""
        return b"".join(self.take_output(COALESCE_LIMIT))

    def data_to_send(self, at_most: int = 64 * 1024) -> bytes:
        """Take output: all of it, or a little more than *at_most* bytes."""
        phase = self.phase
        if phase is _RESUMING:
            return b"".join(self.output.take_control())
        if phase in (Phase.SUSPENDED, Phase.CLOSED):
            return b""
        data = b"".join(self.take_output(at_most)) if self.has_output else b""
        if phase is Phase.CLOSING and not self.output:
            self.phase = Phase.CLOSED
        return data

    # -- memory ------------------------------------------------------------------------------------
    @property
    def held_bytes(self) -> int:
        """What is held for the peer: output, part of a frame, frames that may be sent again.

        Unfinished payloads count by themselves.
        """
        output = self.output
        kept = 0 if output.resume_buffer is None else output.resume_buffer.size
        return output.queued_bytes + self._reader.held + kept

    def hold_less(self, in_transport: int) -> bool:
        """The process holds too much for its peers: give up what can be, beyond a little.

        *in_transport* are bytes of a message that is not whole. Whether the connection ends by it.
        """
        most, kept = self.limits.watermark, self.output.resume_buffer
        if kept is not None:
            kept.shrink(most)
        if self._reader.held + in_transport > most:
            message = "part of a frame, while the process holds as much as it may for its peers"
            self.fail(ErrorCode.CONNECTION_ERROR, message)
            return True
        return False

    # -- time --------------------------------------------------------------------------------------
    def pause_reading(self, now: float) -> None:
        """This side reads nothing from now on: no silence and no unfinished frame is the peer's.

        The peer gets no answers to its keepalives either: a server sends some by itself.
        """
        self._is_paused = True
        self._reader.deadline = None
        self.reassemblies.pause()
        if not self.is_client and self._keepalive_timer is not None:
            self._restart_keepalive(now)

    def resume_reading(self, now: float) -> None:
        """This side reads again."""
        self._is_paused = False
        self._reader.restart_deadline(now)
        self.reassemblies.restart(now)
        if not self.is_client and self._keepalive_timer is not None:
            self._restart_keepalive(now)
        self.note_activity(now)

    def note_activity(self, now: float) -> None:
        """The peer has sent something, perhaps not a frame yet: it is alive."""
        self.now = now
        timer = self._keepalive_timer
        if timer is not None:  # `timer.reset(now)`, without its call
            timer.deadline = now + timer.lifetime
            timer.has_grace = True

    def next_deadline(self) -> float | None:
        """When `tick` is due, if nothing happens before."""
        soonest, read_deadline = self._deadline, self._reader.deadline
        if read_deadline is not None and (soonest is None or read_deadline < soonest):
            soonest = read_deadline
        fragment_deadline = self.reassemblies.deadline
        if fragment_deadline is not None and (soonest is None or fragment_deadline < soonest):
            soonest = fragment_deadline
        if self._drains_by_own_will and self.now < self._drain_until:
            soonest = self._drain_until if soonest is None else min(soonest, self._drain_until)
        if self.flood.may_be_owed:
            reads_on = self.now + self.flood.owed(self.now)
            soonest = reads_on if soonest is None else min(soonest, reads_on)
        if self._keepalive_timer is not None:
            keepalive = self._keepalive_timer.next_deadline()
            if soonest is None or keepalive < soonest:
                soonest = keepalive
        return soonest

    def is_slowed(self, now: float) -> bool:
        """Whether nothing is to be read for a while: the peer has let this side do too much."""
        return self.flood.may_be_owed and self.flood.owed(now) > 0.0

    def tick(self, now: float) -> list[Event]:
        """Act on deadlines that have passed."""
        self.now = now
        if self.reassemblies.deadline is not None and now >= self.reassemblies.deadline:
            self.refuse_overdue()
        deadline, timer = self._reader.deadline, self._keepalive_timer
        if self._deadline is not None and now >= self._deadline:
            if self.phase is Phase.START:
                self.fail(ErrorCode.INVALID_SETUP, "no SETUP came in time")
            else:
                message = b"the session was not resumed in time"
                self._end(ErrorCode.CONNECTION_ERROR, message, local=True)
        elif deadline is not None and now >= deadline:
            self.fail(ErrorCode.CONNECTION_ERROR, "the rest of a frame did not come in time")
        elif timer is not None and timer.is_expired(now):
            if self._is_paused:
                timer.reset(now)
            else:
                self.is_peer_silent = True
                self.fail(ErrorCode.CONNECTION_ERROR, "no sign of life from the peer")
        elif timer is not None and timer.is_due(now):
            self._send_keepalive(self.is_client)
        return self._take_events()

    # -- the end -----------------------------------------------------------------------------------
    def _end(self, code: int, data: bytes, *, local: bool, last: bytes | None = None) -> None:
        """End the connection now, except for sending the *last* frame."""
        if self.phase >= Phase.CLOSING:
            return
        if self.phase is Phase.SUSPENDED:
            last = None  # there is no transport to send it
        self.phase = Phase.CLOSING
        self._deadline = self._keepalive_timer = None
        self.close_reason = "the connection is closed"
        self.end_all(code, data, local=local)
        if last is not None:
            self.output.put_control(last)
        self.events.append(Closed(code, data, local))
        if not self.output:
            self.phase = Phase.CLOSED
        self._reader.clear()

    def fail(self, code: int, message: str) -> None:
        """Send an ERROR on stream 0, and close."""
        data = message.encode()[: self.limits.mtu - 10]
        self._end(code, data, local=True, last=encode(Error(0, code, data)))

    def close(self, message: str = "") -> None:
        """Close now; open streams fail."""
        is_busy = bool(self.streams.by_id)
        code = ErrorCode.CONNECTION_ERROR if is_busy else ErrorCode.CONNECTION_CLOSE
        self.fail(code, message)

    def close_gracefully(self, message: str = "", until: float = -inf) -> None:
        """Announce the end; it comes when the open streams have ended.

        Requests of the peer may be in transit, and are rejected: so it is the peer that closes, or
        this side after *until*.
        """
        if self.is_draining or self.phase >= Phase.CLOSING:
            return
        self.is_draining = self._drains_by_own_will = True
        self._drain_until = until
        self.close_reason = "the connection is closing"
        data = message.encode()[: self.limits.mtu - 10]
        self.output.put_control(encode(Error(0, ErrorCode.CONNECTION_CLOSE, data)))

    @property
    def _is_drained(self) -> bool:
        return self.is_draining and not self.streams.by_id

    def _end_when_drained(self) -> None:
        """End an announced end if no stream and no output is left."""
        if self._is_drained and not self.output and self.now >= self._drain_until:
            is_local = self._drains_by_own_will
            self._end(ErrorCode.CONNECTION_CLOSE, self._drain_reason, local=is_local)

    # -- another transport -------------------------------------------------------------------------
    def transport_lost(self, now: float, reason: str = "the transport was closed") -> list[Event]:
        """The transport has ended. A session that may be resumed waits for another, others end."""
        self._reader.clear()
        is_drained = self._drains_by_own_will and self._is_drained
        if is_drained or not self._suspend(now):
            if is_drained:  # the peer has closed, as it should
                self._end(ErrorCode.CONNECTION_CLOSE, b"", local=True)
            else:
                self._end(ErrorCode.CONNECTION_ERROR, reason.encode(), local=False)
            self.output.drop_all()
            self.phase = Phase.CLOSED
        return self._take_events()

    def _suspend(self, now: float) -> bool:
        """Wait for another transport, if the session may be resumed; whether it may."""
        may_resume = self.output.resume_buffer is not None and self.phase <= Phase.RESUMING
        if self._resumption is None or not may_resume:
            return False
        self.output.drop_transport_frames()
        self.reassemblies.pause()
        if self.phase is Phase.OPEN:
            self._deadline = now + self._resumption.timeout
        self.phase = Phase.SUSPENDED
        self._keepalive_timer = None
        return True

    def transport_replaced(self, now: float) -> None:
        """A client has a new transport for a suspended session: RESUME is sent."""
        self.now = now
        buffer = self.output.resume_buffer
        if self.phase is not Phase.SUSPENDED or buffer is None or self.setup is None:
            raise RuntimeError("only a client's session that is suspended can be resumed")
        self.output.drop_transport_frames()  # queued while there was no transport
        if self.setup.token is not None:
            frame = Resume(self.setup.token, buffer.received, buffer.first)
            self.output.put_control(encode(frame))
        self.phase = Phase.RESUMING

    def _on_resume_ok(self, frame: ResumeOk) -> None:
        buffer = self.output.resume_buffer
        if self.phase is not Phase.RESUMING or buffer is None:
            self.count_useless()
        elif buffer.can_resume(frame.last_received):
            self._resume(buffer, frame.last_received)
        else:
            raise ProtocolError(f"position {frame.last_received} is not kept any more")

    def resume(self, frame: Resume, now: float) -> bool:
        """Resume a server's session on the transport that received *frame*; False if impossible.

        Then the connection that received it must `reject` it, and the session has ended.
        """
        self._reader.clear()  # part of a frame of the old transport, if its loss is not known yet
        buffer = self.output.resume_buffer
        if buffer is None or self.phase not in (Phase.OPEN, Phase.SUSPENDED):
            return False
        self.now = now
        is_kept = buffer.can_resume(frame.last_received)
        if not is_kept or frame.first_available > buffer.received:
            self._end(ErrorCode.REJECTED_RESUME, b"the position is not kept", local=True)
            return False
        self._suspend(now)
        self.output.put_control(encode(ResumeOk(buffer.received)))
        self._resume(buffer, frame.last_received)
        return True

    def _resume(self, buffer: ResumeBuffer, position: int) -> None:
        buffer.acknowledge(position)
        self.output.replay(buffer.frames())
        self.phase = Phase.OPEN
        self._deadline = None
        self.reassemblies.restart(self.now)
        if self.received_lease is not None:  # leases do not outlive a transport
            self.require_leases()
        self._restart_keepalive(self.now)
        self.events.append(Resumed())


_ON_FRAME: Final[dict[int, Callable[[Connection, Any], object]]] = {
    FrameType.PAYLOAD: Connection.on_payload,
    **dict.fromkeys(RESPONDER_STATES, Connection.on_request),
    FrameType.CANCEL: Connection.on_cancel,
    FrameType.REQUEST_N: Connection.on_request_n,
    FrameType.ERROR: Connection.on_error,
    FrameType.KEEPALIVE: Connection._on_keepalive,
    FrameType.LEASE: Connection._on_lease,
    FrameType.METADATA_PUSH: Connection._on_metadata_push,
    FrameType.EXT: Connection._on_ext,
    FrameType.SETUP: Connection._on_setup,
    FrameType.RESUME: Connection._on_resume,
    FrameType.RESUME_OK: Connection._on_resume_ok,
}
"""What takes the frames of each kind."""
