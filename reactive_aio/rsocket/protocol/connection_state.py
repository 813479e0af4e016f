"""The life of a connection: setup, stream 0, the end of a transport, the end of it all.

::

    client                                    server
      OPEN ── SETUP is on its way               START ── SETUP ──▶ ASKED ── accept ──▶ OPEN
      OPEN ◀── RESUME_OK ── RESUMING            START ── RESUME ─▶ ASKED ── hand over (CLOSED)
    both
      OPEN ── transport lost ──▶ SUSPENDED (if it may resume) or CLOSED
      any ── error, close ──▶ CLOSING ── all sent ──▶ CLOSED
"""

from dataclasses import replace
from enum import IntEnum
from secrets import token_bytes
from struct import Struct
from typing import Any, Final

from .codec import encode, header
from .errors import ProtocolError
from .events import (
    Closed,
    Draining,
    ExtensionReceived,
    LeaseReceived,
    MetadataReceived,
    Resumed,
    ResumeReceived,
    SetupReceived,
    Suspended,
)
from .frames import (
    VERSION,
    Error,
    ErrorCode,
    Ext,
    FrameType,
    KeepAlive,
    Lease,
    MetadataPush,
    RequestN,
    Resume,
    ResumeOk,
    Setup,
)
from .keepalive import KeepAliveTimer
from .lease import Allowance
from .limits import Limits
from .resume import ResumeBuffer, Resumption
from .stream_machine import StreamMachine
from .stream_opening import StreamOpener

__all__ = ("ConnectionState", "Phase")

_VERSION: Final = Struct(">HH").unpack_from
_RESUMES: Final = frozenset({VERSION, (0, 1)})
"""rsocket-js says in SETUP 1.0 and in RESUME 0.1, of one and the same session."""
_SETUP_ERRORS: Final = frozenset(
    {
        ErrorCode.INVALID_SETUP,
        ErrorCode.UNSUPPORTED_SETUP,
        ErrorCode.REJECTED_SETUP,
        ErrorCode.REJECTED_RESUME,
    }
)


class Phase(IntEnum):
    """How far a connection has come."""

    START = 0
    DECIDING = 1
    OPEN = 2
    SUSPENDED = 3
    RESUMING = 4
    CLOSING = 5
    CLOSED = 6


class ConnectionState:
    """What outlives a frame. `Connection` adds what drives it."""

    def __init__(
        self,
        setup: Setup | None,
        now: float,
        *,
        limits: Limits,
        prefixed: bool,
        lease: bool,
        resumption: Resumption | None,
        extensions: frozenset[int],
    ) -> None:
        self.is_client: bool = setup is not None
        self.limits: Limits = limits
        self.phase: Phase = Phase.START
        self.draining: bool = False
        self.closing_here: bool = False
        """Whether draining was this side's wish."""
        self.exchanges: StreamMachine = StreamMachine(
            limits, client=self.is_client, prefixed=prefixed
        )
        self.requests: StreamOpener = StreamOpener(self.exchanges)
        self.setup: Setup | None = None
        self._lease = lease
        self._resumption = resumption
        self._extensions = extensions
        self._confirmed = False
        self._store: ResumeBuffer | None = None
        self._timer: KeepAliveTimer | None = None
        self._deadline: float | None = now + limits.setup_timeout
        self._zeros = 0
        if setup is not None:
            if resumption is not None and setup.token is None:
                setup = replace(setup, token=token_bytes(16))
            self.exchanges.out.control(encode(setup))
            self._begin(setup, now)

    # -- setup -------------------------------------------------------------------------------------
    def _begin(self, setup: Setup, now: float) -> None:
        """The connection is open, by the terms of *setup*."""
        self.setup = setup
        self.phase = Phase.OPEN
        self._deadline = None
        if setup.lease:
            self.requests.held, self.requests.given = Allowance(), Allowance()
        if setup.token is not None and self._resumption is not None:
            self._store = self.exchanges.out.store = ResumeBuffer(self._resumption.max_store)
        self._restart(now)

    def _restart(self, now: float) -> None:
        if self.setup is not None:
            lifetime = self.setup.lifetime / 1000
            if not self.is_client:
                lifetime = min(lifetime, self.limits.max_lifetime)
            interval = self.setup.keepalive / 1000 if self.is_client else None
            self._timer = KeepAliveTimer(now, lifetime, interval)

    def first_frame(self, frame: bytes) -> None:
        """A server's first: it must be SETUP or RESUME."""
        stream_id, kind, _ = header(frame)
        if kind not in (FrameType.SETUP, FrameType.RESUME) or stream_id:
            raise ProtocolError("the first frame is neither SETUP nor RESUME")
        if len(frame) < 10:
            return
        version: tuple[int, ...] = _VERSION(frame, 6)
        if kind == FrameType.SETUP and version != VERSION:
            code = ErrorCode.UNSUPPORTED_SETUP
            raise ProtocolError("only version 1.0 is spoken here", code)
        if kind == FrameType.RESUME and version not in _RESUMES:
            code = ErrorCode.REJECTED_RESUME
            raise ProtocolError("only version 1.0 is spoken here", code)

    def asked(self, frame: Any) -> None:
        """SETUP or RESUME has come: whether it is let in, the application decides."""
        if isinstance(frame, Resume):
            if self._resumption is None:
                message = "sessions are not resumed here"
                raise ProtocolError(message, ErrorCode.REJECTED_RESUME)
            self.exchanges.events.append(ResumeReceived(frame))
        elif isinstance(frame, Setup):
            if frame.token is not None and self._resumption is None:
                message = "sessions are not resumed here"
                raise ProtocolError(message, ErrorCode.REJECTED_SETUP)
            if frame.lease and not self._lease:
                raise ProtocolError("no leases are given here", ErrorCode.UNSUPPORTED_SETUP)
            self.setup = frame
            self.exchanges.events.append(SetupReceived(frame))
        self._deadline = None
        self.phase = Phase.DECIDING

    # -- stream 0 ----------------------------------------------------------------------------------
    def on_setup(self, frame: Setup) -> None:
        del frame
        self.exchanges.useless()

    def on_resume(self, frame: Resume) -> None:
        del frame
        if not self.is_client:
            raise ProtocolError("RESUME on a connection that is set up")
        self.exchanges.useless()

    def on_lease(self, frame: Lease) -> None:
        if self.requests.held is None:
            self.exchanges.useless()
            return
        self.requests.held.grant(frame.requests, frame.ttl / 1000, self.exchanges.now)
        self.exchanges.events.append(LeaseReceived(frame))

    def on_keepalive(self, frame: KeepAlive) -> None:
        self.exchanges.useless()
        if self._store is not None:
            self._store.acknowledge(frame.position)
        if frame.respond:
            self.exchanges.out.control(encode(self.keepalive(False, frame.data)))

    def keepalive(self, respond: bool, data: bytes = b"") -> KeepAlive:
        return KeepAlive(respond, self._store.received if self._store else 0, data)

    def on_metadata_push(self, frame: MetadataPush) -> None:
        self.exchanges.useless()
        self.exchanges.events.append(MetadataReceived(frame.metadata))

    def on_ext(self, frame: Ext) -> None:
        if frame.extended_type in self._extensions:
            self.exchanges.events.append(ExtensionReceived(frame))
        elif frame.ignore:
            self.exchanges.useless()
        else:
            raise ProtocolError(f"an unknown extension: 0x{frame.extended_type:X}")

    def on_request_n(self, frame: RequestN) -> None:
        if frame.n:
            self.exchanges.on_request_n(frame)
            return
        self.exchanges.useless()
        self._zeros += 1
        if self._zeros > self.limits.max_zero_requests:
            raise ProtocolError("requests for 0 elements, again and again")

    def on_error(self, frame: Error) -> None:
        if frame.stream_id:
            self.exchanges.on_error(frame)
        elif frame.code in _SETUP_ERRORS:
            if self.is_client and (not self._confirmed or self.phase is Phase.RESUMING):
                self.end(frame.code, frame.data, local=False)
            else:
                self.exchanges.useless()
        elif frame.code == ErrorCode.CONNECTION_ERROR:
            self.end(frame.code, frame.data, local=False)
        elif frame.code == ErrorCode.CONNECTION_CLOSE and not self.draining:
            self.draining = True
            self.requests.closed = "the peer is closing the connection"
            self.exchanges.events.append(Draining(frame.data))
        else:
            self.exchanges.useless()

    # -- the end -----------------------------------------------------------------------------------
    def end(self, code: int, data: bytes, *, local: bool, last: bytes | None = None) -> None:
        """It is over, at once but for the *last* frame."""
        if self.phase >= Phase.CLOSING:
            return
        if self.phase is Phase.SUSPENDED:
            last = None  # there is no transport to take it
        self.phase = Phase.CLOSING
        self._deadline = self._timer = None
        self.requests.closed = "the connection is closed"
        self.exchanges.end_all(code, data, local=local)
        if last is not None:
            self.exchanges.out.control(last)
        self.exchanges.events.append(Closed(code, data, local))
        if not self.exchanges.out:
            self.phase = Phase.CLOSED

    def fail(self, code: int, message: str) -> None:
        """Tell the peer what is wrong, and close."""
        data = message.encode()[: self.limits.mtu - 10]
        self.end(code, data, local=True, last=encode(Error(0, code, data)))

    def close_now(self) -> None:
        """Nothing more is sent, nothing more is heard."""
        self.phase = Phase.CLOSED

    def drained(self) -> bool:
        """Whether a connection that is to be closed has nothing left to do."""
        return self.draining and not self.exchanges.streams.live and not self.exchanges.out

    # -- resuming ----------------------------------------------------------------------------------
    def suspend(self, now: float) -> bool:
        """The transport is gone; whether the session may outlive it."""
        if self._store is None or self._resumption is None or self.phase > Phase.RESUMING:
            return False
        if self.phase is not Phase.SUSPENDED:
            self.exchanges.out.lose()
            self.exchanges.events.append(Suspended())
        if self.phase is Phase.OPEN:
            self._deadline = now + self._resumption.timeout
        self.phase = Phase.SUSPENDED
        self._timer = None
        return True

    def ask_to_resume(self) -> None:
        """A client has a new transport."""
        store = self._store
        if self.phase is not Phase.SUSPENDED or store is None or self.setup is None:
            raise RuntimeError("only a client's session that is suspended can be resumed")
        self.exchanges.out.lose()  # of what was said meanwhile, only streams outlive the transport
        if self.setup.token is not None:
            frame = Resume(self.setup.token, store.received, store.first)
            self.exchanges.out.control(encode(frame))
        self.phase = Phase.RESUMING

    def on_resume_ok(self, frame: ResumeOk) -> None:
        store = self._store
        if self.phase is not Phase.RESUMING or store is None:
            self.exchanges.useless()
        elif store.can_resume(frame.last_received):
            self._go_on(store, frame.last_received)
        else:
            raise ProtocolError(f"position {frame.last_received} is not kept any more")

    def take_over(self, frame: Resume, now: float) -> bool:
        """A server's session goes on, on the transport that brought *frame*, if it can."""
        store = self._store
        if store is None or self.phase not in (Phase.OPEN, Phase.SUSPENDED):
            return False
        self.exchanges.now = now
        known = store.can_resume(frame.last_received)
        if not known or frame.first_available > store.received:
            self.end(ErrorCode.REJECTED_RESUME, b"the position is not kept", local=True)
            return False
        self.suspend(now)
        self.exchanges.out.lose()
        self.exchanges.out.control(encode(ResumeOk(store.received)))
        self._go_on(store, frame.last_received)
        return True

    def _go_on(self, store: ResumeBuffer, position: int) -> None:
        store.acknowledge(position)
        self.exchanges.out.replay(store.frames())
        self.phase = Phase.OPEN
        self._deadline = None
        if self.requests.held is not None:  # leases do not outlive a transport
            self.requests.held, self.requests.given = Allowance(), Allowance()
        self._restart(self.exchanges.now)
        self.exchanges.events.append(Resumed())
