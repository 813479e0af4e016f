"""The driver of a connection: a `Connection`, its transport, the clock and the application.

A turn of the driver takes in received bytes, passes their events to the local ends of streams,
passes on the peer's demand, and writes all output with one call. Nothing here blocks: a driver has
no task and no lock, and one timer. `driver_lifecycle` is the table of its states.
"""

from collections.abc import Callable, Coroutine
from inspect import iscoroutine
from typing import TYPE_CHECKING, Any, Final

from anyio import move_on_after

from ..._core.flow_subscription import FlowSubscription
from ..._core.loop import Future, LoopHandle, Task, TimerHandle, wait_settled
from ..protocol.connection import Connection
from ..protocol.errors import StreamFailed, error_of, renewed, with_remedy
from ..protocol.events import (
    Closed,
    Confirmed,
    Event,
    RequestReceived,
    ResponseRequests,
    Resumed,
)
from ..protocol.frames import ErrorCode, Lease, Resume
from ..protocol.stream_states import InteractionModel
from ..serving.unserved import NO_ROOM, UnservedRequests, may_serve
from .driver_lifecycle import OVER, TABLE, Action, Input, State
from .held_requests import HeldRequests
from .stream_registry import ON_STREAM, StreamRegistry
from .transports.interface import Transport

if TYPE_CHECKING:
    from ...spec import Subscription
    from ..requesting.stream_adapters import OutboundStream
    from ..serving.direct_responses import RequestTuple
    from ..serving.responder import RouterResponder

WRITE_SIZE: Final = 64 * 1024
CLOSE_TIMEOUT: Final = 5.0
SILENT_PEER_TIMEOUT: Final = 0.1
"""The same for a peer that has given no sign of life, and will not read what is left either."""
PEER_CLOSES_WITHIN: Final = 2.0
"""How long the peer may take to close a connection whose end was announced to it."""
Rebind = Callable[["Driver"], object]
"""Connects a transport to another driver."""


class Driver:
    """Drives one connection on the event loop on which it was made."""

    # Class attributes until they are set: CPython 3.11 is slow with objects that have 29 attributes
    # of their own, which made a request a third more expensive.
    close_reason: StreamFailed | None = None
    """Why the connection has ended; None while it has not."""
    remedy: str = ""
    """How a client reconnects, for the error of requests after the server has closed."""
    user: Any = None
    """The result of authenticating the peer."""
    is_resume_only: bool = False
    """Whether the peer may resume a session, but not begin one."""
    on_closed: "Callable[[Driver], object] | None" = None
    """Called once, when nothing of the connection is left."""
    on_suspended: "Callable[[Driver], object] | None" = None
    """Called when a session loses its transport and waits for another."""
    _linger_time: float = CLOSE_TIMEOUT
    """How long handlers without a response may run after the connection has ended properly."""
    _is_draining: bool = False
    _background: "tuple[Task[Any], ...]" = ()
    """The tasks that serve the connection, and not a request."""
    _is_busy: bool = False  # nothing is read, since the handlers have enough to do
    _is_intake_full: bool = False
    unserved: "UnservedRequests | None" = None
    """Requests that wait until the peer reads; None until one has to."""
    ending: int = 0
    """The number of handlers whose requests were cancelled, and that have not ended yet."""
    _unread: int = 0  # the bytes of output that the budget of the process counts
    _waiting_handlers: int = 0
    _flushed: "Future[None] | None" = None  # done when the output that ends it has been sent

    def __init__(
        self, make: Callable[[float], Connection], responder: "RouterResponder | None" = None
    ) -> None:
        """Drive the connection that *make* makes; without a *responder*, nothing is served."""
        self.loop_handle: LoopHandle = LoopHandle("an RSocket connection")
        self.connection: Connection = make(self.loop_handle.time())
        self.streams: StreamRegistry = StreamRegistry()
        self.held_requests: HeldRequests = HeldRequests()
        self._state = State.UNCONNECTED
        self._has_turn = False  # a turn is scheduled or runs
        self._transport: Transport | None = None
        self._rebind: Rebind | None = None
        self._is_writable = True
        self._is_reading_paused = False
        self._tasks: dict[Task[Any], tuple[object, ...]] = {}
        self._deadline_timer: TimerHandle | None = None
        self._deadline = 0.0  # of the timer
        self._time_limit: TimerHandle | None = None  # of the end
        self._batch_senders: list[OutboundStream] = []
        self._drain_waiters: list[Future[None]] = []
        self._resume_callbacks: list[Callable[[], object]] = []
        self._close_callbacks: list[Callable[[Driver], object]] = []
        self._released: Future[None] | None = None
        self._responder = responder
        self._confirmed: Callable[[], object] | None = None

    # -- for the transport -------------------------------------------------------------------------
    def attach(self, transport: Transport, rebind: Rebind | None = None) -> None:
        """Begin or resume on a transport that is ready.

        A transport with a method `rebind`, or given with one, can move to another driver.
        """
        self._transport, self._rebind = transport, rebind or getattr(transport, "rebind", None)
        self._is_writable, self._is_reading_paused = True, False
        self._advance(Input.ATTACH)
        self.schedule_turn()

    def data_received(self, data: bytes) -> None:
        self._has_turn = True  # it begins here
        connection = self.connection
        self._dispatch(connection.receive(data, self.loop_handle.event_loop.time()))
        is_waited_for = self._drain_waiters or self.held_requests.waiting or self._flushed
        is_busy = self._batch_senders or is_waited_for or self.unserved
        output = connection.last_output() if self._is_writable and not is_busy else None
        if output is None or self._transport is None:
            self._run_turn()
            return
        self._has_turn = False
        if output:
            self._transport.write(output)
            if connection.has_output:  # demand for streams whose requests have just been sent
                self.schedule_turn()

    def pause_writing(self) -> None:
        self._is_writable = False

    def resume_writing(self) -> None:
        """Output has left: the peer takes it, even if its signs of life wait in a slow link."""
        self._is_writable = True
        self.connection.note_activity(self.loop_handle.time())
        self.schedule_turn()

    def connection_lost(self, error: BaseException | None = None) -> None:
        """The transport has ended. A session that may be resumed waits for another one."""
        if self._state in OVER:
            return
        self._has_turn = True
        reason = "the transport was closed" if error is None else f"the transport failed: {error}"
        self._dispatch(self.connection.transport_lost(self.loop_handle.time(), reason))
        self._transport = self._rebind = None
        self._advance(Input.SUSPEND if self.connection.is_suspended else Input.LOSE)

    # -- for the application -----------------------------------------------------------------------
    def require_open(self) -> None:
        """Raise the reason of the end if the connection has ended."""
        if self.close_reason is not None:
            raise renewed(self.close_reason)

    def get_extra_info(self, name: str) -> Any:
        """The transport's information by *name*, as in asyncio; None if it has none."""
        return None if self._transport is None else self._transport.get_extra_info(name)

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

    def schedule_send(self, sender: "OutboundStream") -> None:
        """Let *sender* send the elements it has collected in the next turn."""
        self._batch_senders.append(sender)
        self.schedule_turn()

    def create_background_task(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        """Start a task that is cancelled as soon as the connection has ended, in any way."""
        task = self.create_task(work, name)
        if task is not None:
            self._background = (*self._background, task)

    def create_task(
        self, work: Coroutine[Any, Any, Any], name: str, *awaited: object
    ) -> "Task[Any] | None":
        """Start a task that does not outlive the connection; None if that has ended.

        If the connection ends properly, the task may continue for a limited time. Coroutines that
        *work* would have *awaited* are closed if it never begins.
        """
        if self.close_reason is not None:
            work.close()
            _close_coroutines(awaited)
            return None
        task = self.loop_handle.create_task(work, name, self._on_task_done)
        self._tasks[task] = awaited
        return task

    def _on_task_done(self, task: "Task[Any]") -> None:
        awaited = self._tasks.pop(task, ())
        if awaited and task.cancelled():
            _close_coroutines(awaited)
        if not self._tasks and self._state is State.LINGERING:
            self._advance(Input.IDLE)

    async def drain(self) -> None:
        """Wait until the output queued is below the watermark."""
        connection = self.connection
        while self.close_reason is None and connection.queued_bytes >= connection.limits.watermark:
            await self._output_changed()

    def accept(self) -> None:
        """Accept the client."""
        if self._state not in OVER and self.connection.is_awaiting_accept:
            self.connection.accept(self.loop_handle.time())
            self._set_deadline_timer()
            self.schedule_turn()

    def reject(self, reason: str = "", code: int | None = None) -> None:
        """Reject the client."""
        if self._state not in OVER and self.connection.is_awaiting_accept:
            self.connection.reject(reason, code)
            self._advance(Input.REJECT)
            self.schedule_turn()

    def confirm(self, callback: Callable[[], object]) -> None:
        """Call *callback* when the server is known to have accepted the SETUP."""
        self._confirmed = callback
        self.connection.confirm()
        self.schedule_turn()

    def add_resume_callback(self, callback: Callable[[], object]) -> None:
        """Call *callback* whenever the session is resumed."""
        self._resume_callbacks.append(callback)

    def add_close_callback(self, callback: "Callable[[Driver], object]") -> None:
        """Call *callback* once nothing of the connection is left."""
        if self._state in OVER:
            callback(self)
        else:
            self._close_callbacks.append(callback)

    # -- requests without a response ---------------------------------------------------------------
    @property
    def is_needed_by_handlers(self) -> bool:
        """Whether a handler of such a request awaits something of the peer."""
        return self._waiting_handlers > 0

    def handler_waits(self, by: int) -> None:
        """*by* more of these handlers await something of the peer, or fewer."""
        self._waiting_handlers += by
        self._update_reading()

    def set_intake(self, *, is_full: bool) -> None:
        """Read nothing while the handlers have enough to do, unless one of them needs the peer."""
        if is_full is not self._is_intake_full:
            self._is_intake_full = is_full
            self._update_reading()

    # -- requests for one element ------------------------------------------------------------------
    def hold_requests(self, requests: "list[RequestTuple]") -> None:
        """Serve *requests* when the peer has read responses."""
        self.unserved = self.unserved or UnservedRequests()
        for stream_id in self.unserved.hold(requests):
            self.connection.fail_stream(stream_id, ErrorCode.REJECTED, NO_ROOM)
        self.schedule_turn()

    def _serve_held_requests(self) -> None:
        room = self.connection.limits.watermark // 2
        if self._responder is not None and self.unserved and may_serve(self, room):
            requests = self.unserved.take(self.connection)
            self._responder.respond(self, ResponseRequests(requests))

    def await_handler(self, task: "Task[Any]") -> None:
        """Count a handler whose request was cancelled until it has ended, with its cleanup."""
        self.ending += 1
        task.add_done_callback(self._on_handler_ended)

    def await_cleanup(self, subscription: "Subscription | None") -> None:
        """The same for the publisher of *subscription*, which was cancelled."""
        if isinstance(subscription, FlowSubscription) and not subscription.is_clean:
            task = self.create_task(self._clean(subscription), "rsocket: awaits a cleanup")
            if task is not None:
                self.await_handler(task)

    async def _clean(self, subscription: FlowSubscription) -> None:
        try:
            await subscription.aclose()
        except Exception as error:
            self.loop_handle.report("the cleanup of an RSocket handler failed", error)

    def _on_handler_ended(self, _: object) -> None:
        self.ending -= 1
        if self.unserved:
            self.schedule_turn()

    def _count_unread(self, size: int) -> None:
        """Count *size* bytes of output for the process, if they are more than a turn sends."""
        unread = size if size > self.connection.limits.watermark else 0
        if unread != self._unread:
            self.connection.limits.budget.hold(unread - self._unread)
            self._unread = unread

    # -- the end -----------------------------------------------------------------------------------
    def close_gracefully(self, reason: str, seconds: float) -> None:
        """Accept no more requests; close when the open streams have ended.

        Handlers without a response may then run for *seconds*.
        """
        self._is_draining, self._linger_time = True, seconds
        until = self.loop_handle.time() + min(seconds, PEER_CLOSES_WITHIN)
        self.connection.close_gracefully(reason, until)
        self.schedule_turn()

    async def aclose(self, reason: str = "") -> None:
        """Close the connection and its streams, and wait until nothing of it is left."""
        try:
            is_flushed = await self._flush_final_output()
        finally:  # the connection ends even if this call is cancelled
            if self.close_reason is None:
                self.connection.close(reason)
                self.schedule_turn()
        if not is_flushed:  # the peer has had its time, and does not read
            self.abort()
        is_ending = self._transport is not None or self.connection.is_closed
        if is_ending and self._state not in OVER:
            if self._released is None:
                self._released = self.loop_handle.create_future()
            await wait_settled(self._released)
        self._cancel_tasks()
        is_current = self.loop_handle.is_current_task
        await wait_settled(*(task for task in self._tasks if not is_current(task)))

    def abort(self) -> None:
        """End the transport at once, without sending what is queued."""
        self._advance(Input.ABORT)

    def discard(self) -> None:
        """Release a driver that has no transport and will not get one."""
        self._advance(Input.LOSE)

    def take_over(self, other: "Driver", frame: Resume) -> bool:
        """Resume this session on the transport of *other*, which received *frame*, if possible."""
        transport, rebind = other._transport, other._rebind
        if transport is None or rebind is None:
            return False
        if not self.connection.resume(frame, self.loop_handle.time()):
            self.schedule_turn()
            return False
        unread = other.connection.detach()
        other._transport = other._rebind = None
        other.discard()
        if self._transport is not None and self._rebind is not None:  # its loss is not known yet
            self._rebind(other)
            self._transport.abort()
        self._transport, self._rebind = transport, rebind
        self._is_writable, self._is_reading_paused = True, other._is_reading_paused
        self._advance(Input.ATTACH)
        rebind(self)
        self.schedule_turn()
        for data in unread:
            self.data_received(data)
        return True

    async def _flush_final_output(self) -> bool:
        """Wait, for a limited time, until output that no answer would confirm has been sent.

        Returns False if that time was too short.
        """
        is_over = self._transport is None or self.close_reason is not None
        if is_over or not self.connection.has_final_output:
            return True
        if self._flushed is None or self._flushed.done():
            self._flushed = self.loop_handle.create_future()
            self.schedule_turn()
        with move_on_after(CLOSE_TIMEOUT) as scope:
            await wait_settled(self._flushed)
        return not scope.cancelled_caught

    async def _output_changed(self) -> None:
        waiter = self.loop_handle.create_future()
        self._drain_waiters.append(waiter)
        self.schedule_turn()
        await waiter

    def _wake_drain_waiters(self) -> None:
        waiters, self._drain_waiters = self._drain_waiters, []
        for each in waiters:
            _settle(each)

    # -- a turn ------------------------------------------------------------------------------------
    def _run_turn(self) -> None:
        if not self._has_turn or self._state in OVER:
            return
        connection, now = self.connection, self.loop_handle.time()
        held_requests = self.held_requests
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
        elif connection.has_output and self._is_writable:
            self.schedule_turn()
        queued = connection.queued_bytes
        if queued != self._unread:
            self._count_unread(queued)
        if self.unserved:
            self._serve_held_requests()
        self._update_reading()
        self._set_deadline_timer()
        if self._flushed is not None and not connection.has_final_output:
            _settle(self._flushed)
        if connection.is_closed:
            self._advance(Input.LOSE if self._transport is None else Input.SENT)
        elif self._drain_waiters and connection.queued_bytes < connection.limits.watermark:
            self._wake_drain_waiters()

    def _write(self) -> None:
        transport = self._transport
        if transport is not None and self._is_writable:
            data = self.connection.data_to_send(WRITE_SIZE)
            if data:
                transport.write(data)

    def _update_reading(self) -> None:
        """Read nothing while the application decides on a client, or its handlers are busy."""
        is_busy = self._is_intake_full and not self._waiting_handlers
        if self.unserved is not None and self.unserved.is_full:
            # Two sides that both wait for responses must not wait for each other to read.
            is_busy |= not self.connection.streams.open.local_count
        if is_busy is not self._is_busy:
            self._is_busy = is_busy
            connection, now = self.connection, self.loop_handle.time()
            (connection.pause_reading if is_busy else connection.resume_reading)(now)
            self._set_deadline_timer()
        is_paused = is_busy or self.connection.is_awaiting_accept
        if is_paused is not self._is_reading_paused and self._transport is not None:
            self._is_reading_paused = is_paused
            if is_paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _set_deadline_timer(self) -> None:
        """Set the timer for the next deadline, unless it fires before.

        A deadline that moves away, as most do, does not replace the timer: setting it is free.
        """
        deadline = self.connection.next_deadline()
        if deadline is None or (self._deadline_timer is not None and self._deadline <= deadline):
            return
        self._cancel_deadline_timer()
        self._deadline = deadline
        delay = max(0.0, deadline - self.loop_handle.time())
        self._deadline_timer = self.loop_handle.call_later(delay, self._tick)

    def _cancel_deadline_timer(self) -> None:
        if self._deadline_timer is not None:
            self._deadline_timer.cancel()
            self._deadline_timer = None

    def _tick(self) -> None:
        self._deadline_timer = None
        now = self.loop_handle.time()
        deadline = self.connection.next_deadline()
        if deadline is not None and now >= deadline:
            self._has_turn = True
            self._dispatch(self.connection.tick(now))
            self._run_turn()
        else:
            self._set_deadline_timer()

    # -- the actions of the table ------------------------------------------------------------------
    def _advance(self, happened: Input) -> None:
        self._state, action = TABLE[self._state, happened]
        if action is not Action.NOTHING:
            _ACTIONS[action](self)

    def _start(self) -> None:
        if self.connection.is_suspended:
            self.connection.transport_replaced(self.loop_handle.time())

    def _wait_for_transport(self) -> None:
        self._is_writable = self._is_reading_paused = self._has_turn = False
        if self._flushed is not None:
            _settle(self._flushed)
        self._set_deadline_timer()
        if self.on_suspended is not None:
            self.on_suspended(self)

    def _limit_end(self) -> None:
        if self._time_limit is None:
            seconds = SILENT_PEER_TIMEOUT if self.connection.is_peer_silent else CLOSE_TIMEOUT
            self._time_limit = self.loop_handle.call_later(seconds, self.abort)

    def _close_transport(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _close_writing(self) -> None:
        """Close the sending half only, where the transport can.

        Closing a socket with unread bytes resets it, and the peer may lose the reason. The
        transport ends when the peer has read it, or when the time limit passes.
        """
        transport: Any = self._transport
        if hasattr(transport, "can_write_eof") and transport.can_write_eof():
            try:
                transport.write_eof()
            except OSError:  # the peer has closed the socket meanwhile
                self._abort_transport()
        else:
            self._close_transport()

    def _abort_transport(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _release(self) -> None:
        self._release_transport()
        self._cancel_tasks()
        self._report_end()

    def _cancel_tasks(self) -> None:
        """Cancel all tasks but the current one."""
        for task in list(self._tasks):
            if not self.loop_handle.is_current_task(task):
                task.cancel()

    def _linger(self) -> None:
        self._release_transport()
        self._time_limit = self.loop_handle.call_later(self._linger_time, self._cancel_tasks)
        for task in self._background:
            task.cancel()
        if not self._tasks:
            self._advance(Input.IDLE)

    def _release_transport(self) -> None:
        """Release everything but the tasks."""
        self._has_turn = True  # the last one: no other is scheduled
        self._batch_senders.clear()
        self.unserved = None
        self._count_unread(0)
        self._cancel_deadline_timer()
        if self._time_limit is not None:
            self._time_limit.cancel()
        self._wake_drain_waiters()
        for each in (self._flushed, self._released):
            if each is not None:
                _settle(each)

    def _report_end(self) -> None:
        if self._time_limit is not None:
            self._time_limit.cancel()
        callbacks, self._close_callbacks = self._close_callbacks, []
        for each in callbacks:
            each(self)
        if self.on_closed is not None:
            self.on_closed(self)

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

    def _on_confirmed(self, _: Confirmed) -> None:
        if self._confirmed is not None:
            self._confirmed()

    def _on_resumed(self, _: Resumed) -> None:
        self._set_deadline_timer()
        for each in self._resume_callbacks:
            each()

    def _on_lease(self, _: Lease) -> None:
        self.held_requests.release()

    def _on_connection_closed(self, event: Closed) -> None:
        reason = error_of(event.code, event.data)
        is_normal = event.code == ErrorCode.CONNECTION_CLOSE
        if is_normal or not isinstance(reason, ConnectionError):
            reason = error_of(ErrorCode.CONNECTION_CLOSE, event.data or b"it was closed")
        self.close_reason = with_remedy(reason, "" if is_normal and event.local else self.remedy)
        if is_normal and (self._is_draining or not event.local):
            happened = Input.DRAIN if event.local else Input.LEAVE
        else:
            self._cancel_tasks()
            happened = Input.CLOSE
        self.held_requests.fail_all(self.close_reason)
        self._advance(happened)


_ACTIONS: Final[dict[Action, Callable[[Driver], None]]] = {
    Action.START: Driver._start,
    Action.WAIT: Driver._wait_for_transport,
    Action.LIMIT: Driver._limit_end,
    Action.CLOSE_TRANSPORT: Driver._close_transport,
    Action.CLOSE_WRITING: Driver._close_writing,
    Action.ABORT_TRANSPORT: Driver._abort_transport,
    Action.LINGER: Driver._linger,
    Action.RELEASE: Driver._release,
    Action.REPORT: Driver._report_end,
}

_ON_CONNECTION: Final[dict[type[Any], Callable[[Driver, Any], object]]] = {
    RequestReceived: Driver._refuse_request,
    ResponseRequests: Driver._refuse_requests,
    Confirmed: Driver._on_confirmed,
    Resumed: Driver._on_resumed,
    Lease: Driver._on_lease,
    Closed: Driver._on_connection_closed,
}
"""The tables are shared: those of one driver would take kilobytes."""


def _settle(waiter: Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _close_coroutines(objects: tuple[object, ...]) -> None:
    for each in objects:
        if iscoroutine(each):
            each.close()
