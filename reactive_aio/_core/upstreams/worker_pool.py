"""WorkerPool: a coroutine function applied to several elements at once, by reused tasks."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from ...errors import Interrupted
from ...spec import Publisher
from ..arguments import explain_await
from ..compiler.chain import Chain, Downstream
from ..compiler.error_notes import note_element
from ..compiler.inline import describe
from ..compiler.loop_runtime import CLOSABLE, no_element
from ..failures import PLAIN_READER, STOPS_PROGRAM, as_failure, is_cancelled
from ..loop import (
    CancelledError,
    Future,
    Task,
    cancel_task,
    report,
)
from ..observation.awaited import Wait, wait_of
from ..queues.reorder_buffer import ReorderBuffer
from ..run_control import NestedFlow, discard_interrupted
from ..time_slice import TimeSlice
from .coordinator import Coordinator
from .inner_subscriber import InnerSubscriber
from .splitting import call_with

_NONE: Final = object()  # in place of an element: there is none for now
_READING: Final = object()  # the same, while the source is read


class ChainedFlow(Publisher[Any], Protocol):
    """What the pool knows of the flow that it reads."""

    chain: Chain


@dataclass(slots=True, eq=False)
class _Worker:
    """One task of the pool, and the ticket of its element; -1 while it has none."""

    task: Task[Any] | None = None
    ticket: int = -1
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True
        if self.task is not None:
            cancel_task(self.task)


class WorkerPool(Coordinator[Any]):
    """As many tasks as may run at the same time, each taking element after element.

    The result of awaiting ``apply(element)`` is emitted; with *keeps_element*, it decides whether
    the element itself is; with *may_skip*, a result of None leaves the element out. `ReorderBuffer`
    decides how far the tasks may run ahead. The tasks pull a synchronous source themselves; any
    other is an upstream, which receives requests for as many elements as there is room for.
    """

    # Each decision changes all state before it calls anything.
    is_serialized = False

    def __init__(
        self,
        downstream: Downstream[Any],
        source: ChainedFlow,
        apply: Callable[[Any], Awaitable[Any]],
        keeps_element: bool,
        buffer: ReorderBuffer[Any],
        *,
        may_skip: bool = False,
    ) -> None:
        super().__init__(downstream)
        self._source = source
        self._apply = apply
        self._call = apply
        self._keeps_element = keeps_element
        self._may_skip = may_skip or keeps_element
        self._buffer = buffer
        self._workers: dict[Task[Any], _Worker] = {}
        self._waiting: deque[Future[Any]] = deque()
        self._elements: Iterator[Any] = iter(())
        self._inner: InnerSubscriber[Any] | None = None
        self._is_over = False  # no more elements are started
        self._is_emission_scheduled = False
        self._is_emitting = False
        self._time_slice = TimeSlice()
        self._left_out = 0
        self._source_error: BaseException | None = None
        self._errors: dict[int, BaseException] = {}  # of the function, by ticket
        self._task_name = ""

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        chain = self._source.chain
        if chain.is_pullable:
            try:
                self._elements = chain.iterate(PLAIN_READER, report, self.on_discard)
            except STOPS_PROGRAM:
                raise
            except BaseException as error:
                self.fail(as_failure(error))
        else:
            self._inner = self.subscribe_to(self._source)

    def on_demand(self) -> None:
        self._emit_ready()

    def on_processed(self) -> None:
        if self._is_emitting:
            return  # `_emit_ready` goes on
        if self._buffer.ready and not self._is_emission_scheduled:
            self._emit_ready()
        else:
            self._buffer.open_demand = self._open_demand()
            self._schedule()

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        self._schedule()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._schedule()
        self._end_if_done()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self._source_error = error
        self.on_inner_complete(inner)

    def on_stop(self) -> None:
        self._start_no_more()
        for worker in self._workers.values():
            worker.cancel()
        elements, self._elements = self._elements, iter(())
        # One that is running has cancelled the flow itself; the last reference closes it.
        if isinstance(elements, CLOSABLE) and not elements.gi_running:
            elements.close()
        self._discard_results()

    def discard_element(self, element: Any) -> None:
        """The work on *element* has failed or was cancelled."""
        discard_interrupted(self.on_discard, element)

    def discard_results(self, results: list[Any]) -> None:
        """The work on some elements has ended, and their results are not needed."""
        self.discard(results)

    def _discard_results(self) -> None:
        if results := self._buffer.clear():
            self.discard_results(results)

    @property
    def tasks(self) -> Sequence[Future[Any]]:
        return [*super().tasks, *self._workers]

    @property
    def held(self) -> int:
        return super().held + self._buffer.held

    def numbers(self, waiting: int) -> tuple[int, int]:
        """Tickets: a call that takes long is found although others overtake it."""
        buffer = self._buffer
        kept = buffer.started - buffer.tickets  # a ticket that is kept counts once
        tickets = [worker.ticket for worker in self._workers.values() if worker.ticket >= 0]
        oldest = [buffer.departed - waiting, *(ticket + kept for ticket in tickets)]
        return min(oldest), buffer.started

    @property
    def calls(self) -> int:
        return len(self._workers) - sum(not waiter.done() for waiter in self._waiting)

    def call_waits(self) -> Iterator[Wait]:
        # In the order of their elements: a result that is late holds back those that follow.
        for task, _ in sorted(self._workers.items(), key=lambda each: each[1].ticket):
            if (wait := wait_of(task.get_coro())) is not None:
                yield wait

    # -- acts -------------------------------------------------------------------------------------
    def _on_turn(self) -> None:
        self._is_emission_scheduled = False
        self._time_slice.start_slice()
        self._emit_ready()

    def _emit_ready(self) -> None:
        """Emit the results that are ready and requested, and start work on the next elements."""
        if self._is_emitting:
            return  # re-entered by demand: the loop below goes on
        self._is_emitting = True
        try:
            while self._buffer.ready and (count := self.demand.outstanding) > 0:
                self.emit(self._buffer.take(count))
        finally:
            self._is_emitting = False
        self._buffer.open_demand = self._open_demand()
        self._schedule()
        if self._is_over:
            self._end_if_done()

    def _schedule_emission(self) -> None:
        """Emit what is ready, at the end of this turn."""
        if not self._is_emission_scheduled:
            self._is_emission_scheduled = True
            self.loop_handle.call_soon(self._on_turn)

    def _open_demand(self) -> int:
        """How many results downstream takes at once; negative while it holds more than that."""
        unprocessed = self.emitted - self.processed_count
        return min(self.demand.outstanding, self._buffer.limit - unprocessed)

    def _schedule(self) -> None:
        """Wake or start a worker for each element that can be started."""
        inner, buffer = self._inner, self._buffer
        if inner is None:
            wanted = buffer.room
        else:
            if not self._is_over and (missing := buffer.room - inner.outstanding) > 0:
                inner.request(missing)
            wanted = len(inner.elements)
            if inner.is_done and not wanted:
                self._start_no_more()
        if self._is_over:
            wanted = len(self._waiting)
        while wanted > 0 and self._waiting:
            wanted -= 1
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
        while wanted > 0 and not self._is_over and len(self._workers) < buffer.limit:
            wanted -= 1
            self._start_worker()

    def _start_no_more(self) -> None:
        """No more elements are started."""
        self._is_over = True
        self._buffer.close()

    def _start_worker(self) -> None:
        worker = _Worker()
        if self._reads_flows():
            self._call = self._call_with_flow
        if not self._task_name:
            trail = self._source.chain.trail()
            self._task_name = f"a worker of {trail} → {describe(self._apply)}"
        worker.task = task = self.loop_handle.create_task(
            self._work(worker), self._task_name, self._on_worker_done
        )
        self._workers[task] = worker

    def _reads_flows(self) -> bool:
        """Whether its elements are flows, such as groups, which are finished after their calls."""
        inner = self._inner
        return inner is not None and any(isinstance(x, NestedFlow) for x in inner.elements[:1])

    def _call_with_flow(self, x: Any) -> Awaitable[Any]:
        return call_with(x, self._apply, x) if isinstance(x, NestedFlow) else self._apply(x)

    def _on_worker_done(self, task: Task[Any]) -> None:
        del self._workers[task]
        if not task.cancelled():
            task.exception()  # it stops the program, and has left the loop
        if not self.is_closed:
            self._end_if_done()

    def _end_if_done(self) -> None:
        """End when no worker is left and every result is emitted."""
        if self.is_closed or not self._is_over or self._workers or self._buffer.ready:
            return
        self.end(self.waiting_failure())

    def waiting_failure(self) -> BaseException | None:
        """The failure of the first call: of the first element, or else at first; the others, and
        that of the source, are reported."""
        errors = self._errors
        if not errors:
            return self._source_error
        first = min(errors) if self._buffer.is_ordered else next(iter(errors))
        error = errors.pop(first)
        interrupted = Interrupted if isinstance(error, Interrupted) else ()
        for another in errors.values():
            # The end of a program interrupts all calls: that is one failure.
            if another is not error and not isinstance(another, interrupted):
                self.report_cleanup("another call failed as well", another)
        errors.clear()
        source_error, self._source_error = self._source_error, None
        if source_error is not None and source_error is not error:
            self.report_cleanup("the source failed as well", source_error)
        return error

    # -- a worker ---------------------------------------------------------------------------------
    async def _work(self, worker: _Worker) -> None:
        buffer, ready, call = self._buffer, self._buffer.ready, self._call
        keeps_element, x = self._keeps_element, cast("Any", _NONE)
        ticket = self._start_ticket()
        try:
            while not self._is_exhausted():
                if ticket < 0 and (ticket := self._make_room()) < 0:
                    ticket = await self._wait(worker)
                    continue
                worker.ticket, x = ticket, _READING
                for x in self._available():
                    result = await call(x)
                    if keeps_element:
                        result = x if result else None
                    count = len(ready)
                    if result is None or count >= buffer.most_ready or ticket != buffer.due:
                        ticket = self._exchange(ticket, result)
                    else:  # the usual case of that: a call would take as long as all of it
                        if not count:
                            self._schedule_emission()
                        ready.append(result)
                        if buffer.most_ready_alone:
                            x = _READING
                            continue  # with the same ticket
                        buffer.due, ticket = ticket + 1, buffer.tickets
                        buffer.tickets = ticket + 1
                    worker.ticket, x = ticket, _READING
                    if ticket < 0:
                        break
                else:
                    x, given, ticket = _NONE, ticket, -1
                    self._on_none_available(given)
                    if not self._is_exhausted():
                        ticket = await self._wait(worker)
                x = _NONE
            self._give_back(ticket)
            if self.is_closed:
                self._discard_results()  # that of a call which the end did not interrupt
        except BaseException as error:
            if self._has_ended(worker, ticket, x, error):
                raise

    def _has_ended(self, worker: _Worker, ticket: int, x: Any, error: BaseException) -> bool:
        """Reading, or the work on *x*, has raised *error*; return whether the task raises it."""
        if x is _READING and not isinstance(error, STOPS_PROGRAM):
            self._source_error = as_failure(error)
            self._on_none_available(ticket)
            return False
        is_cancellation = isinstance(error, (CancelledError, GeneratorExit))
        if worker.is_cancelled and is_cancellation:
            self._abandon(ticket)
        elif is_cancellation and is_cancelled(worker.task, error):
            self._fail_ticket(ticket, Interrupted("a worker was cancelled from outside"))
        else:
            is_cancellation = False
            failure = self._explained(as_failure(error), x)
            self._fail_ticket(ticket, failure, is_late=worker.is_cancelled)
            if isinstance(error, STOPS_PROGRAM):
                return True
        self._discard_failed(x)
        return is_cancellation

    def _discard_failed(self, element: Any) -> None:
        """A worker has ended; *element* is what it was working on, if that is one."""
        if element is not _NONE and element is not _READING:
            self.discard_element(element)

    def _abandon(self, ticket: int) -> None:
        """No result follows for *ticket*, if it is one."""
        if ticket >= 0 and (results := self._buffer.abandon(ticket)):
            self.discard_results(results)

    def _exchange(self, ticket: int, result: Any) -> int:
        """The work of *ticket* has ended: a new ticket, or -1."""
        if result is None and not self._may_skip:
            raise no_element("map_async")
        self._schedule_emission()
        ticket = self._buffer.exchange(ticket, result)
        if result is None and ticket >= 0 and self._is_turn_over():
            self._give_back(ticket)  # all of its elements may be left out
            return -1
        return ticket

    def _make_room(self) -> int:
        """Emit what is ready, so that a function that never suspends need not wait for a turn.

        Return a new ticket, or -1.
        """
        if self._buffer.ready and not self._time_slice.check_slice():
            self._emit_ready()
            return self._start_ticket()
        return -1

    def _is_turn_over(self) -> bool:
        """Whether the time slice is over; the clock is read for every eighth element left out."""
        self._left_out += 1
        return not self._left_out & 7 and self._time_slice.check_slice()

    async def _wait(self, worker: _Worker) -> int:
        """There is no room or no element: wait, and return a new ticket, or -1."""
        worker.ticket = -1
        waiter = self.loop_handle.create_future()
        self._waiting.append(waiter)
        await waiter
        return self._start_ticket()

    def _start_ticket(self) -> int:
        return self._buffer.start() if self._buffer.room > 0 else -1

    def _give_back(self, ticket: int) -> None:
        """There is no element for *ticket*, if it is one."""
        if ticket >= 0:
            self._buffer.give_back(ticket)

    def _explained(self, error: BaseException, element: object) -> BaseException:
        name = ("filter_async", "predicate") if self._keeps_element else ("map_async", "mapper")
        if isinstance(error, TypeError):
            error = explain_await(*name, self._apply, error)
        if element is not _READING:
            note_element(error, element)
        return error

    # -- what a worker reads ----------------------------------------------------------------------
    def _is_exhausted(self) -> bool:
        """Whether no element will follow."""
        inner = self._inner
        return self._is_over or (inner is not None and inner.is_done and not inner.elements)

    def _available(self) -> Iterator[Any]:
        """The elements of a synchronous source, or those that an upstream has sent."""
        return self._elements if self._inner is None else iter(self._take, _NONE)

    def _take(self) -> Any:
        inner = cast("InnerSubscriber[Any]", self._inner)
        return inner.take_one() if inner.elements else _NONE

    def _on_none_available(self, ticket: int) -> None:
        """There is no element for *ticket*: a synchronous source has ended."""
        if self._inner is None and not self._is_over:
            self._start_no_more()
            self._schedule()
        self._give_back(ticket)

    def _fail_ticket(self, ticket: int, error: BaseException, *, is_late: bool = False) -> None:
        """A call has failed: cancel all others, except on earlier elements if order matters.

        One that was cancelled before *is late*: its error does not replace that of the flow.
        """
        self._abandon(ticket)
        if is_late or self.is_closed:
            self.report_cleanup("a call raised while it was being cancelled", error)
            return
        self._errors[ticket] = error
        self._start_no_more()
        if self._inner is not None:
            self._inner.cancel()
        for task, worker in self._workers.items():
            is_earlier = self._buffer.is_ordered and 0 <= worker.ticket < ticket
            if not is_earlier and not self.loop_handle.is_current_task(task):
                worker.cancel()
        self._schedule()
