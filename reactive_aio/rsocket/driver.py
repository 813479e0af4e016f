"""The driver: it brings one `Connection` together with a transport, the clock and the application.

A turn takes in what has come, tells those whom it concerns, passes on the peer's demand, and writes
what there is with one call. Nothing here waits: no task, no lock, one timer.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Final

from .._core.loop import Future, LoopHandle, Task, TimerHandle, wait_settled
from .connection_tasks import ConnectionTasks
from .deadline_timer import DeadlineTimer
from .interfaces import BatchSender, Rebind, Responder, StreamReceiver, StreamSender, Transport
from .protocol.connection import Connection
from .protocol.errors import StreamFailed, error_of
from .protocol.events import (
    Closed,
    Event,
    LeaseReceived,
    MetadataReceived,
    RequestReceived,
    ResponseRequests,
    Responses,
    Resumed,
    ResumeReceived,
    SetupReceived,
)
from .protocol.frames import ErrorCode, Payload
from .protocol.stream_states import InteractionModel
from .stream_registry import StreamRegistry
from .write_backpressure import WriteBackpressure

__all__ = ("Driver", "lost_error")

WRITE: Final = 64 * 1024
CLOSE_TIMEOUT: Final = 5.0


class Driver:
    """One connection at work, on the loop on which it was made."""

    # These are the class's until they are set: CPython 3.11 is slow with objects that have 29
    # attributes of their own, so that a request cost a third more.
    close_reason: StreamFailed | None = None
    """Why the connection is over, once it is."""
    user: Any = None
    """What the authentication of the peer returned."""
    is_resume_only: bool = False
    """The peer may have a session back, but not begin one."""
    refused: bool = False
    """The peer was not let in; it may have sent more, which nobody reads."""
    on_closed: "Callable[[Driver], object] | None" = None
    """Called once, when it is over and nothing is left of it."""
    on_suspended: "Callable[[Driver], object] | None" = None
    """Called when a session lost its transport, and waits for another."""

    def __init__(
        self, make: Callable[[float], Connection], responder: Responder | None = None
    ) -> None:
        self.loop_handle: LoopHandle = LoopHandle("an RSocket connection")
        self.connection: Connection = make(self.loop_handle.time())
        parties = StreamRegistry()
        self.receivers: dict[int, StreamReceiver] = parties.receivers
        self.senders: dict[int, StreamSender] = parties.senders
        self.responses: dict[int, Future[bytes]] = parties.responses
        self.work: ConnectionTasks = ConnectionTasks(self.loop_handle)
        self.at_resume: list[Callable[[], object]] = []  # called whenever a session goes on
        self.waiting: list[Callable[[], object]] = []
        """Called, once, when the peer grants a lease, or the connection is over."""
        self._ends: list[Callable[[Driver], object]] = []
        self._responder = responder
        self._transport: Transport | None = None
        self._rebind: Rebind | None = None
        self._writable = True
        self._held = False  # nothing is read
        self._planned = False
        self._lone = True  # not more than one thing happened when bytes came last
        self._alarm = DeadlineTimer(self.loop_handle, self._tick)
        self._kill: TimerHandle | None = None
        self._gone: Future[None] | None = None
        self._room: WriteBackpressure = WriteBackpressure(self)
        self._gathered: list[BatchSender] = []
        self._over = False  # the transport has ended
        self._farewell = False  # the peer took leave, and left no stream open
        self._doomed = False  # it is to end, should there ever be one
        self._on: dict[type[Any], Callable[[Any], None]] = self._handlers() | parties.handlers()

    def _handlers(self) -> dict[type[Any], Callable[[Any], None]]:
        return {
            RequestReceived: self._requested,
            ResponseRequests: self._questions,
            SetupReceived: self._asked,
            ResumeReceived: self._resume_asked,
            Resumed: self._resumed,
            LeaseReceived: self._leased,
            MetadataReceived: self._pushed,
            Closed: self._closed,
        }

    # -- for the transport -------------------------------------------------------------------------
    def attach(self, transport: Transport, rebind: Rebind | None = None) -> None:
        """Begin, or go on, on a transport that is ready.

        One that has a method `rebind`, or comes with one, can be passed on to another driver.
        """
        self._transport, self._rebind = transport, rebind or getattr(transport, "rebind", None)
        self._writable, self._held = True, False
        if self._doomed or self._over:
            transport.abort()
        elif self.connection.is_suspended:
            self.connection.transport_replaced(self.loop_handle.time())
        self.schedule_turn()

    def data_received(self, data: bytes) -> None:
        self._planned = True  # this turn is under way
        events = self.connection.receive(data, self.loop_handle.time())
        self._lone = _at_most_one(events)
        self._dispatch(events)
        if self._gathered or self._room or not self.connection.is_idle:
            self._turn()
        elif self._lone:
            self._planned = False
            self._alarm.set(self.connection.next_deadline())
        else:  # those who were answered ask again before that turn, in the same round of the loop
            self.loop_handle.call_soon(self._turn)

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self.schedule_turn()

    def connection_lost(self, error: BaseException | None = None) -> None:
        """The transport has ended. A session that may go on without it waits for another one."""
        if self._over:
            return
        self._planned = True
        reason = "the transport was closed" if error is None else f"the transport failed: {error}"
        self._dispatch(self.connection.transport_lost(self.loop_handle.time(), reason))
        self._transport = self._rebind = None
        if not self.connection.is_suspended:
            self._end()
            return
        self._writable = self._held = self._planned = False
        self._alarm.set(self.connection.next_deadline())
        if self.on_suspended is not None:
            self.on_suspended(self)

    def _end(self) -> None:
        """Nothing is left of it."""
        if self._over:
            return
        self._over = self._planned = True
        self._gathered.clear()
        self._alarm.stop()
        if self._kill is not None:
            self._kill.cancel()
            self._kill = None
        self._room.make()
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        if self._farewell and self.work:  # nobody waits for it: it may end in peace
            self._kill = self.loop_handle.call_later(CLOSE_TIMEOUT, self.work.stop)
            self.work.when_idle(self._leave)
        else:
            self.work.stop()
            self._leave()

    def _leave(self) -> None:
        """Tell those who want to know that it is over."""
        if self._kill is not None:
            self._kill.cancel()
        ends, self._ends = self._ends, []
        for each in ends:
            each(self)
        if self.on_closed is not None:
            self.on_closed(self)

    def add_close_callback(self, callback: "Callable[[Driver], object]") -> None:
        """Have *callback* called when nothing is left of the connection."""
        if self._over:
            callback(self)
        else:
            self._ends.append(callback)

    def get_extra_info(self, name: str) -> Any:
        """What the transport says of itself by *name*, as asyncio's ``get_extra_info``."""
        ask = getattr(self._transport, "get_extra_info", None)
        return None if ask is None else ask(name)

    # -- for the application -----------------------------------------------------------------------
    def schedule_turn(self) -> None:
        """Have a turn soon; any number of calls lead to one."""
        if not self._planned:
            self._planned = True
            self.loop_handle.call_soon(self._turn)

    def send_request(self) -> None:
        """A request has been made: it leaves at once if it is the only one, else in a turn."""
        if self._planned:
            return
        if self._lone and self.connection.has_single_stream:
            self._write()
            if not self.connection.has_output:
                return
        self.schedule_turn()

    def schedule_send(self, sender: BatchSender) -> None:
        """*sender* has elements, to be sent in the next turn."""
        self._gathered.append(sender)
        self.schedule_turn()

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> "Task[Any] | None":
        """Start a task that does not outlive the connection."""
        if self.close_reason is not None:
            work.close()
            return None
        return self.work.spawn(work, name)

    async def drain(self) -> None:
        """Wait until little waits to be sent."""
        await self._room.wait()

    def accept(self) -> None:
        """Let the client in."""
        if not self._over and self.connection.is_awaiting_accept:
            self.connection.accept(self.loop_handle.time())
            self.schedule_turn()

    def reject(self, reason: str = "") -> None:
        """Do not let the client in."""
        if not self._over and self.connection.is_awaiting_accept:
            self.connection.reject(reason)
            self.refused = True
            self.schedule_turn()

    async def aclose(self) -> None:
        """End the connection, streams and all, and wait until nothing of it is left."""
        await self._room.said(CLOSE_TIMEOUT)
        if self.close_reason is None:
            self.connection.close()
            self.schedule_turn()
        if not self._over and (self._transport is not None or self.connection.is_closed):
            if self._gone is None:
                self._gone = self.loop_handle.create_future()
            await wait_settled(self._gone)
        self.work.stop()
        await self.work.ended()

    def abort(self) -> None:
        """End it without a word."""
        self._doomed = True
        if self._transport is not None and not self._over:
            self._transport.abort()

    # -- a turn ------------------------------------------------------------------------------------
    def _turn(self) -> None:
        if not self._planned or self._over:
            return
        connection, now = self.connection, self.loop_handle.time()
        while True:
            gathered, self._gathered = self._gathered, []
            for each in gathered:
                each.send()
            if not (events := connection.flush(now)):
                break
            self._dispatch(events)
        self._write()
        self._planned = False
        if events := connection.flush(now):  # there is room again: in the next turn
            self._planned = True
            self._dispatch(events)
            self._planned = False
            self.schedule_turn()
        elif connection.has_output and self._writable:
            self.schedule_turn()
        self._hold()
        self._alarm.set(connection.next_deadline())
        if connection.is_closed:
            self._finish()
        elif self._room and connection.queued_bytes < connection.limits.watermark:
            self._room.make()

    def _write(self) -> None:
        transport = self._transport
        if transport is not None and self._writable:
            data = self.connection.data_to_send(WRITE)
            if data:
                transport.write(data)

    def _hold(self) -> None:
        """Read nothing while the connection is waiting for the application."""
        held = self.connection.is_awaiting_accept
        if held is not self._held and self._transport is not None:
            self._held = held
            if held:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _finish(self) -> None:
        transport = self._transport
        if transport is None:
            self._end()
        elif not self._over:
            half: Any = transport
            if self.refused and hasattr(half, "can_write_eof") and half.can_write_eof():
                # To close a socket with bytes that were not read resets it, and the peer may lose
                # the reason. It ends when the peer has seen it, or after CLOSE_TIMEOUT.
                half.write_eof()
            else:
                transport.close()

    # -- time --------------------------------------------------------------------------------------
    def _tick(self) -> None:
        now = self.loop_handle.time()
        deadline = self.connection.next_deadline()
        if deadline is not None and now >= deadline:
            self._planned = True
            self._dispatch(self.connection.tick(now))
            self._turn()
        else:
            self._alarm.set(deadline)

    # -- events ------------------------------------------------------------------------------------
    def _dispatch(self, events: list[Event]) -> None:
        for event in events:
            act = self._on.get(type(event))
            if act is not None:
                act(event)

    def _requested(self, event: RequestReceived) -> None:
        if self._responder is not None:
            self._responder.serve(self, event)
        elif event.model is not InteractionModel.FNF:
            reason = b"nothing is served here"
            self.connection.fail_stream(event.stream_id, ErrorCode.REJECTED, reason)

    def _questions(self, event: ResponseRequests) -> None:
        if self._responder is not None:
            self._responder.respond(self, event.requests)
            return
        for stream_id, data, metadata in event.requests:
            self._requested(
                RequestReceived(stream_id, InteractionModel.RESPONSE, Payload(data, metadata))
            )

    def _asked(self, event: SetupReceived) -> None:
        if self._responder is not None:
            self._responder.admit(self, event.setup)
        else:
            self.connection.reject("nobody is let in here")

    def _resume_asked(self, event: ResumeReceived) -> None:
        if self._responder is not None:
            self._responder.resume(self, event.resume)
        else:
            self.connection.reject("nobody is let in here")

    def _resumed(self, _: Resumed) -> None:
        for each in self.at_resume:
            each()

    def _leased(self, _: LeaseReceived | Closed) -> None:
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each()

    def _pushed(self, event: MetadataReceived) -> None:
        if self._responder is not None:
            self._responder.pushed(self, event.metadata)

    def _closed(self, event: Closed) -> None:
        self.close_reason = error_of(event.code, event.data)
        if event.code == ErrorCode.CONNECTION_CLOSE or not isinstance(
            self.close_reason, ConnectionError
        ):
            self.close_reason = error_of(ErrorCode.CONNECTION_CLOSE, event.data or b"it was closed")
        self._farewell = event.code == ErrorCode.CONNECTION_CLOSE and not event.local
        if not self._farewell:
            self.work.stop()
        self._leased(event)
        if not self._over and self._transport is not None and self._kill is None:
            self._kill = self.loop_handle.call_later(CLOSE_TIMEOUT, self.abort)


def _at_most_one(events: list[Event]) -> bool:
    """Whether no more than one thing happened, so that what it leads to may leave at once."""
    if not events:
        return True
    if len(events) > 1:
        return False
    match events[0]:
        case Responses(several) | ResponseRequests(several):
            return len(several) == 1
        case _:
            return True


def lost_error(driver: Driver) -> StreamFailed:
    """Why nothing can be asked for any more."""
    return driver.close_reason or error_of(ErrorCode.CONNECTION_CLOSE, b"the connection is closed")
