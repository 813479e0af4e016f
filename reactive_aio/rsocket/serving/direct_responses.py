"""Responses of handlers that take nothing but the data: they need no `RequestExecution`.

The coroutines of such handlers share a task until they suspend, since a task for each request
costs more than all the rest of it. A coroutine that suspends keeps the task, and the others of its
batch continue in another one. Each has a copy of the connection's context, as a task has.
"""

from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from dataclasses import dataclass
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..._core.loop import CancelledError, Task, current_task, yield_to_loop
from ..._core.time_slice import TimeSlice
from ..link.callbacks import ends_task
from ..protocol.frames import ErrorCode
from .unserved import may_serve

if TYPE_CHECKING:
    from ..link.driver import Driver
    from .responder import RouterResponder
    from .route_stats import RouteCounters

SINGLE_TYPES: Final = frozenset({bytes, str, int, float, bool, dict, list, tuple})
"""Types of results that are one element."""

TASKS_AFTER_ONE_SUSPENDS: Final = 256
"""How many coroutines of a handler get a task each after one has suspended. One that suspends in a
shared task delays the others of its batch by a turn of the loop."""

RequestTuple: TypeAlias = tuple[int, bytes, bytes | None]
"""The stream, the data and the metadata of a request for one element."""


@dataclass(slots=True, eq=False)
class DirectHandler:
    """A handler of requests for one element that takes only the data, and how to answer with it.

    The meaning of a request's metadata (route, handler, codecs) is the same each time: it is worked
    out once, and a response then costs little more than the call of the function. Requests that
    need more (a deadline, authorization, a handler with other arguments than the data) are served
    by a `RequestExecution`.
    """

    call: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    counters: "RouteCounters"
    task_name: str
    separate: int = 0
    """How many more of its coroutines get a task each, since one has suspended."""


class CoroutineResponse:
    """A request whose handler has returned a coroutine: the sender of its stream until the end."""

    __slots__ = ("coroutine", "counters", "driver", "handler", "request", "task")
    held: Final = 0
    """It holds no elements."""

    def __init__(
        self,
        driver: "Driver",
        handler: DirectHandler,
        request: RequestTuple,
        coroutine: Coroutine[Any, Any, Any],
    ) -> None:
        self.driver: Driver = driver
        self.handler: DirectHandler = handler
        self.counters: RouteCounters = handler.counters
        self.counters.requests += 1
        self.request: RequestTuple = request
        self.coroutine: Coroutine[Any, Any, Any] = coroutine
        self.task: Task[Any] | None = None
        """The task that runs it, once it has begun."""

    def demanded(self, n: int) -> None:
        """Nothing to do: the one element was requested with the request."""

    def cancelled(self) -> None:
        """The requester has cancelled, or the connection has ended."""
        if self.task is None:
            self.coroutine.close()
        else:
            self.task.cancel()
            self.driver.await_handler(self.task)


class CoroutineResponses(TimeSlice):
    """The coroutines of requests that arrived together, and the task that runs them."""

    __slots__ = ("_driver", "_responder", "_waiting")

    def __init__(self, responder: "RouterResponder", driver: "Driver") -> None:
        super().__init__()
        self._responder = responder
        self._driver = driver
        self._waiting: deque[CoroutineResponse] = deque()

    def add(self, response: CoroutineResponse) -> None:
        self._waiting.append(response)
        self._driver.streams.senders[response.request[0]] = response

    def start(self) -> None:
        """Run them; if the connection has ended, none of them."""
        shared: deque[CoroutineResponse] = deque()
        for response in self._waiting:
            if response.handler.separate:
                response.handler.separate -= 1
                self._driver.create_task(self._run_alone(response), response.handler.task_name)
            else:
                shared.append(response)
        self._waiting = shared
        if shared:
            self._driver.create_task(self._run_shared(), shared[0].handler.task_name)

    async def _run_alone(self, response: CoroutineResponse) -> None:
        response.task = current_task()
        try:
            value = await response.coroutine
        except BaseException as error:
            is_end = ends_task(self._driver.loop_handle, error)
            if not (is_end and isinstance(error, GeneratorExit)):
                self._answer(response, None, error)
            if is_end:
                raise
        else:
            self._answer(response, value)

    async def _run_shared(self) -> None:
        driver, task, waiting = self._driver, current_task(), self._waiting
        context, output = driver.loop_handle.context, driver.connection.streams.output
        watermark = driver.connection.limits.watermark
        assert task is not None
        self.start_slice()
        try:
            while waiting and not task.cancelling():
                if output.queued_bytes > watermark and not may_serve(driver):
                    await driver.drain()
                    self.start_slice()
                    continue
                response = waiting.popleft()
                response.task = task
                steps = _Steps(response.coroutine, context.copy())
                if not steps.are_over:
                    response.handler.separate = TASKS_AFTER_ONE_SUSPENDS
                    task.set_name(response.handler.task_name)
                    self._hand_over()
                    await steps
                self._answer(response, steps.value, steps.error)
                if waiting and self.check_slice():
                    await yield_to_loop()
                    self.start_slice()
        finally:
            self._hand_over()

    def _hand_over(self) -> None:
        """Let others than this task run those that wait."""
        if self._waiting:
            others = CoroutineResponses(self._responder, self._driver)
            others._waiting = self._waiting.copy()
            self._waiting.clear()
            others.start()

    def _answer(
        self, response: CoroutineResponse, value: Any, error: BaseException | None = None
    ) -> None:
        """Send what the coroutine has returned, or has raised."""
        driver, stream_id = self._driver, response.request[0]
        if driver.streams.senders.get(stream_id) is not response:
            return  # cancelled, perhaps before it began: a closed coroutine raises at once
        del driver.streams.senders[stream_id]
        if error is None:
            try:
                if type(value) not in SINGLE_TYPES:
                    response.counters.requests -= 1  # its execution counts it
                    self._responder.send_result(driver, response.request, value)
                    return
                driver.connection.respond(stream_id, response.handler.encode(value))
                response.counters.elements += 1
                driver.schedule_turn()
                return
            except BaseException as unwritable:
                error = unwritable
        if isinstance(error, CancelledError):
            driver.connection.fail_stream(stream_id, ErrorCode.CANCELED, b"")
            driver.schedule_turn()
            return
        response.counters.count_error(error)
        self._responder.refuse(driver, stream_id, error)


class _Steps:
    """Runs a coroutine in a context: until it suspends, and, when awaited, to its end."""

    __slots__ = ("_awaited", "_context", "_coroutine", "are_over", "error", "value")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], context: Context) -> None:
        self._coroutine = coroutine
        self._context = context
        self.are_over = False
        self.value: Any = None
        self.error: BaseException | None = None
        self._step(coroutine.send, None)

    def _step(self, resume: Callable[..., Any], argument: Any) -> None:
        try:
            self._awaited = self._context.run(resume, argument)
        except StopIteration as returned:
            self.are_over, self.value = True, returned.value
        except BaseException as error:
            self.are_over, self.error = True, error

    def __await__(self) -> Generator[Any, Any, None]:
        while not self.are_over:
            try:
                yield self._awaited
            except GeneratorExit:
                self._coroutine.close()  # the loop is closed, so that nothing can be awaited
                raise
            except BaseException as error:
                self._step(self._coroutine.throw, error)
            else:
                self._step(self._coroutine.send, None)


def is_coroutine(value: object) -> bool:
    """Whether *value* is what a coroutine function of Python returns."""
    return type(value) is CoroutineType
