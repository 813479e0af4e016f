"""StoppableIterator: the asynchronous source of a run, which a drain completes while it waits."""

from collections.abc import AsyncIterator
from typing import Any

from ..loop import CancelledError, LoopHandle, Task, cancel_task
from ..run_control import RunControl


class StoppableIterator:
    """Iterates *elements* until the run is drained; without any, it ends at once.

    A drain cancels what the source awaits, as leaving the flow would, and the task that it runs in
    goes on: its stages, and the subscriber, are never interrupted.
    """

    __slots__ = ("_control", "_elements", "_is_interrupted", "_is_waiting", "_loop_handle",
                 "_task")  # fmt: skip

    def __init__(
        self,
        elements: AsyncIterator[Any] | None,
        control: RunControl,
        loop_handle: LoopHandle,
        task: "Task[Any]",
    ) -> None:
        self._elements = elements
        self._control = control
        self._loop_handle = loop_handle
        self._task = task
        self._is_waiting = False
        self._is_interrupted = False
        control.add(self)

    def stop_source(self) -> None:
        if not self._is_waiting or self._is_interrupted:
            return
        if self._loop_handle.is_current_task(self._task):
            self._loop_handle.call_soon(self.stop_source)  # a task that runs cannot be interrupted
        else:
            self._is_interrupted = True
            cancel_task(self._task)

    def __aiter__(self) -> "StoppableIterator":
        return self

    async def __anext__(self) -> Any:
        if self._elements is None or self._control.is_stopped:
            raise StopAsyncIteration
        self._is_waiting = True
        try:
            return await self._elements.__anext__()
        except CancelledError:
            # One more cancellation than that of the drain ends the subscription.
            if self._is_interrupted and self._task.cancelling() == 1:
                raise StopAsyncIteration from None
            raise
        finally:
            self._is_waiting = False
            if self._is_interrupted:
                self._task.uncancel()

    async def aclose(self) -> None:
        self._control.remove(self)
        aclose = getattr(self._elements, "aclose", None)
        if aclose is not None:
            await aclose()
