"""TaskIsland: the island that awaits something; its loop is a coroutine, in one task."""

from inspect import isawaitable
from typing import TYPE_CHECKING, Any, cast

from ...errors import Interrupted
from ...spec import Subscriber
from ..compiler.chain import Chain
from ..compiler.chain_sources import AsyncSource
from ..compiler.loop_compiler import (
    NO_DEMAND,
    NO_ELEMENTS,
    Done,
    Pause,
    SubscriberRaised,
    UpstreamFailed,
)
from ..loop import CancelledError, Future, LoopHandle, yield_to_loop
from .island import Island
from .lifecycle import Action, Input, Phase

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from .input_queue import InputQueue

__all__ = ("TaskIsland",)


class TaskIsland(Island):
    """A subscription that awaits something: one task for all of it, started by demand."""

    __slots__ = ("is_signalling", "waiter")
    mode = "task"

    def __init__(
        self, chain: Chain, subscriber: Subscriber[Any], delivery: str, loop_handle: LoopHandle
    ) -> None:
        super().__init__(chain, subscriber, delivery, loop_handle)
        self.waiter: Future[Any] | None = None
        self.is_signalling = False

    def _run(self) -> None:
        if self.waiter is not None:
            if not self.waiter.done():
                self.waiter.set_result(None)
        elif self.task is None:
            self.task = self.loop_handle.create_task(self._main(), self.chain.trail())
            self.task.add_done_callback(self._on_task_done)

    async def _main(self) -> None:
        try:
            await self._drain()
        except CancelledError:
            if self.is_stopped:
                return
            self.error = Interrupted("the task of this subscription was cancelled from outside")
            raise
        except SubscriberRaised as raised:
            self._subscriber_raised("on_next", raised.error)
        except UpstreamFailed as failed:
            self.error = failed.error
        except Exception as error:
            self.error = error
        except BaseException:  # the program stops; the subscriber must not see a completion
            self.is_stopped = True
            raise
        finally:
            self._enter(Input.FINISHED)

    async def _drain(self) -> None:
        self.start_slice()
        source = self.chain.source
        src = self._open_async(source) if isinstance(source, AsyncSource) else self.source
        subscriber = cast("Any", self.subscriber)
        on_next = subscriber.append if self.flush_batch is not None else subscriber.on_next
        try:
            await self.compiled_loop.run(self, src, on_next, *self.chain.arguments)
        finally:
            if isinstance(source, AsyncSource) and hasattr(src, "aclose"):
                await cast("AsyncGenerator[Any]", src).aclose()

    def _open_async(self, source: AsyncSource) -> Any:
        try:
            return source.open()
        except Exception as error:
            raise self._opening_error(error)  # noqa: B904 - usually it is the same error

    # -- called by the compiled loop --------------------------------------------------------------
    async def wait_for_demand(self, emitted: int, within: bool = False) -> None:
        """Wait until there is demand; *within* a stage that still emits for its element."""
        self.emitted = emitted
        self.pause: Pause = NO_DEMAND
        while self.limit <= emitted:
            if self.is_stopped or (not within and self.is_source_spent()):
                raise Done
            await self._wait()

    async def wait_for_elements(self, emitted: int) -> None:
        """Wait until there are elements, or the end."""
        self.emitted = emitted
        self.pause = NO_ELEMENTS
        queue = cast("InputQueue[Any]", self.input_queue)
        queue.request_needed(self.needed)
        if not queue.has_news:
            await self._wait()

    async def _wait(self) -> None:
        if self._step(Input.PAUSED) is not Action.RECHECK:
            self.phase = Phase.CLOSING  # the drain unwinds; its end terminates
            raise Done
        self.waiter = self.loop_handle.create_future()
        if self._is_ready():
            self._enter(Input.WAKE)
        try:
            await self.waiter
        finally:
            self.waiter = None

    async def yield_slice(self) -> None:
        """Yield to the event loop, and start a new slice."""
        await yield_to_loop()
        self.start_slice()

    async def await_signal(self, signalled: object) -> None:
        """Await what a signal returned, if it is awaitable."""
        if isawaitable(signalled):
            self.is_signalling = True
            try:
                await signalled
            except Exception as error:
                raise SubscriberRaised(error) from error
            self.is_signalling = False

    # -- the end ----------------------------------------------------------------------------------
    def _interrupt(self) -> None:
        """Cancel what a stage or the source awaits; but a signal runs to its end (1.3)."""
        if self.task is None or self.loop_handle.is_current_task(self.task):
            return
        if not self.is_signalling and not self.loop_handle.is_closed:
            self.task.cancel()
        self._close_source()

    def _release(self) -> None:
        super()._release()
        self._interrupt()
