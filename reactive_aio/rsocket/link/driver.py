"""The driver of a connection: a `Connection`, its transport, the clock and the application.

A turn of the driver takes in received bytes, passes their events to the local ends of streams,
passes on the peer's demand, and writes all output with one call. Nothing here blocks: a driver has
no task and no lock, and one timer.

The phases of its life are those of the connection, and `ending` says how it ends.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from ..._core.loop import LoopHandle
from ..protocol.connection import Connection
from ..protocol.events import (
    Closed,
    Event,
    RequestReceived,
    ResponseRequests,
    Resumed,
)
from ..protocol.flood import RESET
from ..protocol.frames import ErrorCode, Lease, Resume
from ..protocol.stream_states import InteractionModel
from .ending import Ending
from .held_requests import HeldRequests
from .intake import NO_ROOM, EndingHandlers, Intake
from .line import Line, Rebind, Transport
from .send_limit import SendLimit
from .stream_registry import ON_STREAM, BatchSender, StreamRegistry
from .tasks import ConnectionTasks, DeadlineTimer, Waiters
from .turns import Turns

WRITE_SIZE: Final = 64 * 1024
FRAMES_A_TURN: Final = 128
"""So many frames are read in a turn, unless they are of the kinds that cost little."""


class Responder(Protocol):
    """What serves the peer's requests, for all connections of a server or for one of a client."""

    unread_connections: int
    """The number of connections that were ended since the peer did not read."""

    @property
    def ending_handlers(self) -> EndingHandlers: ...
    @property
    def turns(self) -> Turns: ...

    def held_bytes(self, driver: "Driver", /) -> int:
        """The bytes of requests of *driver* without a response that wait."""
        ...

    def handle(self, driver: "Driver", event: Event, /) -> bool:
        """Act on an event of *driver*, if it is one for a responder."""
        ...


class Driver:
    """Drives one connection on the event loop on which it was made."""

    # Class attributes until they are set: most connections need few of them.
    user: Any = None
    """The result of authenticating the peer."""
    on_attached: "Callable[[Driver], object] | None" = None
    """Called when the driver has a transport, of which nothing has been read."""
    on_suspended: "Callable[[Driver], object] | None" = None
    """Called when a session loses its transport and waits for another."""
    is_heavy: bool = False
    """Whether its last turn took long, so that the next may have to wait for those of others."""
    unread: bytes = b""
    """What has arrived while others had their turns."""
    _send_limit: "SendLimit | None" = None

    def __init__(
        self, make: Callable[[float], Connection], responder: Responder | None = None
    ) -> None:
        """Drive the connection that *make* makes; without a *responder*, nothing is served."""
        self.loop_handle: LoopHandle = LoopHandle("an RSocket connection")
        self.connection: Connection = make(self.loop_handle.time())
        self.streams: StreamRegistry = StreamRegistry(self.connection.origin)
        self.held_requests: HeldRequests = HeldRequests()
        self.connection.frames_a_turn = FRAMES_A_TURN
        all_ending = EndingHandlers() if responder is None else responder.ending_handlers
        self.intake: Intake = Intake(
            self.connection, all_ending, self._update_reading, self.schedule_turn
        )
        self._responder = responder
        self.ending: Ending = Ending(self)
        self.line: Line = Line()
        self.tasks: ConnectionTasks = ConnectionTasks(self.loop_handle)
        self._timer = DeadlineTimer(
            self.loop_handle, self.connection.next_deadline, self._deadline_passed
        )
        self.waiters: Waiters = Waiters(self.loop_handle)
        self._has_turn = False  # a turn is scheduled or runs
        self._is_busy = False  # nothing is read, since the handlers have enough to do
        self._batch_senders: list[BatchSender] = []
        self._resume_callbacks: list[Callable[[], object]] = []

    # -- for the transport -------------------------------------------------------------------------
    def attach(self, transport: Transport, rebind: Rebind | None = None) -> None:
        """Begin or resume on a transport that is ready.

        A transport with a method `rebind`, or given with one, can move to another driver.
        """
        self.line = Line(transport, rebind)
        self._begin()
        if self.on_attached is not None:
            self.on_attached(self)
        self.schedule_turn()

    def _begin(self) -> None:
        """Begin or resume on the transport, unless there should be none."""
        if self.ending.is_aborted or self.ending.is_over:
            self.line.abort()
        elif self.connection.is_suspended:
            self.connection.transport_replaced(self.loop_handle.time())

    def data_received(self, data: bytes) -> None:
        if self._responder is None:
            self.read(data)
        else:
            self._responder.turns.read(self, data)

    def read(self, data: bytes) -> None:
        """Take in *data*, and do what the peer asks for in it."""
        self._has_turn = True  # it begins here
        connection, line, intake = self.connection, self.line, self.intake
        self.streams.answered = 0
        self._dispatch(connection.receive(data, self.loop_handle.event_loop.time()))
        is_waited_for = self.waiters.waiting or self.held_requests.waiting
        is_limited = intake.held or intake.counted or line.is_paused
        is_busy = self._batch_senders or is_waited_for or is_limited
        output = connection.last_output() if line.is_writable and not is_busy else None
        if output is None or line.transport is None:
            self._run_turn()
            return
        self._has_turn = False
        if output:
            line.transport.write(output)
        # There is demand for streams whose requests have just been sent; or those whose requests
        # were answered together make the next ones together.
        if connection.has_output or self.streams.answered > 1:
            self.schedule_turn()

    def pause_writing(self) -> None:
        line, seconds = self.line, self.connection.limits.send_timeout
        line.is_writable = False
        if line.transport is not None and not self.connection.is_client:
            if self._send_limit is None:
                self._send_limit = SendLimit(
                    self.loop_handle, seconds, lambda: self.line.blocked, self._lose
                )
            self._send_limit.start(line.transport)

    def resume_writing(self) -> None:
        """Output has left: the peer takes it, even if its signs of life wait in a slow link."""
        self.line.is_writable = True
        self.connection.note_activity(self.loop_handle.time())
        self.schedule_turn()

    def connection_lost(self, error: BaseException | None = None) -> None:
        """The transport has ended. A session that may be resumed waits for another one."""
        if self.ending.is_over:
            return
        self._has_turn = True
        self._read_what_waited()
        while self.connection.has_more:  # the peer has sent it before the end
            self._dispatch(self.connection.read_more(self.loop_handle.time()))
        reason = self.line.loss if error is None else f"the transport failed: {error}"
        self._dispatch(self.connection.transport_lost(self.loop_handle.time(), reason))
        self.line = Line()
        if self.connection.is_suspended:
            self._wait_for_transport()
        else:
            self.ending.end()

    def _lose(self, reason: str) -> None:
        """End the transport, since the peer does not read; a session may be resumed on another."""
        self.line.loss = reason
        if self._responder is not None:
            self._responder.unread_connections += 1
        self.line.abort()

    # -- for the application -----------------------------------------------------------------------
    @property
    def is_working(self) -> bool:
        """Whether a request is open, of either side, or a handler runs."""
        return bool(self.connection.streams.by_id) or self.tasks.has_work

    @property
    def running(self) -> int:
        """How many handlers run, those of cancelled requests included."""
        return len(self.streams.senders) + self.intake.ending

    def get_extra_info(self, name: str) -> Any:
        """The transport's information by *name*, as in asyncio; None if it has none."""
        transport = self.line.transport
        return None if transport is None else transport.get_extra_info(name)

    def schedule_turn(self) -> None:
        """Schedule a turn; any number of calls lead to one."""
        if not self._has_turn:
            self._has_turn = True
            self.loop_handle.call_soon(self._run_turn)

    def send_request(self) -> None:
        """Send a request: at once if no other is to be expected, else in a turn."""
        if self._has_turn:
            return
        if self.connection.has_single_stream:
            self._write()
            if not self.connection.has_output:
                return
        self.schedule_turn()

    def schedule_send(self, sender: BatchSender) -> None:
        """Let *sender* send the elements it has collected in the next turn."""
        self._batch_senders.append(sender)
        self.schedule_turn()

    def count_reset(self) -> None:
        """Count a request that has ended before its handler had a result."""
        self.connection.flood.spend(RESET, self.loop_handle.time())

    def count_held(self) -> None:
        """Count what is held for the peer; give up what is too much."""
        others = 0
        if self.intake.is_full and self._responder is not None:
            others = self._responder.held_bytes(self)
        if self.intake.count_memory(others, self.line.held):
            self.schedule_turn()

    async def drain(self) -> None:
        """Wait until the output queued is below the watermark."""
        while self.ending.reason is None and not self._has_room():
            self.schedule_turn()
            await self.waiters.until(self._has_room)

    def _has_room(self) -> bool:
        return self.connection.queued_bytes < self.connection.limits.watermark

    def hold_requests(self, event: ResponseRequests) -> None:
        """Serve the requests of *event* when the peer has read responses."""
        for stream_id in self.intake.hold(event.requests):
            self.connection.fail_stream(stream_id, ErrorCode.REJECTED, NO_ROOM)
        self.schedule_turn()

    def accept(self) -> None:
        """Accept the client."""
        if not self.ending.is_over and self.connection.is_awaiting_accept:
            self.connection.accept(self.loop_handle.time())
            self._timer.update()
            self.schedule_turn()

    def reject(self, reason: str = "", code: int | None = None) -> None:
        """Reject the client."""
        if not self.ending.is_over and self.connection.is_awaiting_accept:
            self.connection.reject(reason, code)
            self.ending.peer_has_to_read = True
            self.schedule_turn()

    async def confirm(self) -> None:
        """Wait until the server has accepted the SETUP, or the connection has ended."""
        self.connection.confirm()
        self.schedule_turn()
        if not self.ending.is_over:
            await self.waiters.until(lambda: self.connection.is_confirmed)

    async def wait_resumed(self) -> None:
        """Wait until the server has answered RESUME, or there is no transport to answer on."""
        if self.connection.is_resuming:
            await self.waiters.until(lambda: not self.connection.is_resuming)

    async def abort_transport(self) -> None:
        """End the transport, if there is one, and wait until it has ended.

        A session is then suspended, and may be resumed on another one.
        """
        self.line.abort()
        if self.line.transport is not None:
            await self.waiters.until(lambda: self.line.transport is None)

    def add_resume_callback(self, callback: Callable[[], object]) -> None:
        """Call *callback* whenever the session is resumed."""
        self._resume_callbacks.append(callback)

    def add_close_callback(self, callback: "Callable[[Driver], object]") -> None:
        """Call *callback* once nothing of the connection is left."""
        if not self.ending.add_callback(callback):
            callback(self)

    def remove_close_callback(self, callback: "Callable[[Driver], object]") -> None:
        """Do not call *callback*; it may have been called."""
        self.ending.remove_callback(callback)

    async def aclose(self, reason: str = "") -> None:
        """Close the connection and its streams, and wait until nothing of it is left."""
        await self.ending.close(reason)
        self.tasks.cancel()
        await self.tasks.wait()

    def take_over(self, other: "Driver", frame: Resume) -> bool:
        """Resume this session on the transport of *other*, which received *frame*, if possible."""
        line = other.line
        if line.transport is None or line.rebind is None:
            return False
        self._read_what_waited()
        if not self.connection.resume(frame, self.loop_handle.time()):
            self.schedule_turn()
            return False
        unread = other.connection.detach()
        other.line = Line()
        other.ending.end()
        self.line = self.line.replace(line, other)
        self._begin()
        line.rebind(self)
        self.schedule_turn()
        if unread:
            self.data_received(unread)
        return True

    # -- a turn ------------------------------------------------------------------------------------
    def _run_turn(self) -> None:
        """Run a turn as soon as other connections of the server leave time for it."""
        if not self._has_turn:
            return  # it has been run meanwhile
        if self._responder is None:
            self.take_turn()
        else:
            self._responder.turns.run(self)

    def wait_for_turn(self) -> None:
        """Others have their turns first: read nothing more until then."""
        if not self.ending.is_over:
            self._has_turn = True
            self._update_reading()

    def _read_what_waited(self) -> None:
        """Take in what has arrived while others had their turns."""
        if self.unread:
            data, self.unread = self.unread, b""
            self._dispatch(self.connection.receive(data, self.loop_handle.event_loop.time()))

    def take_turn(self) -> None:
        """Take in what is there, and send what is to be sent."""
        if not self._has_turn or self.ending.is_over:
            return
        self._read_what_waited()
        connection, now = self.connection, self.loop_handle.time()
        if connection.has_more and not self._is_busy and not connection.is_slowed(now):
            self._dispatch(connection.read_more(now))
        held_requests, intake = self.held_requests, self.intake
        if held_requests.waiting:
            held_requests.release()
        while True:
            if self._batch_senders:
                senders, self._batch_senders = self._batch_senders, []
                for each in senders:
                    each.send()
            if not (events := connection.flush(now)):
                break
            self._dispatch(events)
        self._write()
        self._has_turn = False
        if held_requests.waiting and held_requests.release():
            self.schedule_turn()
        if events := connection.flush(now):  # there is room for more demand: use the next turn
            self._has_turn = True
            self._dispatch(events)
            self._has_turn = False
            self.schedule_turn()
        elif connection.has_output and self.line.is_writable:
            self.schedule_turn()
        self.count_held()
        if intake.held and intake.may_serve(connection.limits.watermark // 2):
            self._dispatch([ResponseRequests(intake.take())])
        self._update_reading()
        self._timer.update()
        if connection.is_closed:
            self.ending.close_transport(self)
        if self.waiters.waiting:
            self.waiters.look()

    def _write(self) -> None:
        line = self.line
        if line.transport is not None and line.is_writable:
            data = self.connection.data_to_send(WRITE_SIZE)
            if data:
                line.transport.write(data)

    def _update_reading(self) -> None:
        """Read nothing while the application decides on a client, or its handlers are busy."""
        connection, is_busy = self.connection, self.intake.is_busy
        if is_busy is not self._is_busy:
            self._is_busy = is_busy
            now = self.loop_handle.time()
            (connection.pause_reading if is_busy else connection.resume_reading)(now)
            self._timer.update()
        is_slowed = connection.is_slowed(self.loop_handle.time())
        is_paused = is_busy or is_slowed or connection.is_awaiting_accept
        if connection.has_more:
            is_paused = True
            if not (is_busy or is_slowed):
                self.schedule_turn()
        if self._responder is not None:
            is_paused |= self._responder.turns.is_waiting(self)
        self.line.pause_reading(is_paused)

    def _deadline_passed(self, now: float) -> None:
        self._has_turn = True
        self._dispatch(self.connection.tick(now))
        self._run_turn()

    # -- the end of the transport ------------------------------------------------------------------
    def _wait_for_transport(self) -> None:
        self.line.is_writable = self._has_turn = False
        self.waiters.look()
        self._timer.update()
        self.count_held()
        if self.on_suspended is not None:
            self.on_suspended(self)

    def release(self) -> None:
        """Release everything but the tasks.

        No part refers to this driver after that: what has ended is freed at once, and not by the
        collector of garbage, which would stop a server that loses thousands of connections.
        """
        self._has_turn = True  # the last one: no other is scheduled
        self._batch_senders.clear()
        self.intake.release()
        self._timer.cancel()
        if self._send_limit is not None:
            self._send_limit.stop()
            self._send_limit = None
        self.waiters.look(is_over=True)

    # -- events ------------------------------------------------------------------------------------
    def _dispatch(self, events: list[Event]) -> None:
        for event in events:
            kind = type(event)
            if (on_stream := ON_STREAM.get(kind)) is not None:
                on_stream(self.streams, event)
            elif self._responder is not None and self._responder.handle(self, event):
                pass
            elif (handler := _ON_CONNECTION.get(kind)) is not None:
                handler(self, event)

    def _refuse_request(self, event: RequestReceived) -> None:
        if event.model is not InteractionModel.FNF:
            self._refuse_stream(event.stream_id)

    def _refuse_requests(self, event: ResponseRequests) -> None:
        for stream_id, _, _ in event.requests:
            self._refuse_stream(stream_id)

    def _refuse_stream(self, stream_id: int) -> None:
        self.connection.fail_stream(stream_id, ErrorCode.REJECTED, b"nothing is served here")

    def _on_resumed(self, _: Resumed) -> None:
        self._timer.update()
        for each in self._resume_callbacks:
            each()

    def _on_lease(self, _: Lease) -> None:
        self.held_requests.release()

    def _on_closed(self, event: Closed) -> None:
        self.ending.begin(self, event)


_ON_CONNECTION: Final[dict[type[Any], Callable[[Driver, Any], object]]] = {
    RequestReceived: Driver._refuse_request,
    ResponseRequests: Driver._refuse_requests,
    Resumed: Driver._on_resumed,
    Lease: Driver._on_lease,
    Closed: Driver._on_closed,
}
"""The tables are shared: those of one driver would take kilobytes."""
