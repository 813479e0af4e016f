"""AwaitPool: awaitables that run at the same time, in tasks that are reused."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

from ...errors import Interrupted
from ..compiler.chain import Name
from ..failures import STOPS_PROGRAM, as_failure, is_cancelled_here
from ..loop import CancelledError, LoopHandle, Task, cancel_task, yield_to_loop
from ..observation.awaited import Wait, wait_of
from ..time_slice import TimeSlice

K = TypeVar("K")
Make = Callable[[], Awaitable[Any]]
Job = tuple[Make, K]

_FIRST_BATCH: Final = 8  # awaitables before the clock is read


class AwaitPool(Generic[K]):
    """Awaits each awaitable that it is given, and reports its result or error to its owner.

    An error is reported with the *key* that was given with the awaitable. The owner decides how
    many run at the same time. A task that has reported a result continues with the next awaitable,
    if *on_result* has started one, and ends otherwise. A result that comes after `cancel` goes to
    *on_late_result*, and the key of an awaitable that was cancelled to *on_cancelled*.
    """

    __slots__ = ("_is_closed", "_is_reporting", "_last_worker", "_loop_handle", "_name",
                 "_next", "_on_cancelled", "_on_error", "_on_late_result", "_on_result",
                 "_report_cleanup", "_tasks", "running")  # fmt: skip

    def __init__(
        self,
        loop_handle: LoopHandle,
        name: Name,
        on_result: Callable[[Any], object],
        on_error: Callable[[BaseException, K], object],
        report_cleanup: Callable[[str, BaseException], object],
        on_late_result: Callable[[Any], object] = lambda _: None,
        on_cancelled: Callable[[K], object] = lambda _: None,
    ) -> None:
        self._loop_handle = loop_handle
        self._name = name
        self._on_result = on_result
        self._on_error = on_error
        self._report_cleanup = report_cleanup
        self._on_late_result = on_late_result
        self._on_cancelled = on_cancelled
        self._next: Job[K] | None = None  # for the task that reports a result
        self._is_reporting = False
        self._is_closed = False
        self._tasks: set[Task[Any]] = set()
        self._last_worker: object = None  # stands for the task that has begun the last awaitable
        self.running: int = 0
        """How many awaitables have neither a result nor an error."""

    def start(self, make: Make, key: K) -> None:
        """Await ``make()`` in a task."""
        self.running += 1
        if self._is_reporting and self._next is None:
            self._next = (make, key)
        else:
            jobs = [(make, key)]
            task = self._loop_handle.create_task(
                self._work(jobs), self._shown_name, partial(self._on_task_done, jobs)
            )
            self._tasks.add(task)

    def cancel(self) -> None:
        """Cancel every task; nothing more is reported."""
        if not self._is_closed:
            self._is_closed = True
            for task in self._tasks:
                if not self._loop_handle.is_current_task(task):
                    cancel_task(task)

    @property
    def _shown_name(self) -> str:
        return self._name if isinstance(self._name, str) else self._name()

    def waits(self) -> Iterator[Wait]:
        """What its tasks wait for."""
        for task in self._tasks:
            if (wait := wait_of(task.get_coro())) is not None:
                yield wait

    @property
    def tasks(self) -> Sequence[Task[Any]]:
        """Those that have not ended."""
        return [*self._tasks]

    async def _work(self, jobs: list[Job[K]]) -> None:
        worker, time_slice = object(), TimeSlice()
        batch = left = _FIRST_BATCH
        while jobs and not self._is_closed:
            make, key = jobs.pop()
            try:
                if self._last_worker is not worker:  # so this task was suspended in between
                    self._last_worker = worker
                    batch = left = _FIRST_BATCH
                    time_slice.slice_end = 0.0  # it starts when the clock is read next
                elif not left:
                    left = batch = time_slice.next_batch_size(batch)
                    if time_slice.is_slice_over:
                        await yield_to_loop()  # none of the awaitables may have suspended
                        time_slice.start_slice()
                left -= 1
                result = await make()
            except BaseException as error:
                self._failed(error, key)
                if isinstance(error, STOPS_PROGRAM) or is_cancelled_here(error):
                    raise
                return
            self.running -= 1
            if self._is_closed:
                self._on_late_result(result)  # type: ignore[unreachable]  # closed meanwhile
                return
            self._is_reporting = True
            try:
                self._on_result(result)
            finally:
                self._is_reporting = False
            if self._next is not None:
                jobs.append(self._next)
                self._next = None

    def _failed(self, error: BaseException, key: K) -> None:
        self.running -= 1
        if self._is_closed:
            self._on_cancelled(key)
        if not self._is_closed:
            if isinstance(error, CancelledError) and is_cancelled_here(error):
                error = Interrupted(f"{self._shown_name} was cancelled from outside")
            self._on_error(as_failure(error), key)
        elif not isinstance(error, (CancelledError, GeneratorExit, *STOPS_PROGRAM)):
            self._report_cleanup(f"{self._shown_name} raised after the end of its flow", error)

    def _on_task_done(self, jobs: list[Job[K]], task: Task[Any]) -> None:
        self._tasks.discard(task)
        for _, key in jobs:  # not begun
            self._on_cancelled(key)
        if not task.cancelled():
            task.exception()  # it stops the program, and has left the loop
