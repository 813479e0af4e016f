"""The tasks of one connection: none of them outlives it."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from .._core.loop import LoopHandle, wait_settled

if TYPE_CHECKING:
    from .._core.loop import Task

__all__ = ("ConnectionTasks",)


class ConnectionTasks:
    """The tasks that serve a peer."""

    def __init__(self, loop_handle: LoopHandle) -> None:
        self._loop_handle = loop_handle
        self._tasks: set[Task[Any]] = set()
        self._on_idle: Callable[[], object] | None = None

    def create_task(self, work: Coroutine[Any, Any, Any], name: str) -> "Task[Any]":
        task = self._loop_handle.create_task(work, name)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def cancel(self) -> None:
        """Cancel all tasks but the current one."""
        for task in list(self._tasks):
            if not self._loop_handle.is_current_task(task):
                task.cancel()

    def call_when_idle(self, callback: Callable[[], object]) -> None:
        """Call *callback* once no task is left: at once if there is none."""
        self._on_idle = callback
        if not self._tasks:
            callback()

    async def wait(self) -> None:
        """Wait for all tasks but the current one."""
        is_current = self._loop_handle.is_current_task
        await wait_settled(*(task for task in self._tasks if not is_current(task)))

    def _on_done(self, task: "Task[Any]") -> None:
        self._tasks.discard(task)
        if not self._tasks and self._on_idle is not None:
            self._on_idle()
