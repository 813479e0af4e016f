"""AwaitedSignals: the signals of an island that return an awaitable.

The next signal waits until a task has awaited it (1.3). A subscriber whose ``on_next`` is a
coroutine function has a `TaskIsland`, which awaits that in its own task.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable, iscoroutine
from typing import Any, cast

from ...errors import Interrupted
from ..compiler.chain import Chain
from ..flow_subscription import FlowSubscription
from ..loop import CancelledError, LoopHandle, Task
from ..time_slice import TimeSlice
from .lifecycle import Input, Phase


class AwaitedSignals(TimeSlice, FlowSubscription):
    """The part of an island that awaits what a signal has returned."""

    __slots__ = (
        "chain",
        "error",
        "is_stopped",
        "loop_handle",
        "pending_signal",
        "phase",
        "task",
    )
    chain: Chain
    loop_handle: LoopHandle
    phase: Phase
    is_stopped: bool
    error: BaseException | None
    pending_signal: Awaitable[None] | None
    task: Task[Any] | None

    def _enter(self, happened: Input) -> None:
        """Apply *happened* to the table of `lifecycle`."""
        raise NotImplementedError  # `Island` does

    def _subscriber_raised(self, signal: str, error: BaseException) -> None:
        """Cancel the subscription of a subscriber that raises (2.13)."""
        raise NotImplementedError  # `Island` does

    def must_await(self, signalled: object) -> bool:
        """Whether a signal returned an awaitable, which the next signal has to wait for (1.3)."""
        if isawaitable(signalled):
            self.pending_signal = signalled
            return True
        return False

    def _await_in_task(self, signal: str, then: Callable[[], None]) -> None:
        pending, self.pending_signal = cast("Awaitable[None]", self.pending_signal), None
        if self.loop_handle.is_closed:
            if iscoroutine(pending):
                pending.close()  # no loop is left to await it
            return
        name = f"{signal} of {self.chain.trail()}"
        task = self.loop_handle.create_task(self._run_signal(pending, signal, then), name)
        task.add_done_callback(partial(self._on_signal_task_done, pending))
        self.task = self.task or task

    def _on_signal_task_done(self, pending: Awaitable[None], task: Task[Any]) -> None:
        if task.cancelled():
            if iscoroutine(pending):
                pending.close()  # it has not started if the task has not
            self._on_task_done(task)

    def _on_task_done(self, task: Task[Any]) -> None:
        """End the subscription of a task that was cancelled before its first step."""
        if not task.cancelled():
            task.exception()  # it stops the program, and has left the loop
        if self.phase is not Phase.CLOSED:
            if not self.is_stopped:
                self.error = Interrupted(f"the task {task.get_name()!r} was cancelled from outside")
            self.loop_handle.run(self._enter, Input.FINISHED)

    async def _run_signal(
        self, pending: Awaitable[None], signal: str, then: Callable[[], None]
    ) -> None:
        self.task = None
        try:
            await pending
        except CancelledError:
            raise  # `_on_signal_task_done` ends the subscription
        except BaseException as error:
            self._subscriber_raised(signal, error)
        else:
            then()
