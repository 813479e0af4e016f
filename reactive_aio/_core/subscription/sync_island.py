"""The island whose stages and signals are synchronous: its loop is a generator."""

from typing import Any, cast

from ...spec import Subscriber
from ..compiler.chain import Chain
from ..compiler.loop_compiler import DRY, HOLD, TURN, Pause, SubscriberRaised
from ..loop import LoopHandle
from .input_queue import UpstreamFailed
from .island import Island
from .lifecycle import Action, Input

__all__ = ("SyncIsland",)


class SyncIsland(Island):
    """A subscription whose stages and signals are synchronous: no task, no future, no lock.

    Should a signal return an awaitable all the same, the drain rests in a task until it is done.
    """

    __slots__ = ("drain", "resting")

    def __init__(
        self, chain: Chain, subscriber: Subscriber[Any], delivery: str, loop_handle: LoopHandle
    ) -> None:
        super().__init__(chain, subscriber, delivery, loop_handle)
        self.drain: Any = None
        self.resting = False  # until a turn is over, or what a signal returned

    def _start(self) -> Any:
        subscriber = cast("Any", self.subscriber)
        on_next = subscriber.append if self.after is not None else subscriber.on_next
        self.drain = drain = self.loop.run(self, self.src, on_next, *self.chain.arguments)
        return drain

    def _run(self) -> None:
        """Run the drain until it has to wait, and return when nobody has to."""
        drain = self.drain or self._start()
        self.start_slice()
        while True:
            try:
                pause: Pause | None = next(drain, None)
            except SubscriberRaised as raised:
                self._raised("on_next", raised.error)
                return
            except UpstreamFailed as failed:
                self.error, pause = failed.error, None
            except Exception as error:
                self.error, pause = error, None
            except BaseException:  # it stops the program: nobody is to hear of a completion
                self.dead = True
                self._step(Input.CANCEL)
                self._enter(Input.FINISHED)
                raise
            if self.after is not None:
                self.after()
            if pause is None or self.dead:
                self._enter(Input.FINISHED)
                return
            if pause is TURN:
                self.resting = True
                self.loop_handle.call_soon(self._resume)
                return
            if pause is HOLD:
                self.resting = True
                self._hold("on_next", self._resume)
                return
            if pause is DRY and self.intake is not None:
                self.intake.ask(self.need)
            self.pause = pause
            action = self._step(Input.PAUSED)
            if action is not Action.RECHECK:
                self._terminate()
                return
            if not self._ready():
                return
            self._step(Input.WAKE)

    def _resume(self) -> None:
        self.resting = False
        if self.dead:
            self._enter(Input.FINISHED)
        else:
            self._run()

    def _interrupt(self) -> None:
        """The drain looks at the flag after each signal; one that rests can end now."""
        # But a terminal signal waits until the signal under way has ended (1.3).
        if self.resting and not self.fault:
            self._enter(Input.FINISHED)

    def _release(self) -> None:
        drain, self.drain = self.drain, None
        if drain is not None:
            drain.close()
        super()._release()
