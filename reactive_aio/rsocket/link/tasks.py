"""What a connection has on the event loop: its tasks, one timer, and those who wait for it."""

from collections.abc import Callable, Coroutine
from inspect import iscoroutine
from typing import Any

from ..._core.loop import Future, LoopHandle, Task, TimerHandle, cancel_task, wait_settled


class ConnectionTasks:
    """The tasks that do not outlive a connection."""

    __slots__ = ("_background", "_loop_handle", "_on_idle", "_tasks", "is_closed")

    def __init__(self, loop_handle: LoopHandle) -> None:
        self._loop_handle = loop_handle
        self._on_idle: Callable[[], object] | None = None
        self.is_closed: bool = False
        """Whether no more are started: the connection has ended, or ends."""
        self._tasks: dict[Task[Any], tuple[object, ...]] = {}
        self._background: tuple[Task[Any], ...] = ()

    def __bool__(self) -> bool:
        return bool(self._tasks)

    @property
    def has_work(self) -> bool:
        """Whether one of them serves a request."""
        return not self._tasks.keys() <= set(self._background)

    def create(
        self, work: Coroutine[Any, Any, Any], name: str, *awaited: object
    ) -> "Task[Any] | None":
        """Start a task that does not outlive the connection; None if that has ended.

        If the connection ends properly, the task may continue for a limited time. Coroutines that
        *work* would have *awaited* are closed if it never begins.
        """
        if self.is_closed:
            close_coroutines((work, *awaited))
            return None
        task = self._loop_handle.create_task(work, name, self._on_done)
        self._tasks[task] = awaited
        return task

    def create_background(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        """Start a task that serves the connection, and no request: its end cancels it."""
        if (task := self.create(work, name)) is not None:
            self._background = (*self._background, task)

    def _on_done(self, task: Task[Any]) -> None:
        awaited = self._tasks.pop(task, ())
        if awaited and task.cancelled():
            close_coroutines(awaited)
        self._look()

    def when_idle(self, callback: Callable[[], object]) -> None:
        """Call *callback* once no task is left, which may be now."""
        self._on_idle = callback
        self._look()

    def _look(self) -> None:
        if not self._tasks and (callback := self._on_idle) is not None:
            self._on_idle = None
            callback()

    def cancel(self, *, only_background: bool = False) -> None:
        """Cancel all tasks but the current one; their cleanups run to their end."""
        for task in self._background if only_background else list(self._tasks):
            if not self._loop_handle.is_current_task(task):
                cancel_task(task)

    async def wait(self) -> None:
        """Wait until all tasks but the current one have ended."""
        is_current = self._loop_handle.is_current_task
        await wait_settled(*(task for task in self._tasks if not is_current(task)))


def close_coroutines(objects: tuple[object, ...]) -> None:
    for each in objects:
        if iscoroutine(each):
            each.close()


def _no_deadline() -> None:
    return None


def _nothing_is_due(_: float) -> None:
    pass


class DeadlineTimer:
    """One timer for the next of many deadlines.

    A deadline that moves away, as most do, does not replace the timer: setting it is free.
    """

    __slots__ = ("_deadline", "_loop_handle", "_next_deadline", "_on_time", "_timer")

    def __init__(
        self,
        loop_handle: LoopHandle,
        next_deadline: Callable[[], float | None],
        on_time: Callable[[float], object],
    ) -> None:
        self._loop_handle = loop_handle
        self._next_deadline = next_deadline
        self._on_time = on_time
        self._timer: TimerHandle | None = None
        self._deadline = 0.0  # of the timer

    def update(self) -> None:
        """Set the timer for the next deadline, unless it fires before."""
        deadline = self._next_deadline()
        if deadline is None or (self._timer is not None and self._deadline <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._deadline = deadline
        delay = max(0.0, deadline - self._loop_handle.time())
        self._timer = self._loop_handle.call_later(delay, self._fire)

    def cancel(self) -> None:
        """There are no deadlines any more, and nothing refers to their owner."""
        self._next_deadline, self._on_time = _no_deadline, _nothing_is_due
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        now, deadline = self._loop_handle.time(), self._next_deadline()
        if deadline is not None and now >= deadline:
            self._on_time(now)
        else:
            self.update()


class Waiters:
    """Those who wait for a state of the connection, which is looked at after each turn."""

    __slots__ = ("_loop_handle", "waiting")

    def __init__(self, loop_handle: LoopHandle) -> None:
        self._loop_handle = loop_handle
        self.waiting: list[tuple[Callable[[], bool], Future[None]]] = []

    def until(self, holds: Callable[[], bool]) -> Future[None]:
        """A future that is done when *holds* returns True, or the connection has ended."""
        future: Future[None] = self._loop_handle.create_future()
        self.waiting.append((holds, future))
        return future

    def look(self, *, is_over: bool = False) -> None:
        """Wake those whose state has come; all of them if the connection *is_over*."""
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            holds, future = each
            if future.done():
                continue  # its task was cancelled
            if is_over or holds():
                future.set_result(None)
            else:
                self.waiting.append(each)
