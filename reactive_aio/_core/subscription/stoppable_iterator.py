"""StoppableIterator: the asynchronous source of a run, which a drain completes while it waits."""

from collections.abc import AsyncIterator
from typing import Any

from ..loop import Cancellation, CancelledError, Task
from ..run_control import RunControl


class StoppableIterator:
    """Iterates *elements* until the run is drained; without any, it ends at once.

    A drain cancels what the source awaits, as leaving the flow would, and the task that it runs in
    goes on: its stages, and the subscriber, are never interrupted. Nor is a source that is cleaning
    up, since it has ended or was cancelled.
    """

    __slots__ = ("_control", "_elements", "_interruption", "_is_waiting", "_task")

    def __init__(
        self,
        elements: AsyncIterator[Any] | None,
        control: RunControl,
        task: "Task[Any]",
    ) -> None:
        self._elements = elements
        self._control = control
        self._task = task
        self._is_waiting = False
        self._interruption: Cancellation | None = None
        control.add(self)

    def stop_source(self) -> None:
        if self._is_waiting and self._interruption is None:
            self._interruption = Cancellation(self._task)

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
            if self._withdraw() and not self._task.cancelling():
                raise StopAsyncIteration from None
            raise
        finally:
            self._is_waiting = False
            self._withdraw()

    def _withdraw(self) -> bool:
        """The source does not wait any more; return whether the drain has interrupted it."""
        interruption, self._interruption = self._interruption, None
        return interruption is not None and interruption.withdraw()

    async def aclose(self) -> None:
        self._control.remove(self)
        aclose = getattr(self._elements, "aclose", None)
        if aclose is not None:
            await aclose()
