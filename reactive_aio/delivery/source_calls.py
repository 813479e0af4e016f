"""SourceCalls: the functions of a source that acknowledge, called and awaited with a bound."""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable, iscoroutine
from typing import Any, Final, cast

from .._core.failures import STOPS_PROGRAM, as_failure, is_cancelled_here
from .._core.loop import Task, timeout as time_limit
from ..errors import Interrupted, TimedOut
from ..stage import Coordinator, describe

_CLEARED: Final = "an acknowledgement was cancelled from outside"


@dataclass(slots=True, eq=False)
class SourceCall:
    """A call of a function of the source."""

    function: Callable[..., object]
    arguments: tuple[Any, ...]
    then: Callable[[], object]
    on_error: Callable[[BaseException], object]
    on_dropped: Callable[[], object] | None = None
    """Of a dead letter: what is done if it is not called, as another one has failed."""
    is_awaited: bool = False
    """Whether the task that awaits its result has begun."""


class SourceCalls:
    """Calls functions in the order in which they are submitted, *concurrency* at a time.

    A plain function is called at once if nothing runs before it. The result of a coroutine function
    is awaited in a task, for at most *limit* seconds. The caller bounds how many calls wait.
    """

    __slots__ = ("_concurrency", "_is_stopped", "_limit", "_loop_handle", "_on_done", "_on_error",
                 "_running", "_tasks", "_waiting", "operator")  # fmt: skip

    def __init__(
        self,
        operator: Coordinator[Any],
        concurrency: int,
        limit: float,
        on_done: Callable[[SourceCall], object],
        on_error: Callable[[SourceCall, BaseException], object],
    ) -> None:
        self.operator: Final = operator
        """Whose calls they are, for reports."""
        self._loop_handle = operator.loop_handle
        self._concurrency = concurrency
        self._limit = limit
        self._on_done = on_done
        self._on_error = on_error
        self._waiting: deque[SourceCall] = deque()
        self._running = 0
        self._is_stopped = False
        """Whether the program ends: nothing more is acknowledged."""
        self._tasks: set[Task[Any]] = set()

    def submit(self, call: SourceCall) -> bool:
        """Call the function; then *on_done* with the call, or *on_error* with what it raised.

        Return True if a plain function has returned already; *on_done* is not called then.
        """
        if self._is_stopped:
            return False
        if self._waiting or self._running == self._concurrency:
            self._waiting.append(call)
            return False
        try:
            returned = call.function(*call.arguments)
        except BaseException as error:
            self._raised(call, error)
            return False
        if not isawaitable(returned):
            return True
        self._start_task(call, cast("Awaitable[object]", returned))
        return False

    def drop_like(self, call: SourceCall) -> list[SourceCall]:
        """Drop the calls that have not begun: of dead letters, or of the source, as *call* is."""
        is_dead_letter = call.on_dropped is not None
        dropped = [e for e in self._waiting if (e.on_dropped is not None) is is_dead_letter]
        kept = [e for e in self._waiting if (e.on_dropped is not None) is not is_dead_letter]
        self._waiting = deque(kept)
        return dropped

    @property
    def tasks(self) -> Sequence[Task[Any]]:
        """Those that await a call; one that ends may be followed by others."""
        return [*self._tasks]

    def _start_task(self, call: SourceCall, awaitable: Awaitable[object]) -> None:
        self._running += 1
        on_done = partial(self._on_task_done, call, awaitable)
        work = self._work(call, awaitable)
        self._tasks.add(self._loop_handle.create_task(work, "an acknowledgement", on_done))

    def _next(self) -> "tuple[SourceCall, Awaitable[object]] | None":
        """Begin the next calls, until the result of one has to be awaited."""
        while self._waiting:
            call = self._waiting.popleft()
            awaitable = self._begin(call)
            if awaitable is not None:
                return call, awaitable
        return None

    def _begin(self, call: SourceCall) -> Awaitable[object] | None:
        """Call the function. Return what is to be awaited; without that, the call has ended."""
        try:
            returned = call.function(*call.arguments)
        except BaseException as error:
            self._raised(call, error)
            return None
        if isawaitable(returned):
            return cast("Awaitable[object]", returned)
        self._end(call, None)
        return None

    def _raised(self, call: SourceCall, error: BaseException) -> None:
        self._on_error(call, as_failure(error))
        if isinstance(error, STOPS_PROGRAM):
            raise error

    async def _work(self, call: SourceCall, awaitable: Awaitable[object]) -> None:
        following: tuple[SourceCall, Awaitable[object]] | None = (call, awaitable)
        try:
            while following is not None:
                call, awaitable = following
                error = await self._result(call, awaitable)
                self._loop_handle.run(self._end, call, error)
                following = self._next()
        finally:
            self._running -= 1

    async def _result(self, call: SourceCall, awaitable: Awaitable[object]) -> BaseException | None:
        """Await the result of a call; return its error."""
        call.is_awaited = True
        limit = time_limit(self._limit)
        try:
            async with limit:
                await awaitable
        except TimeoutError as raised:
            if not limit.expired():
                return raised
            error = TimedOut(f"{describe(call.function)} took longer than {self._limit:g} s")
            error.__cause__ = raised
            return error
        except BaseException as raised:
            if is_cancelled_here(raised):  # the program ends: nothing more is acknowledged
                self._stop(call)
                raise
            if isinstance(raised, STOPS_PROGRAM):
                self._end(call, as_failure(raised))
                raise
            return as_failure(raised)
        return None

    def _end(self, call: SourceCall, error: BaseException | None) -> None:
        if error is None:
            self._on_done(call)
        else:
            self._on_error(call, error)

    def _stop(self, call: SourceCall) -> None:
        self._is_stopped = True
        self._waiting.clear()
        self._end(call, Interrupted(_CLEARED))

    def _on_task_done(
        self, call: SourceCall, awaitable: Awaitable[object], task: Task[Any]
    ) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # it stops the program, and has left the loop
        elif not call.is_awaited:  # it was cancelled before it began
            if iscoroutine(awaitable):
                awaitable.close()
            self._loop_handle.run(self._stop, call)
