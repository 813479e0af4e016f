"""SerialExecutor: the trampoline on an event loop, for signals that are plain or coroutines."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable

from .loop import Door, Future, Task
from .pace import SLICE, perf_counter
from .serial import State, Trampoline

__all__ = ("SerialExecutor",)


class SerialExecutor:
    """Runs signals one at a time, in the order of their submission, each to its end.

    A signal is a callable with its arguments. What it returns is awaited, if it can be, before the
    next signal starts. A signal submitted while another runs (also by that one) waits in a queue:
    the depth is never more than one (rules 1.3, 3.3). `submit` may be called from any thread and
    returns at once; on the loop's thread, with nothing under way, the signal runs inside it.

    *bound* is how many signals may wait; one more raises `Overflow` in the caller. A signal that
    raises does not stop the others: its error goes to *on_error*, or else to the loop's exception
    handler. Signals run in the context in which the executor was made, and the loop gets a turn
    after about 2 ms of them.
    """

    __slots__ = ("_door", "_idle", "_on_error", "_queue", "_task")

    def __init__(
        self,
        *,
        bound: int | None = 1024,
        on_error: Callable[[Exception], object] | None = None,
        door: Door | None = None,
    ) -> None:
        self._door = door or Door("SerialExecutor()")
        self._queue = Trampoline(bound)
        self._on_error = on_error
        self._task: Task[None] | None = None
        self._idle: Future[None] | None = None

    def __repr__(self) -> str:
        return f"<SerialExecutor {self._queue.state.name.lower()}, {len(self._queue)} waiting>"

    def __len__(self) -> int:
        """How many signals wait."""
        return len(self._queue)

    def submit(self, signal: Callable[..., object], /, *args: object) -> None:
        """Run ``signal(*args)`` when all submitted before have ended."""
        if not self._queue.offer((signal, args)):
            return
        if not self._door.here:
            self._door.soon_threadsafe(self._run)
        else:
            self._door.enter(self._run)

    async def drained(self) -> None:
        """Wait until no signal runs or waits."""
        while self._queue.state is State.RUNNING:
            if self._idle is None or self._idle.done():
                self._idle = self._door.future()
            await self._idle

    async def aclose(self) -> None:
        """Drop the signals that wait; let the one that runs come to its end."""
        self._queue.close()
        task = self._task
        if task is not None and not self._door.inside(task):
            await task

    def _run(self) -> None:
        until = perf_counter() + SLICE
        while (job := self._queue.take()) is not None:
            signal, args = job
            try:
                result = signal(*args)
            except Exception as error:
                self._failed(error)
            else:
                if result is not None and isawaitable(result):
                    self._task = self._door.spawn(self._finish(result), "a signal")
                    return
            if perf_counter() >= until:
                self._door.soon(self._run)
                return
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    async def _finish(self, result: Awaitable[object]) -> None:
        try:
            await result
        except Exception as error:
            self._failed(error)
        finally:
            self._task = None
            self._door.soon(self._run)

    def _failed(self, error: Exception) -> None:
        if self._on_error is not None:
            self._on_error(error)
        else:
            self._door.report("a signal on a serial executor raised", error)
