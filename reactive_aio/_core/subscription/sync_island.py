"""SyncIsland: a subscription whose generated loop is a generator, run in the caller's frame."""

from typing import TYPE_CHECKING, Any, Final

from ..compiler.chain import PullSource
from ..compiler.loop_runtime import (
    AWAIT_SIGNAL,
    CLOSABLE,
    NO_DEMAND,
    NO_ELEMENTS,
    SLICE_OVER,
    Pause,
    SubscriberRaised,
    UpstreamFailed,
)
from ..demand import UNBOUNDED
from ..failures import STOPS_PROGRAM, as_failure
from ..loop import NOT_ENTERED, NotEntered
from ..observation.registry import note_turn
from .input_queue import InputQueue
from .island import Island
from .lifecycle import TABLE, Action, Input, Phase

if TYPE_CHECKING:
    from ..compiler.chain import Flattening

_NEVER: Final = float("-inf")
# See `island`.
_WAKE, _PAUSED, _FINISHED = int(Input.WAKE), int(Input.PAUSED), int(Input.FINISHED)
_RECHECK = Action.RECHECK
_OPENING: Final = Phase.OPENING
_IDLE: Final = Phase.IDLE
_AFTER_WAKE, _ = TABLE[Phase.IDLE, Input.WAKE]
_AFTER_PAUSE, _ = TABLE[Phase.DRAINING, Input.PAUSED]


class SyncIsland(Island):
    """A subscription whose stages and signals are synchronous: no task, no future, no lock.

    If a signal returns an awaitable all the same, the drain is suspended until a task has awaited
    it.
    """

    __slots__ = ("drain", "is_suspended", "send")

    def __post_init__(self, delivery: str) -> None:
        Island.__post_init__(self, delivery)  # `super()` takes longer than a call
        self.drain: Any = None
        # The drain's method, once it was resumed with an element: looking it up takes a third of
        # its call.
        self.send: Any = None
        # Until the next turn of the loop, or until a signal's awaitable is done.
        self.is_suspended = False

    def push_rest(self, flattening: "Flattening", element: object, result: object) -> Any:
        """Have the rest pushed, beginning with *result*, which was made of *element*."""
        elements, queue = self.source, self.make_queue()
        queue.upstream = flattening.push(queue, elements, element, result)
        return self.source

    def _on_subscribed(self) -> None:
        # Most sources are iterators, and most subscribers have requested something by now: the
        # loop runs at once, without a step through an idle phase. With `_complete`, this makes a
        # flow of one element 24 % shorter (CPython 3.13).
        chain = self.chain
        if (
            chain.source.__class__ is not PullSource
            or self.limit <= 0
            or self.is_stopped
            or self.discards is not None
        ):
            Island._on_subscribed(self)
            return
        try:
            self.source = chain.open_source(self.compiled_loop)
        except BaseException as error:
            self._opening_raised(error)
            return
        if self.phase is _OPENING:
            self.phase = _AFTER_WAKE
            self._run()
        else:  # cancelled, or failed, while the source was opened
            self._enter(_PAUSED)

    def _start(self) -> Any:
        subscriber: Any = self.subscriber
        on_next = subscriber.append if self.flush_batch is not None else subscriber.on_next
        self.drain = drain = self.compiled_loop.run(
            self, self.source, on_next, self.chain.arguments
        )
        return drain

    def resume(self, elements: tuple[object, ...] | None = None, /) -> bool | None:
        # What `_run` does, up to the first pause, after which nothing is left to be done in the
        # subscriber's context. Without it, `request(1)` from outside takes 45 % longer, and an
        # element that is emitted four times as long (CPython 3.13).
        drain, flushes = self.drain, self.flush_batch is not None
        if (
            drain is None
            or self.pause is not (NO_DEMAND if elements is None else NO_ELEMENTS)
            or self.phase is not _IDLE
        ):
            return Island.resume(self, elements)
        loop_handle, self.phase = self.loop_handle, _AFTER_WAKE
        self.is_slice_over, self.slice_end = False, 0.0
        if flushes:
            return self._resume_and_flush(elements)
        try:
            if elements is None:
                pause: Pause | NotEntered = loop_handle.enter(next, drain)
            else:
                pause = loop_handle.enter(self.send or self._bind_send(), elements)
        except BaseException as error:
            loop_handle.run(self._drain_raised, error)
            return False
        if pause is NO_ELEMENTS and elements is not None and not self.is_stopped:
            queue: Any = self.input_queue
            if not (queue.waiting or queue.is_lent or queue.is_ended) and (
                queue.outstanding is UNBOUNDED or queue.outstanding >= self.needed_from_upstream
            ):
                # The limit is read last: another thread raises it, and then wakes an idle island.
                self.phase = _AFTER_PAUSE
                if self.limit is self.requested_limit:
                    return True
                self.phase = _AFTER_WAKE
        elif pause is NO_DEMAND and not self.is_stopped:
            self.phase, self.pause = _AFTER_PAUSE, NO_DEMAND
            if self.limit <= self.emitted:
                return False
            self.phase = _AFTER_WAKE
        elif pause is NOT_ENTERED:
            self.phase = _IDLE
            return Island.resume(self, elements)
        loop_handle.run(self._act_on, pause)
        return False

    def _resume_and_flush(self, elements: tuple[object, ...] | None) -> bool | None:
        """All in one entry of the subscriber's context."""
        if self.loop_handle.enter(self._process, elements) is not NOT_ENTERED:
            return False
        self.phase = _IDLE
        return Island.resume(self, elements)

    def _process(self, elements: tuple[object, ...] | None) -> None:
        """Process *elements*, and act on the pause that follows."""
        try:
            pause = self.drain.send(elements)
        except BaseException as error:
            self._drain_raised(error)
        else:
            self._act_on(pause)

    def _bind_send(self) -> Any:
        self.send = self.drain.send
        return self.send

    def _run(self) -> None:
        """Run the drain until it has to wait for demand, elements, the loop or a signal."""
        drain = self.drain or self._start()
        # A slice that starts after the next batch, so that the clock is not read now.
        self.is_slice_over, self.slice_end = False, 0.0
        while True:
            try:
                pause: Pause | None = next(drain, None)
            except BaseException as error:
                self._drain_raised(error)
                return
            if not self._must_go_on(pause):
                return

    def _act_on(self, pause: Pause) -> None:
        if self._must_go_on(pause):
            self._run()

    def _must_go_on(self, pause: Pause | None) -> bool:
        """Act on a pause, or the end, of the drain; return whether to resume it at once."""
        if self.flush_batch is not None:
            self.flush_batch()
        if pause is None or self.is_stopped:
            self._enter(_FINISHED)
            return False
        if pause is SLICE_OVER or pause is AWAIT_SIGNAL:
            self._suspend(pause)
            return False
        queue = self.input_queue
        if pause is NO_ELEMENTS and queue is not None:
            try:
                queue.request_needed(self.needed_from_upstream)
            except BaseException as error:
                self._upstream_raised(queue, error)
        self.pause = pause
        self.phase, action = self.phase.steps[_PAUSED]
        if action is not _RECHECK:
            self._terminate()
            return False
        if not self._is_ready():
            return False
        self.phase, _ = self.phase.steps[_WAKE]
        return True

    def _drain_raised(self, error: BaseException) -> None:
        """Act on the end of the drain by *error*: by StopIteration, if it was resumed directly."""
        if isinstance(error, SubscriberRaised):
            self._subscriber_raised("on_next", error.error)
            return
        if isinstance(error, UpstreamFailed):
            self.error = error.error
        elif not isinstance(error, StopIteration):
            self._loop_raised(error)
        self._flush_before_error()
        self._must_go_on(None)

    def _flush_before_error(self) -> None:
        """Deliver what was read before an error, which is discarded if the subscriber leaves."""
        was_stopped = self.is_stopped
        if self.flush_batch is not None:
            self.flush_batch()
            if self.is_stopped and not was_stopped:
                self.error = None

    def _loop_raised(self, error: BaseException) -> None:
        self.error = as_failure(error)
        if isinstance(error, STOPS_PROGRAM):
            self._enter(_FINISHED)
            raise error

    def _suspend(self, pause: Pause) -> None:
        self.is_suspended = True
        if pause is SLICE_OVER:
            note_turn()
            self.loop_handle.call_soon(self._resume)
        else:
            self._await_in_task("on_next", self._resume)

    def _resume(self) -> None:
        self.is_suspended = False
        if self.is_stopped:
            self._enter(Input.FINISHED)
        else:
            self._run()

    def _interrupt(self) -> None:
        """End a suspended drain now; a running one tests the flag after each signal."""
        # But a terminal signal waits until the current signal has ended (1.3).
        if self.is_suspended and not self.is_fault:
            self._enter(Input.FINISHED)

    def _upstream_raised(self, queue: InputQueue[Any], error: BaseException) -> None:
        if isinstance(error, STOPS_PROGRAM):
            self._loop_raised(error)
        super()._upstream_raised(queue, error)

    def _terminate(self) -> None:
        source = self.source
        if (
            self.error is None
            and not self.is_stopped
            and self.input_queue is None
            and self.record is None
            and not isinstance(source, CLOSABLE)
        ):
            self._complete()
            return
        if isinstance(source, CLOSABLE) and self.error is None and not self.is_stopped:
            self.source = None
            try:
                source.close()
            except STOPS_PROGRAM as error:
                self.error = as_failure(error)
                super()._terminate()
                raise
            except BaseException as error:
                self._report_dropped(as_failure(error))
        Island._terminate(self)

    def _complete(self) -> None:
        """Complete a subscription that has nothing to clean up: drop the references (3.13)."""
        subscriber: Any = self.subscriber
        self.is_stopped, self.limit = True, _NEVER
        self.subscriber = self.flush_batch = self.source = self.drain = self.send = None
        self._send_end(subscriber, None, False)

    def _release(self) -> None:
        drain, self.drain, self.send = self.drain, None, None
        if drain is not None:
            drain.close()
        Island._release(self)
