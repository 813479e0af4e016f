"""Bytes in: frames out of them, each to whom it concerns, and everything wrong answered."""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from .codec import decode, decode_body, header
from .connection_state import ConnectionState, Phase
from .errors import ProtocolError
from .events import Event
from .fast_path import FastPath
from .frames import (
    Cancel,
    Error,
    ErrorCode,
    Ext,
    FrameType,
    KeepAlive,
    Lease,
    MetadataPush,
    PayloadFrame,
    RequestChannel,
    RequestFnf,
    RequestN,
    RequestResponse,
    RequestStream,
    Resume,
    ResumeOk,
    Setup,
)
from .framing import FrameSplitter
from .limits import Limits
from .resume import Resumption

__all__ = ("Intake",)

# To look up a member of an enum takes five times as long as to look up a global.
_START: Final = Phase.START
_ASKED: Final = Phase.DECIDING
_OPEN: Final = Phase.OPEN
_RESUMING: Final = Phase.RESUMING

_CONNECTION: Final = frozenset(
    {
        FrameType.SETUP,
        FrameType.LEASE,
        FrameType.KEEPALIVE,
        FrameType.METADATA_PUSH,
        FrameType.RESUME,
        FrameType.RESUME_OK,
    }
)
"""Frames that make sense on stream 0 only. All the others have a position."""
_ANSWERS: Final = frozenset({FrameType.RESUME_OK, FrameType.ERROR})
_NOT_NOW: Final = frozenset({Phase.DECIDING, Phase.SUSPENDED, Phase.CLOSING, Phase.CLOSED})


class Intake(ConnectionState):
    """A session that reads."""

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
        super().__init__(
            setup,
            now,
            limits=limits,
            prefixed=prefixed,
            lease=lease,
            resumption=resumption,
            extensions=extensions,
        )
        self._splitter = FrameSplitter(limits.max_frame if self.is_client else limits.max_setup)
        self._early: deque[bytes] = deque()
        self._early_size = 0
        self._half: float | None = None
        self._lane = FastPath(self.exchanges, self.requests)
        on = self.exchanges
        request = self.requests.on_request
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            PayloadFrame: on.on_payload,
            RequestResponse: request,
            RequestStream: request,
            RequestFnf: request,
            RequestChannel: request,
            RequestN: self.on_request_n,
            Cancel: on.on_cancel,
            Error: self.on_error,
            KeepAlive: self.on_keepalive,
            Lease: self.on_lease,
            MetadataPush: self.on_metadata_push,
            Ext: self.on_ext,
            Setup: self.on_setup,
            Resume: self.on_resume,
            ResumeOk: self.on_resume_ok,
        }

    def receive(self, data: bytes, now: float) -> list[Event]:
        """Bytes have come, cut anywhere."""
        if data and self._hear(now):
            splitter, taken = self._splitter, 0
            if self._quick and not splitter.held and len(data) <= splitter.limit:
                taken = self._lane.read(data, 0)
            if taken < len(data):
                splitter.feed(data)
                splitter.position += taken
                self._guard(self._read)
        return self._events()

    def receive_frame(self, frame: bytes, now: float) -> list[Event]:
        """A message has come, which is a frame."""
        if self._hear(now):
            self._early.append(frame)
            self._early_size += len(frame)
            self._guard(self._read)
        return self._events()

    def note_activity(self, now: float) -> None:
        """Something has come that is not a frame yet, or never will be: the peer lives."""
        self._hear(now)

    @property
    def is_awaiting_accept(self) -> bool:
        """Whether nothing more should be read from the transport, until `accept` or `reject`."""
        return self.phase is _ASKED

    def _hear(self, now: float) -> bool:
        self.exchanges.now = now
        if self._timer is not None:
            self._timer.reset(now)
        return self.phase < Phase.CLOSING and self.phase is not Phase.SUSPENDED

    def _guard(self, what: Callable[[], None]) -> None:
        try:
            what()
        except ProtocolError as error:
            code = error.code
            if self.phase is _START and code == ErrorCode.CONNECTION_ERROR:
                code = ErrorCode.INVALID_SETUP
            self.fail(code, str(error))
        if self.exchanges.out.backlog > self.limits.max_backlog:
            self.end(ErrorCode.CONNECTION_ERROR, b"the peer does not read", local=True)

    def end(self, code: int, data: bytes, *, local: bool, last: bytes | None = None) -> None:
        super().end(code, data, local=local, last=last)
        self._forget_input()

    def _read(self) -> None:
        """Take in all frames that are whole."""
        splitter = self._splitter
        at_rest = splitter.position
        while self.phase not in _NOT_NOW:
            frame = self._next()
            if frame is None:
                break
            self._frame(frame)
        if splitter.held + self._early_size > self.limits.max_early and self.is_awaiting_accept:
            raise ProtocolError("too much before the SETUP was answered")
        if not splitter.held or self.is_awaiting_accept:
            self._half = None
        elif self._half is None or splitter.position != at_rest:
            self._half = self.exchanges.now + self.limits.frame_timeout

    @property
    def _quick(self) -> bool:
        """Whether there is nothing but streams to think of."""
        return self._confirmed and self._store is None and self.phase is _OPEN

    def _next(self) -> bytes | None:
        if self._early:
            frame, most = self._early.popleft(), self._splitter.limit
            self._early_size -= len(frame)
            if len(frame) > most:
                raise ProtocolError(f"a frame of {len(frame)} bytes; at most {most} are taken")
            return frame
        splitter = self._splitter
        if self._quick and splitter.held <= splitter.limit:
            splitter.position = self._lane.read(splitter.data, splitter.position)
        return splitter.next()

    def _frame(self, frame: bytes) -> None:
        if self.phase is _START:
            self.first_frame(frame)
            self.asked(decode(frame))
            return
        stream_id, kind, flags = header(frame)
        if self.phase is _RESUMING and (stream_id or kind not in _ANSWERS):
            raise ProtocolError("neither RESUME_OK nor an error in answer to RESUME")
        if self._store is not None and stream_id and kind not in _CONNECTION:
            self._store.received += len(frame)
        if stream_id and kind in _CONNECTION:
            self.exchanges.useless()
            return
        decoded = decode_body(stream_id, kind, flags, frame)
        if decoded is None:
            self.exchanges.useless()
            return
        if not isinstance(decoded, Error):
            self._confirmed = True
        self._handlers[type(decoded)](decoded)

    def _open_wide(self) -> None:
        """The peer is no stranger any more."""
        self._confirmed = True
        self._splitter.limit = self.limits.max_frame

    def _forget_input(self) -> None:
        self._splitter.clear()
        self._early.clear()
        self._early_size = 0
        self._half = None

    def _events(self) -> list[Event]:
        """What has happened since this was asked last."""
        if self.draining and self.drained():
            self.end(ErrorCode.CONNECTION_CLOSE, b"", local=self.closing_here)
        events = self.exchanges.events
        if not events:
            return []
        self.exchanges.events = []
        return events
