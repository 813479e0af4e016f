"""SerialExecutor: the trampoline on an event loop, for plain and coroutine signals."""

from collections.abc import Callable
from functools import partial
from inspect import isawaitable, iscoroutine
from typing import Any

from ..errors import Interrupted
from .arguments import require_sync_callable
from .failures import STOPS_PROGRAM, as_failure, is_cancelled
from .loop import Future, LoopHandle, Task, wait_settled, yield_to_loop
from .time_slice import TimeSlice
from .trampoline import ExecutorState, Job, Trampoline


class SerialExecutor:
    """Runs signals one at a time, in the order of their submission, each to its end.

    A signal is a callable with its arguments. An awaitable that it returns is awaited before the
    next signal starts. A signal submitted while another runs, even by that one, waits in a queue:
    the depth is never more than one (rules 1.3, 3.3). `submit` may be called from any thread and
    returns at once; on the loop's thread, if no signal is running, the signal runs inside it.

    *capacity* is how many signals may wait; one more raises `Overflow` in the caller. A signal that
    raises does not stop the others: its error goes to *on_error*, or else to the loop's exception
    handler. Signals run in the context in which the executor was created, and the event loop gets
    a turn after about 2 ms of signals.
    """

    __slots__ = ("_loop_handle", "_on_error", "_queue", "_task", "_waiters")

    def __init__(
        self,
        *,
        capacity: int | None = 1024,
        on_error: Callable[[BaseException], object] | None = None,
        loop_handle: LoopHandle | None = None,
    ) -> None:
        if on_error is not None:
            remedy = "start a task in it for what has to be awaited."
            require_sync_callable("SerialExecutor", "on_error", on_error, remedy, takes=1)
        self._loop_handle = loop_handle or LoopHandle("SerialExecutor()")
        self._queue = Trampoline(capacity)
        self._on_error = on_error
        self._task: Task[None] | None = None
        self._waiters: list[Future[Any]] = []

    def __repr__(self) -> str:
        return f"<SerialExecutor {self._queue.state.name.lower()}, {len(self._queue)} waiting>"

    def __len__(self) -> int:
        """How many signals wait."""
        return len(self._queue)

    def submit(self, signal: Callable[..., object], /, *args: object) -> None:
        """Run ``signal(*args)`` after every signal submitted before has ended."""
        if not self._queue.offer((signal, args)):
            return
        if not self._loop_handle.is_current_thread:
            self._loop_handle.call_soon_threadsafe(self._run)
        else:
            self._loop_handle.run_or_defer(SerialExecutor._run, self)

    async def drained(self) -> None:
        """Wait until no signal runs or waits."""
        while self._queue.state is ExecutorState.RUNNING or self._task is not None:
            waiter = self._loop_handle.create_future()
            self._waiters.append(waiter)
            await waiter

    async def aclose(self) -> None:
        """Drop the waiting signals, accept no more, and wait for the running one to end."""
        self._queue.close()
        task = self._task
        if task is not None and not self._loop_handle.is_current_task(task):
            await wait_settled(task)

    # -- running: plain signals here; from the first awaitable on, in a task -----------------------
    def _run(self) -> None:
        time_slice = TimeSlice()
        time_slice.start_slice()
        while (job := self._queue.take()) is not None:
            try:
                result = self._call(job)
            except BaseException:
                self._loop_handle.call_soon(self._run)  # the other signals still run
                raise
            if result is not None and isawaitable(result):
                self._task = self._loop_handle.create_task(
                    self._run_in_task(result), repr(self), partial(self._on_task_done, result)
                )
                return
            if len(self._queue) and time_slice.check_slice():
                self._loop_handle.call_soon(self._run)
                return
        self._wake_waiters()

    async def _run_in_task(self, result: object) -> None:
        time_slice = TimeSlice()
        time_slice.start_slice()
        job: Job | None
        while True:
            if isawaitable(result):
                try:
                    await result
                except BaseException as error:
                    if is_cancelled(self._task, error):
                        raise
                    self._signal_raised(error)
            if time_slice.check_slice():
                await yield_to_loop()
                time_slice.start_slice()
            if (job := self._queue.take()) is None:
                break
            result = self._call(job)
        self._task = None
        self._wake_waiters()

    def _on_task_done(self, first: object, task: Task[None]) -> None:
        """Continue after a signal that was cancelled from outside or raised a BaseException."""
        if not task.cancelled() and task.exception() is None:
            return
        if iscoroutine(first):
            first.close()  # it has not started if the task has not
        self._task = None
        if task.cancelled():
            self._handle_error(
                Interrupted("a signal on a serial executor was cancelled from outside")
            )
        self._loop_handle.run(self._run)

    def _call(self, job: Job) -> object:
        signal, args = job
        try:
            return signal(*args)
        except BaseException as error:
            self._signal_raised(error)
            return None

    def _wake_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _signal_raised(self, error: BaseException) -> None:
        stops = isinstance(error, STOPS_PROGRAM)
        if not stops or self._on_error is not None:
            self._handle_error(as_failure(error))
        if stops:
            raise error

    def _handle_error(self, error: BaseException) -> None:
        if self._on_error is not None:
            try:
                self._on_error(error)
            except BaseException as another:
                error = another
            else:
                return
        self._loop_handle.report("a signal on a serial executor raised", error)
