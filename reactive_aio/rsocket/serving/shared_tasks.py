"""Requests for one element that arrive together: their responses, and the coroutines among them.

The coroutines of handlers share a task until they suspend, since a task for each request costs more
than all the rest of it: without that, 64 requests to a coroutine function in flight took a half
longer (`benchmarks.rsocket.requests`). A coroutine that suspends keeps the task, and the others of
its batch continue in another one. Each has a copy of the connection's context, as a task has.
"""

from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from inspect import isawaitable
from types import CoroutineType
from typing import Any, Final

from ..._core.loop import current_task, yield_to_loop
from ..._core.time_slice import TimeSlice
from ..link.driver import Driver
from ..protocol.errors import RequestInvalid
from ..protocol.events import RequestTuple, ResponseRequests
from ..protocol.stream_states import InteractionModel
from .execution import Execution, Service
from .plans import Plan
from .routing import SINGLE_TYPES

_RESPONSE: Final = InteractionModel.RESPONSE
_FEW: Final = 8
"""So many requests are served without looking at the clock."""
TASKS_AFTER_ONE_SUSPENDS: Final = 256
"""How many coroutines of a handler get a task each after one has suspended. One that suspends in a
shared task delays the others of its batch by a turn of the loop."""


class SharedTask(TimeSlice):
    """The coroutines of requests that arrived together, and the task that runs them."""

    __slots__ = ("_driver", "_waiting")

    def __init__(self, driver: Driver, waiting: deque[Execution]) -> None:
        super().__init__()
        self._driver = driver
        self._waiting = waiting

    def start(self) -> None:
        """Run them; if the connection has ended, none of them."""
        shared: deque[Execution] = deque()
        for each in self._waiting:
            if each.plan.separate:
                each.plan.separate -= 1
                each.task = self._driver.tasks.create(
                    each.run(each.coroutine), each.plan.task_name, each.coroutine
                )
            else:
                shared.append(each)
        self._waiting = shared
        if shared:
            self._driver.tasks.create(self._run(), shared[0].plan.task_name)

    async def _run(self) -> None:
        driver, task, waiting = self._driver, current_task(), self._waiting
        context, output = driver.loop_handle.context, driver.connection.output
        watermark = driver.connection.limits.watermark
        assert task is not None
        self.start_slice()
        try:
            while waiting and not task.cancelling():
                if output.queued_bytes > watermark and not driver.intake.may_serve():
                    await driver.drain()
                    self.start_slice()
                    continue
                each = waiting.popleft()
                each.task = task
                steps = _Steps(each.coroutine, context.copy())
                if not steps.are_over:
                    each.plan.separate = TASKS_AFTER_ONE_SUSPENDS
                    task.set_name(each.plan.task_name)
                    self._hand_over()
                    await steps
                each.finish(steps.value, steps.error)
                # They refer to this task and to each other: what has ended is freed at once.
                each.task = each.coroutine = steps.error = None
                if waiting and self.check_slice():
                    await yield_to_loop()
                    self.start_slice()
        finally:
            self._hand_over()

    def _hand_over(self) -> None:
        """Let others than this task run those that wait."""
        if self._waiting:
            others = SharedTask(self._driver, self._waiting.copy())
            self._waiting.clear()
            others.start()


class _Steps(Generator[Any, Any, None]):
    """Runs a coroutine in a context: until it suspends, and, when awaited, to its end."""

    __slots__ = ("_awaited", "_context", "_coroutine", "_is_awaited", "are_over", "error", "value")

    def __init__(self, coroutine: Any, context: Context) -> None:
        self._coroutine: Coroutine[Any, Any, Any] = coroutine
        self._context = context
        self._is_awaited = False
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

    @property
    def cr_await(self) -> Coroutine[Any, Any, Any]:
        """The coroutine, as that of a coroutine is called: it may be cleaning up."""
        return self._coroutine

    def __await__(self) -> "_Steps":
        return self

    def send(self, value: object, /) -> Any:
        if self._is_awaited:
            self._step(self._coroutine.send, value)
        self._is_awaited = True
        return self._next()

    def throw(self, error: Any, value: object = None, traceback: object = None, /) -> Any:
        self._step(self._coroutine.throw, error)
        return self._next()

    def close(self) -> None:
        """The loop is closed, so that nothing can be awaited."""
        self._coroutine.close()

    def _next(self) -> Any:
        if self.are_over:
            raise StopIteration
        return self._awaited


class Batch:
    """Serves requests for one element that arrived together, as long as the peer reads.

    Handlers that take nothing but the data are called here, and their responses are sent together.
    """

    def __init__(self, service: Service, driver: Driver) -> None:
        self._service = service
        self._driver = driver
        self._coroutines: deque[Execution] | None = None

    def serve(self, requests: list[RequestTuple]) -> None:
        """Serve *requests* for a time slice; the others wait for the next turn."""
        driver = self._driver
        if len(requests) <= _FEW:
            self._serve(requests)
        else:
            end, batch, time = 0, _FEW, TimeSlice()
            time.start_slice()
            while end < len(requests) and not time.is_slice_over:
                begin, end = end, end + batch
                self._serve(requests[begin:end])
                batch = time.next_batch_size(batch)
            if end < len(requests):
                driver.hold_requests(ResponseRequests(requests[end:]))
        if self._coroutines:
            SharedTask(driver, self._coroutines).start()
        driver.schedule_turn()

    def _serve(self, several: list[RequestTuple]) -> None:
        driver, connection = self._driver, self._driver.connection
        intake, output, plans = driver.intake, connection.output, self._service.plans
        is_held = intake.held or not intake.may_serve()
        size, free = 0, -1 if is_held else connection.limits.watermark
        known, is_guarded = plans.known(connection.setup), self._service.is_guarded
        responses: list[tuple[int, bytes]] = []
        requests = iter(several)
        for request in requests:
            if output.queued_bytes + size > free and (is_held or not intake.may_serve(size)):
                driver.hold_requests(ResponseRequests([request, *requests]))
                break
            stream_id, data, metadata = request
            plan = known.get(metadata)
            if plan is None:
                try:
                    plan = plans.find(connection, metadata)
                except RequestInvalid as error:
                    self._service.refuse(driver, stream_id, error)
                    continue
            if plan.call is None or is_guarded:
                self._execution(plan, request).begin()
                continue
            try:
                result = plan.call(data)
                if type(result) in SINGLE_TYPES:
                    encoded = plan.encode(result)
                    responses.append((stream_id, encoded))
                    size += len(encoded)
                    plan.counters.answered += 1
                    continue
            except BaseException as error:
                self._execution(plan, request).refuse(error)
                continue
            self._go_on(self._execution(plan, request), result)
        if responses:
            connection.respond_all(responses)

    def _go_on(self, execution: Execution, result: Any) -> None:
        """Send *result*, of which more is to come than one element, or later."""
        if isawaitable(result) and execution.is_refused(result):
            return
        if type(result) is not CoroutineType:  # what a coroutine function of Python returns
            execution.go_on(result)
            return
        execution.coroutine = result
        self._driver.streams.senders[execution.stream_id] = execution
        if self._coroutines is None:
            self._coroutines = deque()
        self._coroutines.append(execution)

    def _execution(self, plan: Plan, request: RequestTuple) -> Execution:
        return Execution(self._service, self._driver, plan, _RESPONSE, request[0], request[1:])
