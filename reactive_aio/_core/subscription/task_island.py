"""TaskIsland: a subscription whose generated loop is a coroutine, run in one task."""

from inspect import isawaitable
from typing import TYPE_CHECKING, Any, cast

from ...errors import Interrupted
from ..compiler.chain import AsyncSource
from ..compiler.loop_runtime import (
    MID_ELEMENT,
    NO_DEMAND,
    NO_ELEMENTS,
    Done,
    Pause,
    SubscriberRaised,
    UpstreamFailed,
)
from ..failures import STOPS_PROGRAM, as_failure, is_cancelled, run_cleanup
from ..loop import (
    CancelledError,
    Future,
    Task,
    cancel_task,
    yield_to_loop,
)
from ..observation.registry import note_turn
from .island import Island
from .lifecycle import Action, Input, Phase
from .stoppable_iterator import StoppableIterator

if TYPE_CHECKING:
    from .input_queue import InputQueue


def _cancelled_by_source(name: str) -> Interrupted:
    """What a time limit around a ``yield`` has cancelled is whoever reads the generator then."""
    return Interrupted(
        f"the generator of {name} has a time limit or a task group around a `yield`, "
        "and that has cancelled the task that runs the flow; let it end before the `yield`, or use "
        "timeout() of the flow"
    )


class TaskIsland(Island):
    """A subscription that awaits something: one task for all of it, started by demand."""

    __slots__ = ("is_signalling", "running_loop", "waiter")
    mode = "task"

    def __post_init__(self, delivery: str) -> None:
        super().__post_init__(delivery)
        self.waiter: Future[Any] | None = None
        self.running_loop: Any = None  # the coroutine
        self.is_signalling = False

    @property
    def flushes_each_element(self) -> bool:
        return True

    @property
    def is_waiting(self) -> bool:
        return self.waiter is not None

    @property
    def awaited(self) -> Any:
        return self.running_loop

    def _run(self) -> None:
        if self.waiter is not None:
            if not self.waiter.done():
                self.waiter.set_result(None)
        elif self.task is None:
            self.task = self.loop_handle.create_task(
                self._main(), self.chain.trail(), self._on_task_done
            )

    async def _main(self) -> None:
        try:
            await self._drain()
        except (CancelledError, GeneratorExit) as error:
            if self.is_stopped:
                return
            if self.loop_handle.is_closed or is_cancelled(self.task, error):
                self.error = Interrupted("the task of this subscription was cancelled from outside")
                raise
            self.error = as_failure(error)
        except SubscriberRaised as raised:
            self._subscriber_raised("on_next", raised.error)
        except UpstreamFailed as failed:
            self.error = failed.error
        except BaseException as error:
            self.error = as_failure(error)
            if isinstance(error, STOPS_PROGRAM):
                raise
        finally:
            self._enter(Input.FINISHED)
            if self.error is not None:  # it was closed before, and the cleanup of the source raised
                dropped, self.error = self.error, None
                self._report_dropped(dropped)

    async def _drain(self) -> None:
        self.start_slice()
        source, src = self.chain.source, self.source
        if isinstance(source, AsyncSource):
            try:
                src = self._open_async_source()
            except STOPS_PROGRAM:
                raise
            except BaseException as error:
                raise self._opening_error(error)  # noqa: B904 - usually it is the same error
        subscriber = cast("Any", self.subscriber)
        on_next = subscriber.append if self.flush_batch is not None else subscriber.on_next
        try:
            self.running_loop = self.compiled_loop.run(self, src, on_next, self.chain.arguments)
            await self.running_loop
        except BaseException as error:
            task = cast("Task[Any]", self.task)
            cancellations = task.cancelling()
            await self._clean_up(src, error)
            if isinstance(error, CancelledError) and task.cancelling() < cancellations:
                raise _cancelled_by_source(self.chain.name) from error
            raise
        await self._clean_up(src)

    def _open_async_source(self) -> Any:
        control = self.control
        if control is None:
            return self.chain.open_source(self.compiled_loop, self.discards)
        is_over = control.is_stopped
        opened = None if is_over else self.chain.open_source(self.compiled_loop, self.discards)
        return StoppableIterator(opened, control, cast("Task[Any]", self.task))

    async def _clean_up(self, source: Any, failed: BaseException | None = None) -> None:
        """Run an asynchronous source's cleanup; its errors are no failures of the flow."""
        if not isinstance(self.chain.source, AsyncSource) or not hasattr(source, "aclose"):
            return
        if isinstance(failed, GeneratorExit) and not self.loop_handle.is_current_task(self.task):
            return  # its loop is closed, so that nothing can be awaited
        if (failure := await run_cleanup(source)) is None:
            return
        # A cancellation may be that of a task group in the source, which raises the cause only now.
        is_cause = isinstance(failed, CancelledError) and not self.is_stopped
        if is_cause or isinstance(failure, STOPS_PROGRAM):
            raise failure
        self._report_dropped(as_failure(failure))

    # -- called by the compiled loop --------------------------------------------------------------
    async def wait_for_demand(self, emitted: int, within: bool = False) -> None:
        """Wait until there is demand; *within* a stage that still emits for its element."""
        self.emitted = emitted
        self.pause: Pause = MID_ELEMENT if within else NO_DEMAND
        queue = None if within else self.input_queue
        while self.limit <= emitted:
            if self.is_stopped or (not within and self.is_source_spent()):
                raise Done
            if queue is not None and queue.is_over:
                return
            await self._wait()

    async def wait_for_elements(self, emitted: int) -> None:
        """Wait until there are elements, or the end."""
        self.emitted = emitted
        self.pause = NO_ELEMENTS
        queue = cast("InputQueue[Any]", self.input_queue)
        try:
            queue.request_needed(self.needed_from_upstream)
        except BaseException as error:
            self._upstream_raised(queue, error)
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
        note_turn()
        await yield_to_loop()
        self.start_slice()

    async def await_signal(self, signalled: object) -> None:
        """Await what a signal returned, if it is awaitable."""
        if isawaitable(signalled):
            self.is_signalling = True
            try:
                await signalled
            except BaseException as error:
                if self.is_cancelled(error):
                    raise
                raise SubscriberRaised(error) from error
            self.is_signalling = False

    # -- the end ----------------------------------------------------------------------------------
    def _interrupt(self) -> None:
        """Cancel what a stage or the source awaits; but a signal runs to its end (1.3)."""
        if self.task is None or self.loop_handle.is_current_task(self.task):
            return
        if self.loop_handle.is_closed or not self.is_signalling:
            cancel_task(self.task)
        self._close_source()

    def _release(self) -> None:
        try:
            super()._release()
        finally:
            self._interrupt()
