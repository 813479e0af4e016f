"""SyncIsland: a subscription whose generated loop is a generator, run in the caller's frame."""

from types import FrameType, GeneratorType
from typing import TYPE_CHECKING, Any, Final

from ..compiler.loop_compiler import (
    AWAIT_SIGNAL,
    NO_ELEMENTS,
    SLICE_OVER,
    Pause,
    SubscriberRaised,
    UpstreamFailed,
)
from ..failures import STOPS_PROGRAM, as_failure
from .input_queue import InputQueue
from .island import Island
from .lifecycle import Action, Input

if TYPE_CHECKING:
    from ..compiler.chain import Flattening

_NEVER: Final = float("-inf")
# See `island`.
_WAKE, _PAUSED, _FINISHED = int(Input.WAKE), int(Input.PAUSED), int(Input.FINISHED)
_RECHECK = Action.RECHECK


class SyncIsland(Island):
    """A subscription whose stages and signals are synchronous: no task, no future, no lock.

    If a signal returns an awaitable all the same, the drain is suspended until a task has awaited
    it.
    """

    __slots__ = ("drain", "is_suspended")

    def __post_init__(self, delivery: str) -> None:
        super().__post_init__(delivery)
        self.drain: Any = None
        # Until the next turn of the loop, or until a signal's awaitable is done.
        self.is_suspended = False

    @property
    def loop_frame(self) -> FrameType | None:
        return None if self.drain is None else self.drain.gi_frame

    def push_rest(self, flattening: "Flattening", element: object, result: object) -> Any:
        """Have the rest pushed, beginning with *result*, which was made of *element*."""
        elements, queue = self.source, self.make_queue()
        queue.upstream = flattening.push(queue, elements, element, result)
        return self.source

    def _start(self) -> Any:
        subscriber: Any = self.subscriber
        on_next = subscriber.append if self.flush_batch is not None else subscriber.on_next
        self.drain = drain = self.compiled_loop.run(
            self, self.source, on_next, self.chain.arguments
        )
        return drain

    def _run(self) -> None:
        """Run the drain until it has to wait for demand, elements, the loop or a signal."""
        drain = self.drain or self._start()
        # A slice that starts after the next batch, so that the clock is not read now.
        self.is_slice_over, self.slice_end = False, 0.0
        while True:
            try:
                pause: Pause | None = next(drain, None)
            except SubscriberRaised as raised:
                self._subscriber_raised("on_next", raised.error)
                return
            except UpstreamFailed as failed:
                self.error, pause = failed.error, None
            except BaseException as error:
                self._loop_raised(error)
                pause = None
            if self.flush_batch is not None:
                self.flush_batch()
            if pause is None or self.is_stopped:
                self._enter(_FINISHED)
                return
            if pause is SLICE_OVER or pause is AWAIT_SIGNAL:
                self._suspend(pause)
                return
            queue = self.input_queue
            if pause is NO_ELEMENTS and queue is not None:
                try:
                    queue.request_needed(self.needed)
                except BaseException as error:
                    self._upstream_raised(queue, error)
            self.pause = pause
            self.phase, action = self.phase.steps[_PAUSED]
            if action is not _RECHECK:
                self._terminate()
                return
            if not self._is_ready():
                return
            self.phase, _ = self.phase.steps[_WAKE]

    def _loop_raised(self, error: BaseException) -> None:
        self.error = as_failure(error)
        if isinstance(error, STOPS_PROGRAM):
            self._enter(_FINISHED)
            raise error

    def _suspend(self, pause: Pause) -> None:
        self.is_suspended = True
        if pause is SLICE_OVER:
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
        # A cleanup that raises turns the completion into a failure, as it does in a task.
        source = self.source
        if isinstance(source, GeneratorType) and self.error is None and not self.is_stopped:
            self.source = None
            try:
                source.close()
            except BaseException as error:
                self.error = as_failure(error)
                if isinstance(error, STOPS_PROGRAM):
                    super()._terminate()
                    raise
        super()._terminate()

    def _release(self) -> None:
        drain, self.drain = self.drain, None
        if drain is not None:
            drain.close()
        super()._release()
