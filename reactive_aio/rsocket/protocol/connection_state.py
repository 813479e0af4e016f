"""The life of a connection: setup, frames of stream 0, resuming and the end.

::

    client                                    server
      OPEN ── SETUP is sent first               START ── SETUP ──▶ DECIDING ── accept ──▶ OPEN
      OPEN ◀── RESUME_OK ── RESUMING            START ── RESUME ─▶ DECIDING ── detach ──▶ CLOSED
    both
      OPEN ── transport lost ──▶ SUSPENDED (if it may be resumed) or CLOSED
      any ── error, close ──▶ CLOSING ── all output taken ──▶ CLOSED
"""

from dataclasses import replace
from enum import IntEnum
from math import inf
from secrets import token_bytes
from struct import Struct
from typing import Final

from .codec import encode, header
from .errors import ProtocolError
from .events import Closed, Confirmed, Draining, Resumed, Suspended
from .fast_path import FastPath
from .frame_reader import FrameReader
from .frames import (
    VERSION,
    Error,
    ErrorCode,
    Ext,
    Frame,
    FrameType,
    KeepAlive,
    Lease,
    MetadataPush,
    Resume,
    ResumeOk,
    Setup,
)
from .limits import Limits
from .pace import KEEPALIVE
from .resume import ResumeBuffer, Resumption
from .stream_machine import StreamMachine

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


_GRACE: Final = 1.0
_MIN_INTERVAL: Final = 1.0
_MAX_INTERVAL: Final = 20.0
"""The interval of a server's keepalives while it reads nothing: only when it sends does it notice
that the client has gone, but it does not send as often as the client would have it."""


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
_OPEN: Final = Phase.OPEN


class KeepAliveTimer:
    """The deadlines of one connection: an *interval* of keepalives, a *lifetime* of silence.

    Times are in seconds.

    Any bytes of the peer prove that it is alive, not only its keepalives. Only a client sends
    keepalives unprompted (`interval` is None on a server). A process that was stopped or busy has
    not read either: if a deadline is noticed late, the peer gets a second more.
    """

    __slots__ = ("_next", "deadline", "has_grace", "interval", "lifetime")

    def __init__(self, now: float, lifetime: float, interval: float | None) -> None:
        self.lifetime: float = lifetime
        self.interval: float | None = interval
        self._next = now + interval if interval is not None else None
        self.deadline: float = now + lifetime
        self.has_grace: bool = True

    def reset(self, now: float) -> None:
        self.deadline = now + self.lifetime
        self.has_grace = True

    def is_due(self, now: float) -> bool:
        """Whether it is time to send one; then the next is due an interval later."""
        if self._next is None or self.interval is None or now < self._next:
            return False
        self._next = now + self.interval
        return True

    def is_expired(self, now: float) -> bool:
        if now < self.deadline:
            return False
        if now - self.deadline > _GRACE and self.has_grace:
            self.has_grace = False
            self.deadline = now + _GRACE
            return False
        return True

    def next_deadline(self) -> float:
        return self.deadline if self._next is None else min(self.deadline, self._next)


class ConnectionState:
    """The phase of a connection, what its SETUP agreed on, and its deadlines. See `Connection`."""

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
        self.limits: Limits = limits or Limits()
        self.is_client: bool = setup is not None
        self.length_prefixed: bool = length_prefixed
        """Whether each frame follows its length; else each is a message."""
        self.phase: Phase = Phase.START
        self.setup: Setup | None = None
        """The client's SETUP, once it has been sent or received."""
        self.is_confirmed: bool = False
        """Whether a frame of the peer has proved that it knows of the connection."""
        self.is_draining: bool = False
        """Whether the connection closes when its streams have ended."""
        self.is_peer_silent: bool = False
        """Whether it has ended since the peer gave no sign of life."""
        self.streams: StreamMachine = StreamMachine(self.limits, client=self.is_client)
        self.fast_path: FastPath = FastPath(self.streams)
        """What most commands and most received bytes take; see there."""
        max_frame = self.limits.max_frame if self.is_client else self.limits.max_setup
        self._reader = FrameReader(max_frame, self.limits.frame_timeout)
        self._output = self.streams.output
        self._allow_leases = lease
        self._resumption = resumption
        self._extensions = extensions
        self._takes_pushes = metadata_pushes
        self._is_paused = False
        """Whether this side reads nothing for the time being, by its own decision."""
        self._drains_by_own_will = False
        self._reports_confirmation = False
        self._drain_reason = b""
        self._drain_until = -inf
        """Until when the peer may close a connection that this side is closing."""
        self._resume_buffer: ResumeBuffer | None = None
        self._keepalive_timer: KeepAliveTimer | None = None
        self._deadline: float | None = now + self.limits.setup_timeout
        if setup is not None:
            if resumption is not None and setup.token is None:
                setup = replace(setup, token=token_bytes(16))
            self._output.put_control(encode(setup))
            self._open(setup, now)

    @property
    def is_awaiting_accept(self) -> bool:
        """Whether nothing should be read from the transport until `accept` or `reject`."""
        return self.phase is Phase.DECIDING

    @property
    def may_request(self) -> bool:
        """Whether this side may open streams: neither side is closing the connection."""
        return not self.streams.close_reason

    @property
    def is_suspended(self) -> bool:
        """Whether it has no transport, and waits for another."""
        return self.phase is Phase.SUSPENDED

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left to send or to expect: the transport can be closed."""
        return self.phase is Phase.CLOSED

    @property
    def has_only_streams(self) -> bool:
        """Whether only streams are left to consider: the fast path may read."""
        return self.is_confirmed and self._resume_buffer is None and self.phase is _OPEN

    @property
    def is_receiving(self) -> bool:
        """Whether bytes of the transport are still taken in."""
        return self.phase < Phase.CLOSING and self.phase is not Phase.SUSPENDED

    # -- setup -------------------------------------------------------------------------------------
    def confirm(self) -> None:
        """Request an answer to SETUP: the event `Confirmed`, or the end.

        It is a KEEPALIVE, which the server answers once it has accepted the SETUP.
        """
        if self.is_confirmed:
            self.streams.events.append(Confirmed())
        elif not self._reports_confirmation:
            self._reports_confirmation = True
            self._send_keepalive(True)

    def _confirmed(self) -> None:
        """A frame of the peer has proved that it knows of the connection."""
        self.is_confirmed = True
        if self._reports_confirmation:
            self.streams.events.append(Confirmed())

    def _open(self, setup: Setup, now: float) -> None:
        self.setup = setup
        self.phase = Phase.OPEN
        self._deadline = None
        if setup.lease:
            self.streams.require_leases()
        if setup.token is not None and self._resumption is not None:
            self._resume_buffer = ResumeBuffer(self._resumption.max_store)
            self._output.resume_buffer = self._resume_buffer
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

    def pause_reading(self, now: float) -> None:
        """This side reads nothing from now on: no silence and no unfinished frame is the peer's.

        The peer gets no answers to its keepalives either: a server sends some by itself.
        """
        self._is_paused = True
        self._reader.deadline = None
        self.streams.reassemblies.pause()
        if not self.is_client and self._keepalive_timer is not None:
            self._restart_keepalive(now)

    def resume_reading(self, now: float) -> None:
        """This side reads again."""
        self._is_paused = False
        self._reader.restart_deadline(now)
        self.streams.reassemblies.restart(now)
        if not self.is_client and self._keepalive_timer is not None:
            self._restart_keepalive(now)
        self.note_activity(now)

    def _check_first_frame(self, frame: bytes) -> None:
        """Check that a client's first frame is SETUP or RESUME, in a known version."""
        stream_id, kind, _ = header(frame)
        if kind not in _FIRST_FRAMES or stream_id:
            raise ProtocolError("the first frame is neither SETUP nor RESUME")
        versions, code = _FIRST_FRAMES[FrameType(kind)]
        if len(frame) >= 10 and _VERSION(frame, 6) not in versions:
            raise ProtocolError("only version 1.0 is spoken here", code)

    def _on_first_frame(self, frame: Frame | None) -> None:
        """Let the application decide on SETUP or RESUME."""
        if isinstance(frame, Resume):
            if self._resumption is None:
                message = "sessions are not resumed here"
                raise ProtocolError(message, ErrorCode.REJECTED_RESUME)
            self.streams.events.append(frame)
        elif isinstance(frame, Setup):
            if frame.token is not None and self._resumption is None:
                message = "sessions are not resumed here"
                raise ProtocolError(message, ErrorCode.REJECTED_SETUP)
            if frame.lease and not self._allow_leases:
                raise ProtocolError("no leases are given here", ErrorCode.UNSUPPORTED_SETUP)
            self.setup = frame
            self.streams.events.append(frame)
        self._deadline = None
        self.phase = Phase.DECIDING

    def _accept(self, now: float) -> None:
        if self.phase is not Phase.DECIDING or self.setup is None:
            raise RuntimeError("there is no SETUP to accept")
        self.streams.now = now
        self._open(self.setup, now)
        self.is_confirmed = True
        self._reader.limit = self.limits.max_frame

    def reject(self, reason: str = "", code: int | None = None) -> None:
        """Reject a client's SETUP or RESUME; nothing it sends is served."""
        if self.phase is not Phase.DECIDING:
            raise RuntimeError("there is no SETUP or RESUME to reject")
        if code is None:
            code = ErrorCode.REJECTED_RESUME if self.setup is None else ErrorCode.REJECTED_SETUP
        self.fail(code, reason)

    def _detach(self) -> None:
        if self.phase is not Phase.DECIDING or self.setup is not None:
            raise RuntimeError("only a connection that asked to RESUME can be handed over")
        self.phase = Phase.CLOSED

    # -- frames of stream 0 ------------------------------------------------------------------------
    def _count_received(self, size: int) -> None:
        """Count a frame of a stream, of *size* bytes, towards the position received."""
        if self._resume_buffer is not None:
            self._resume_buffer.received += size

    def _on_setup(self, _: Setup) -> None:
        self.streams.count_useless()

    def _on_resume(self, _: Resume) -> None:
        if not self.is_client:
            raise ProtocolError("RESUME on a connection that is set up")
        self.streams.count_useless()

    def _on_lease(self, frame: Lease) -> None:
        lease = self.streams.received_lease
        if lease is None:
            self.streams.count_useless()
            return
        lease.grant(frame.requests, frame.ttl / 1000, self.streams.now)
        self.streams.events.append(frame)

    def _on_keepalive(self, frame: KeepAlive) -> None:
        self.streams.count_useless()
        if self._resume_buffer is not None:
            self._resume_buffer.acknowledge(frame.position)
        if frame.respond:
            self.streams.pace.spend(KEEPALIVE, self.streams.now)
            self._send_keepalive(False, frame.data)

    def _send_keepalive(self, respond: bool, data: bytes = b"") -> None:
        buffer = self._resume_buffer
        frame = KeepAlive(respond, buffer.received if buffer else 0, data)
        self._output.put_control(encode(frame))

    def _on_metadata_push(self, frame: MetadataPush) -> None:
        if not self._takes_pushes:
            self.streams.count_useless()
        self.streams.events.append(frame)

    def _on_ext(self, frame: Ext) -> None:
        if frame.extended_type in self._extensions:
            self.streams.events.append(frame)
        elif frame.ignore:
            self.streams.count_useless()
        else:
            raise ProtocolError(f"an unknown extension: 0x{frame.extended_type:X}")

    def _on_error(self, frame: Error) -> None:
        """An ERROR on stream 0."""
        if frame.code in _SETUP_ERRORS:
            is_answer = not self.is_confirmed or self.phase is Phase.RESUMING
            if self.is_client and is_answer:
                self._end(frame.code, frame.data, local=False)
            else:
                self.streams.count_useless()
        elif frame.code == ErrorCode.CONNECTION_ERROR:
            self._end(frame.code, frame.data, local=False)
        elif frame.code == ErrorCode.CONNECTION_CLOSE and not self.is_draining:
            self.is_draining, self._drain_reason = True, frame.data
            self.streams.close_reason = "the peer is closing the connection"
            self.streams.events.append(Draining(frame.data))
        else:
            self.streams.count_useless()

    # -- time --------------------------------------------------------------------------------------
    def note_activity(self, now: float) -> None:
        """The peer has sent something, perhaps not a frame yet: it is alive."""
        self.streams.now = now
        timer = self._keepalive_timer
        if timer is not None:  # `timer.reset(now)`, without its call
            timer.deadline = now + timer.lifetime
            timer.has_grace = True

    def next_deadline(self) -> float | None:
        """When `tick` is due, if nothing happens before."""
        soonest, read_deadline = self._deadline, self._reader.deadline
        if read_deadline is not None and (soonest is None or read_deadline < soonest):
            soonest = read_deadline
        fragment_deadline = self.streams.reassemblies.deadline
        if fragment_deadline is not None and (soonest is None or fragment_deadline < soonest):
            soonest = fragment_deadline
        if self._drains_by_own_will and self.streams.now < self._drain_until:
            soonest = self._drain_until if soonest is None else min(soonest, self._drain_until)
        if self._keepalive_timer is not None:
            keepalive = self._keepalive_timer.next_deadline()
            if soonest is None or keepalive < soonest:
                soonest = keepalive
        return soonest

    def _act_on_deadlines(self, now: float) -> None:
        machine = self.streams
        machine.now = now
        if machine.reassemblies.deadline is not None and now >= machine.reassemblies.deadline:
            machine.refuse_overdue()
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

    # -- the end -----------------------------------------------------------------------------------
    def _end(self, code: int, data: bytes, *, local: bool, last: bytes | None = None) -> None:
        """End the connection now, except for sending the *last* frame."""
        if self.phase >= Phase.CLOSING:
            return
        if self.phase is Phase.SUSPENDED:
            last = None  # there is no transport to send it
        self.phase = Phase.CLOSING
        self._deadline = self._keepalive_timer = None
        self.streams.close_reason = "the connection is closed"
        self.streams.end_all(code, data, local=local)
        if last is not None:
            self._output.put_control(last)
        self.streams.events.append(Closed(code, data, local))
        if not self._output:
            self.phase = Phase.CLOSED
        self._reader.clear()

    def fail(self, code: int, message: str) -> None:
        """Send an ERROR on stream 0, and close."""
        data = message.encode()[: self.limits.mtu - 10]
        self._end(code, data, local=True, last=encode(Error(0, code, data)))

    def _close_when_sent(self) -> None:
        """Finish closing if no output is left."""
        if self.phase is Phase.CLOSING and not self._output:
            self.phase = Phase.CLOSED

    def close(self, message: str = "") -> None:
        """Close now; open streams fail."""
        is_busy = bool(self.streams.open.by_id)
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
        self.streams.close_reason = "the connection is closing"
        data = message.encode()[: self.limits.mtu - 10]
        self._output.put_control(encode(Error(0, ErrorCode.CONNECTION_CLOSE, data)))

    @property
    def _is_drained(self) -> bool:
        return self.is_draining and not self.streams.open.by_id

    def _end_when_drained(self) -> None:
        """End an announced end if no stream and no output is left."""
        if self._is_drained and not self._output and self.streams.now >= self._drain_until:
            is_local = self._drains_by_own_will
            self._end(ErrorCode.CONNECTION_CLOSE, self._drain_reason, local=is_local)

    # -- resuming ----------------------------------------------------------------------------------
    def _lose_transport(self, now: float, reason: str) -> None:
        self._reader.clear()
        if self._drains_by_own_will and self._is_drained:  # the peer has closed, as it should
            self._end(ErrorCode.CONNECTION_CLOSE, b"", local=True)
            self._output.drop_all()
            self.phase = Phase.CLOSED
        elif not self._suspend(now):
            self._end(ErrorCode.CONNECTION_ERROR, reason.encode(), local=False)
            self._output.drop_all()
            self.phase = Phase.CLOSED

    def _suspend(self, now: float) -> bool:
        if self._resume_buffer is None or self._resumption is None or self.phase > Phase.RESUMING:
            return False
        if self.phase is not Phase.SUSPENDED:
            self._output.drop_transport_frames()
            self.streams.events.append(Suspended())
            self.streams.reassemblies.pause()
        if self.phase is Phase.OPEN:
            self._deadline = now + self._resumption.timeout
        self.phase = Phase.SUSPENDED
        self._keepalive_timer = None
        return True

    def transport_replaced(self, now: float) -> None:
        """A client has a new transport for a suspended session: RESUME is sent."""
        self.streams.now = now
        buffer = self._resume_buffer
        if self.phase is not Phase.SUSPENDED or buffer is None or self.setup is None:
            raise RuntimeError("only a client's session that is suspended can be resumed")
        self._output.drop_transport_frames()  # queued while there was no transport
        if self.setup.token is not None:
            frame = Resume(self.setup.token, buffer.received, buffer.first)
            self._output.put_control(encode(frame))
        self.phase = Phase.RESUMING

    def _on_resume_ok(self, frame: ResumeOk) -> None:
        buffer = self._resume_buffer
        if self.phase is not Phase.RESUMING or buffer is None:
            self.streams.count_useless()
        elif buffer.can_resume(frame.last_received):
            self._resume(buffer, frame.last_received)
        else:
            raise ProtocolError(f"position {frame.last_received} is not kept any more")

    def resume(self, frame: Resume, now: float) -> bool:
        """Resume a server's session on the transport that received *frame*; False if impossible.

        Then the connection that received it must `reject` it, and the session has ended.
        """
        self._reader.clear()  # part of a frame of the old transport, if its loss is not known yet
        buffer = self._resume_buffer
        if buffer is None or self.phase not in (Phase.OPEN, Phase.SUSPENDED):
            return False
        self.streams.now = now
        is_kept = buffer.can_resume(frame.last_received)
        if not is_kept or frame.first_available > buffer.received:
            self._end(ErrorCode.REJECTED_RESUME, b"the position is not kept", local=True)
            return False
        self._suspend(now)
        self._output.drop_transport_frames()
        self._output.put_control(encode(ResumeOk(buffer.received)))
        self._resume(buffer, frame.last_received)
        return True

    def _resume(self, buffer: ResumeBuffer, position: int) -> None:
        buffer.acknowledge(position)
        self._output.replay(buffer.frames())
        self.phase = Phase.OPEN
        self._deadline = None
        self.streams.reassemblies.restart(self.streams.now)
        if self.streams.received_lease is not None:  # leases do not outlive a transport
            self.streams.require_leases()
        self._restart_keepalive(self.streams.now)
        self.streams.events.append(Resumed())
