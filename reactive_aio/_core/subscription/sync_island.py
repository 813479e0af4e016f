"""SyncIsland: the island whose stages and signals are synchronous; its loop is a generator."""

from typing import Any, cast

from ...spec import Subscriber
from ..compiler.chain import Chain
from ..compiler.loop_compiler import (
    AWAIT_SIGNAL,
    NO_ELEMENTS,
    SLICE_OVER,
    Pause,
    SubscriberRaised,
    UpstreamFailed,
)
from ..loop import LoopHandle
from .island import Island
from .lifecycle import Action, Input

__all__ = ("SyncIsland",)


class SyncIsland(Island):
    """A subscription whose stages and signals are synchronous: no task, no future, no lock.

    If a signal returns an awaitable all the same, the drain is suspended until a task has awaited
    it.
    """

    __slots__ = ("drain", "is_suspended")

    def __init__(
        self, chain: Chain, subscriber: Subscriber[Any], delivery: str, loop_handle: LoopHandle
    ) -> None:
        super().__init__(chain, subscriber, delivery, loop_handle)
        self.drain: Any = None
        self.is_suspended = (
            False  # until the next turn of the loop, or until a signal's awaitable is done
        )

    def _start(self) -> Any:
        subscriber = cast("Any", self.subscriber)
        on_next = subscriber.append if self.flush_batch is not None else subscriber.on_next
        self.drain = drain = self.compiled_loop.run(
            self, self.source, on_next, *self.chain.arguments
        )
        return drain

    def _run(self) -> None:
        """Run the drain until it has to wait for demand, elements, the loop or a signal."""
        drain = self.drain or self._start()
        self.start_slice()
        while True:
            try:
                pause: Pause | None = next(drain, None)
            except SubscriberRaised as raised:
                self._subscriber_raised("on_next", raised.error)
                return
            except UpstreamFailed as failed:
                self.error, pause = failed.error, None
            except Exception as error:
                self.error, pause = error, None
            except BaseException:  # the program stops; the subscriber must not see a completion
                self.is_stopped = True
                self._step(Input.CANCEL)
                self._enter(Input.FINISHED)
                raise
            if self.flush_batch is not None:
                self.flush_batch()
            if pause is None or self.is_stopped:
                self._enter(Input.FINISHED)
                return
            if pause is SLICE_OVER:
                self.is_suspended = True
                self.loop_handle.call_soon(self._resume)
                return
            if pause is AWAIT_SIGNAL:
                self.is_suspended = True
                self._await_in_task("on_next", self._resume)
                return
            if pause is NO_ELEMENTS and self.input_queue is not None:
                self.input_queue.request_needed(self.needed)
            self.pause = pause
            action = self._step(Input.PAUSED)
            if action is not Action.RECHECK:
                self._terminate()
                return
            if not self._is_ready():
                return
            self._step(Input.WAKE)

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

    def _release(self) -> None:
        drain, self.drain = self.drain, None
        if drain is not None:
            drain.close()
        super()._release()
