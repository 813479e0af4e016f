"""A connection without a transport: bytes and deadlines in, bytes and events out.

Whoever drives it owns the socket and the clock::

    events = connection.receive(data, now)      # or receive_frame, where messages are kept apart
    ... act on each event ...                   # commands: request, send, complete, fail, cancel …
    events = connection.flush(now)              # the end of a turn: demand that may be passed on
    data = connection.data_to_send()            # or frames_to_send
    deadline = connection.next_deadline()       # then: connection.tick(now)

Nothing that a peer sends raises an exception: it becomes an event, an answer, or the end. What
raises is this side's own mistake. *now* is any clock in seconds that never goes back.
"""

from typing import TYPE_CHECKING, Final

from ..._core.demand import require_demand
from .codec import encode
from .connection_state import Phase
from .events import Event
from .frame_reader import Intake
from .frames import (
    Error,
    ErrorCode,
    Ext,
    Lease,
    MetadataPush,
    PayloadTuple,
    Resume,
    Setup,
)
from .limits import Limits
from .resume import Resumption
from .stream_states import InteractionModel, State

if TYPE_CHECKING:
    from .streams import Stream

__all__ = ("Connection",)

# To look up a member of an enum takes five times as long as to look up a global.
_OPEN: Final = Phase.OPEN
_CLOSING: Final = Phase.CLOSING
_CLOSED: Final = Phase.CLOSED


class Connection(Intake):
    """One RSocket connection, of a client or a server. It belongs to one thread."""

    def __init__(
        self,
        setup: Setup | None,
        now: float,
        *,
        limits: Limits | None = None,
        prefixed: bool = True,
        lease: bool = False,
        resumption: Resumption | None = None,
        extensions: frozenset[int] = frozenset(),
    ) -> None:
        """A client's connection if there is a *setup*, else a server's.

        *prefixed*: frames stand behind their length, as on TCP. *lease*, *resumption*: whether
        a server takes clients that want the one or the other; for a client, *resumption* asks for
        it. *extensions*: types of EXT frames that the application understands.
        """
        super().__init__(
            setup,
            now,
            limits=limits or Limits(),
            prefixed=prefixed,
            lease=lease,
            resumption=resumption,
            extensions=extensions,
        )

    def __repr__(self) -> str:
        side = "client" if self.is_client else "server"
        streams = len(self.exchanges.streams.live)
        return f"<Connection {side} {self.phase.name} streams={streams} queued={self.queued_bytes}>"

    # -- a server's choice -------------------------------------------------------------------------
    def accept(self, now: float) -> None:
        """Let in the client that `SetupAsked`; what it has sent since is taken in now."""
        if self.phase is not Phase.DECIDING or self.setup is None:
            raise RuntimeError("there is no SETUP to accept")
        self.exchanges.now = now
        self._begin(self.setup, now)
        self._open_wide()
        self._guard(self._read)

    def reject(self, reason: str = "", code: int | None = None) -> None:
        """Refuse a client's SETUP or RESUME; nothing it sends is served."""
        if self.phase is not Phase.DECIDING:
            raise RuntimeError("there is no SETUP or RESUME to reject")
        if code is None:
            code = ErrorCode.REJECTED_RESUME if self.setup is None else ErrorCode.REJECTED_SETUP
        self.fail(code, reason)

    def detach(self) -> list[bytes]:
        """Leave the transport to the session that a RESUME asked for: what was read behind it.

        That session gets it by `receive` (or `receive_frame`, one by one) after `resume`.
        """
        if self.phase is not Phase.DECIDING or self.setup is not None:
            raise RuntimeError("only a connection that asked to RESUME can be handed over")
        rest = [self._splitter.rest(), *self._early]
        self.close_now()
        self._forget_input()
        return [each for each in rest if each]

    # -- this side's requests ----------------------------------------------------------------------
    def request_response(self, payload: PayloadTuple) -> int:
        """Ask for one element. All requests return the id of their stream."""
        return self.requests.ask_one(payload)

    def fire_and_forget(self, payload: PayloadTuple) -> int:
        return self.requests.begin(InteractionModel.FNF, payload, 1, self.exchanges.now, False)

    def request_stream(self, payload: PayloadTuple, n: int) -> int:
        """Ask for a stream, and for its first *n* elements."""
        return self.requests.begin(
            InteractionModel.STREAM, payload, require_demand(n), self.exchanges.now, False
        )

    def request_channel(self, payload: PayloadTuple, n: int, *, complete: bool = False) -> int:
        """Open a channel with its first element, and ask for *n*."""
        now = self.exchanges.now
        return self.requests.begin(
            InteractionModel.CHANNEL, payload, require_demand(n), now, complete
        )

    def metadata_push(self, metadata: bytes) -> None:
        if self.requests.closed:
            return
        self.exchanges.out.control(encode(MetadataPush(metadata)))

    def send_extension(self, frame: Ext) -> None:
        """Send a frame of an extension."""
        if not self.requests.closed:
            self.exchanges.out.control(encode(frame))

    # -- streams -----------------------------------------------------------------------------------
    def request(self, stream_id: int, n: int) -> None:
        """Ask for *n* more elements. Requests add up until something is sent."""
        self.exchanges.request(stream_id, n)

    def cancel(self, stream_id: int) -> bool:
        """Want no more of a stream; nothing is sent on it after that.

        A requester ends the stream by it; on a channel, a responder stops what comes in.
        """
        return self.exchanges.cancel(stream_id)

    def send(self, stream_id: int, payload: PayloadTuple, *, complete: bool = False) -> bool:
        """Send an element, one of those `Demanded`, or the answer; False if nobody wants it."""
        return self.exchanges.send(stream_id, payload, complete=complete)

    def respond(self, stream_id: int, data: bytes) -> bool:
        """The same for the one element that a request asked for, if it has no metadata."""
        return self.exchanges.answer(stream_id, data)

    def send_all(self, stream_id: int, elements: list[bytes]) -> bool:
        """The same for elements that have no metadata, all at once."""
        return self.exchanges.send_all(stream_id, elements)

    def complete(self, stream_id: int) -> bool:
        """What goes out on a stream is complete."""
        return self.exchanges.complete(stream_id)

    def fail_stream(self, stream_id: int, code: int, data: bytes = b"") -> bool:
        """End a stream by an error, behind what has been sent on it."""
        return self.exchanges.fail(stream_id, code, data)

    # -- leases ------------------------------------------------------------------------------------
    def grant_lease(self, requests: int, ttl: int, metadata: bytes | None = None) -> None:
        """Allow the peer *requests* requests within *ttl* milliseconds; this replaces the last."""
        self.requests.lease(Lease(ttl, requests, metadata), self.exchanges.now)

    # -- out ---------------------------------------------------------------------------------------
    @property
    def prefixed(self) -> bool:
        """Whether frames stand behind their length; else each is a message."""
        return self.exchanges.out.prefixed

    @property
    def queued_bytes(self) -> int:
        """How many bytes wait to be sent."""
        return self.exchanges.out.queued

    @property
    def is_idle(self) -> bool:
        """Whether it is open, and has nothing to say, to the peer or to the application."""
        each = self.exchanges
        busy = each.out.queued or each.events or each.asking or each.waiting or self.draining
        return not busy and self.phase is _OPEN

    @property
    def has_single_stream(self) -> bool:
        """Whether there is one stream, and nothing else to be sent than what is said on it."""
        exchanges = self.exchanges
        return len(exchanges.streams.live) == 1 and self.phase is _OPEN

    @property
    def has_output(self) -> bool:
        """Whether there is something to send, or demand to be turned into frames."""
        if self.exchanges.out.queued or self.exchanges.asking:
            return self.phase is not Phase.RESUMING  # then, everything waits for the answer
        return False

    @property
    def has_final_output(self) -> bool:
        """Whether something waits to be sent that is whole, and that nobody would answer."""
        exchanges = self.exchanges
        if not exchanges.out.queued:
            return False
        return exchanges.out.talks or any(
            stream.state is State.FLUSHING for stream in exchanges.streams.live.values()
        )

    def flush(self, now: float) -> list[Event]:
        """End a turn: pass on the peer's demand as far as there is room; what has happened."""
        self.exchanges.now = now
        if self.exchanges.waiting and self.phase is _OPEN:
            self.exchanges.grant()
        return self._events()

    def data_to_send(self, at_most: int = 64 * 1024) -> bytes:
        """Take out bytes to be sent: all that wait, or a little more than *at_most*."""
        return b"".join(self.frames_to_send(at_most))

    def frames_to_send(self, at_most: int = 64 * 1024) -> list[bytes]:
        """The same, frame by frame."""
        out = self.exchanges.out
        if self.phase is _OPEN:
            if not (out.queued or self.exchanges.asking):
                return []
        else:
            if self.phase in (Phase.SUSPENDED, Phase.CLOSED):
                return []
            if self.phase is Phase.RESUMING:
                return out.take_control()
        if self.exchanges.asking:
            self.exchanges.ask_peer()
        flushed: list[Stream] = []
        answered: list[int] = []
        frames = out.drain(at_most, flushed, answered)
        if flushed:
            self.exchanges.flushed(flushed)
        if answered:
            self.exchanges.answered(answered)
        if self.phase is _CLOSING and not out:
            self.close_now()
        return frames

    # -- time --------------------------------------------------------------------------------------
    def next_deadline(self) -> float | None:
        """When `tick` is wanted, if nothing happens before."""
        soonest = self._deadline
        if self._half is not None and (soonest is None or self._half < soonest):
            soonest = self._half
        if self._timer is not None:
            next_ = self._timer.next_deadline()
            if soonest is None or next_ < soonest:
                soonest = next_
        return soonest

    def tick(self, now: float) -> list[Event]:
        """Time has passed."""
        self.exchanges.now = now
        if self._deadline is not None and now >= self._deadline:
            self._too_late()
        elif self._half is not None and now >= self._half:
            self.fail(ErrorCode.CONNECTION_ERROR, "the rest of a frame did not come in time")
        elif self._timer is not None and self._timer.is_expired(now):
            self.fail(ErrorCode.CONNECTION_ERROR, "no sign of life from the peer")
        elif self._timer is not None and self._timer.is_due(now):
            self.exchanges.out.control(encode(self.keepalive(True)))
        return self._events()

    def _too_late(self) -> None:
        if self.phase is Phase.START:
            self.fail(ErrorCode.INVALID_SETUP, "no SETUP came in time")
        else:
            message = b"the session was not resumed in time"
            self.end(ErrorCode.CONNECTION_ERROR, message, local=True)

    # -- the end -----------------------------------------------------------------------------------
    @property
    def is_confirmed(self) -> bool:
        """Whether the peer has said anything that means that it is there."""
        return self._confirmed

    @property
    def is_suspended(self) -> bool:
        """Whether it has no transport, and waits for another."""
        return self.phase is Phase.SUSPENDED

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left to send or to expect: the transport can be closed."""
        return self.phase is _CLOSED

    def close(self, message: str = "") -> None:
        """End it now; streams that are open fail."""
        busy = bool(self.exchanges.streams.live)
        self.fail(ErrorCode.CONNECTION_ERROR if busy else ErrorCode.CONNECTION_CLOSE, message)

    def close_gracefully(self, message: str = "") -> None:
        """Open no more streams, and close when those that are open have ended."""
        if self.draining or self.phase >= Phase.CLOSING:
            return
        self.draining = self.closing_here = True
        self.requests.closed = "the connection is closing"
        data = message.encode()[: self.limits.mtu - 10]
        self.exchanges.out.control(encode(Error(0, ErrorCode.CONNECTION_CLOSE, data)))

    def transport_lost(self, now: float, reason: str = "the transport was closed") -> list[Event]:
        """The transport has ended. A session that may be resumed is `Suspended`."""
        self._forget_input()
        if not self.suspend(now):
            self.end(ErrorCode.CONNECTION_ERROR, reason.encode(), local=False)
            self.exchanges.out.forget()
            self.close_now()
        return self._events()

    def transport_replaced(self, now: float) -> None:
        """A client has a new transport for a session that was suspended: RESUME is on its way."""
        self.exchanges.now = now
        self.ask_to_resume()

    def resume(self, frame: Resume, now: float) -> bool:
        """A server's session goes on, on the transport that brought *frame*; False if it cannot.

        Then the connection that asked must `reject` it, and the session has ended.
        """
        self._forget_input()  # half a frame of the old transport, if that was not known to be lost
        return self.take_over(frame, now)
