"""The island with something to await: its loop is a coroutine, in one task."""

from inspect import isawaitable
from typing import Any, cast

from ...errors import Interrupted
from ...spec import Subscriber
from ..compiler.chain import Chain
from ..compiler.chain_sources import AsyncSource
from ..compiler.loop_compiler import DRY, WAIT, Done, Pause, SubscriberRaised
from ..loop import CancelledError, Future, LoopHandle, yield_to_loop
from .input_queue import InputQueue, UpstreamFailed
from .island import Island
from .lifecycle import Action, Input, Phase

__all__ = ("TaskIsland",)


class TaskIsland(Island):
    """A subscription with something to await: one task for all of it, started by demand."""

    __slots__ = ("signalling", "waiter")
    mode = "task"

    def __init__(
        self, chain: Chain, subscriber: Subscriber[Any], delivery: str, loop_handle: LoopHandle
    ) -> None:
        super().__init__(chain, subscriber, delivery, loop_handle)
        self.waiter: Future[Any] | None = None
        self.signalling = False

    def _run(self) -> None:
        if self.waiter is not None:
            if not self.waiter.done():
                self.waiter.set_result(None)
        elif self.task is None:
            self.task = self.loop_handle.create_task(self._main(), self.chain.trail())
            self.task.add_done_callback(self._lost)

    async def _main(self) -> None:
        try:
            await self._drain()
        except CancelledError:
            if self.dead:
                return
            self.error = Interrupted("the task of this subscription was cancelled from outside")
            raise
        except SubscriberRaised as raised:
            self._raised("on_next", raised.error)
        except UpstreamFailed as failed:
            self.error = failed.error
        except Exception as error:
            self.error = error
        except BaseException:  # it stops the program: nobody is to hear of a completion
            self.dead = True
            raise
        finally:
            self._enter(Input.FINISHED)

    async def _drain(self) -> None:
        self.start_slice()
        head = self.chain.source
        src = self._source(head) if isinstance(head, AsyncSource) else self.src
        subscriber = cast("Any", self.subscriber)
        on_next = subscriber.append if self.after is not None else subscriber.on_next
        try:
            await self.loop.run(self, src, on_next, *self.chain.arguments)
        finally:
            if isinstance(head, AsyncSource) and hasattr(src, "aclose"):
                await src.aclose()

    def _source(self, head: AsyncSource) -> Any:
        try:
            return head.open()
        except Exception as error:
            raise self._unopened(error)  # noqa: B904 - as a rule it is the same

    # -- called by the drain ----------------------------------------------------------------------
    async def demand(self, emitted: int, within: bool = False) -> None:
        """Wait until there is demand; *within* what a stage makes of one element."""
        self.emitted = emitted
        self.pause: Pause = WAIT
        while self.limit <= emitted:
            if self.dead or (not within and self.spent()):
                raise Done
            await self._wait()

    async def elements(self, emitted: int) -> None:
        """Wait until there are elements, or no more."""
        self.emitted = emitted
        self.pause = DRY
        intake = cast("InputQueue[Any]", self.intake)
        intake.ask(self.need)
        if not intake.news:
            await self._wait()

    async def _wait(self) -> None:
        if self._step(Input.PAUSED) is not Action.RECHECK:
            self.phase = Phase.CLOSING  # the drain unwinds; its end terminates
            raise Done
        self.waiter = self.loop_handle.create_future()
        if self._ready():
            self._enter(Input.WAKE)
        try:
            await self.waiter
        finally:
            self.waiter = None

    async def yield_slice(self) -> None:
        """Give everybody else a turn."""
        await yield_to_loop()
        self.start_slice()

    async def held(self, signalled: object) -> None:
        """Await what a signal returned, if it can be awaited."""
        if isawaitable(signalled):
            self.signalling = True
            try:
                await signalled
            except Exception as error:
                raise SubscriberRaised(error) from error
            self.signalling = False

    # -- ending -----------------------------------------------------------------------------------
    def _interrupt(self) -> None:
        """End what a stage or the source awaits; but a signal runs to its end (1.3)."""
        if self.task is None or self.loop_handle.is_current_task(self.task):
            return
        if not self.signalling and not self.loop_handle.is_closed:
            self.task.cancel()
        self._leave()

    def _release(self) -> None:
        super()._release()
        self._interrupt()
