"""The tasks of one connection: none of them outlives it."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from .._core.loop import LoopHandle, wait_settled

if TYPE_CHECKING:
    from .._core.loop import Task

__all__ = ("ConnectionTasks",)


class ConnectionTasks:
    """What is being done for a peer."""

    def __init__(self, loop_handle: LoopHandle) -> None:
        self._loop_handle = loop_handle
        self._tasks: set[Task[Any]] = set()
        self._idle: Callable[[], object] | None = None

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> "Task[Any]":
        task = self._loop_handle.create_task(work, name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def stop(self) -> None:
        """Cancel all tasks but the one that asks for it."""
        for task in list(self._tasks):
            if not self._loop_handle.is_current_task(task):
                task.cancel()

    def when_idle(self, callback: Callable[[], object]) -> None:
        """Call *callback* when nothing is left to do."""
        self._idle = callback

    async def ended(self) -> None:
        """Wait for all tasks but the one that waits."""
        await wait_settled(
            *(task for task in self._tasks if not self._loop_handle.is_current_task(task))
        )

    def _done(self, task: "Task[Any]") -> None:
        self._tasks.discard(task)
        if not self._tasks and self._idle is not None:
            self._idle()
