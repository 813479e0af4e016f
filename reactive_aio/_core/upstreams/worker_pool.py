"""Workers: a coroutine function applied to several elements at once, by tasks that stay."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from ...errors import Interrupted
from ..compiler.chain_sources import Downstream
from ..compiler.loop_compiler import no_element
from ..loop import CancelledError, Future, Task, report, wait_settled
from ..queues.reorder_buffer import ReorderBuffer
from .coordinator import Coordinator
from .inner_subscriber import InnerSubscriber
from .merging import combine_errors

if TYPE_CHECKING:
    from ...stage import Fluent

__all__ = ("WorkerPool",)

_PARK: Final = object()  # nothing to do for now
_LEAVE: Final = object()  # nothing to do any more


class _Seat:
    """One worker: its task, the ticket it works on or did last, and whether it is sent away."""

    __slots__ = ("dismissed", "task", "ticket")

    def __init__(self) -> None:
        self.task: Task[Any] | None = None
        self.ticket = -1
        self.dismissed = False

    def dismiss(self) -> None:
        self.dismissed = True
        if self.task is not None:
            self.task.cancel()


class WorkerPool(Coordinator[Any]):
    """As many tasks as may be busy at the same time, each taking element after element.

    What awaiting ``apply(element)`` gives is the result; with *keeps*, it is the verdict whether to
    keep the element. How far the tasks may run ahead is decided by `Window`. A source that is
    synchronous is pulled by the tasks themselves; any other is an arm, asked for as many elements
    as there is room for.
    """

    def __init__(
        self,
        downstream: Downstream[Any],
        source: "Fluent[Any]",
        apply: Callable[[Any], Awaitable[Any]],
        keeps: bool,
        window: ReorderBuffer[Any],
    ) -> None:
        super().__init__(downstream)
        self._source = source
        self._apply = apply
        self._keeps = keeps
        self._window = window
        self._seats: dict[Task[Any], _Seat] = {}
        self._parked: deque[Future[Any]] = deque()
        self._elements: Iterator[Any] | None = None
        self._inner: InnerSubscriber[Any] | None = None
        self._proceed: Callable[[bool], Any] = self._pull
        # Each decision here settles its state before it calls anybody: no queue is needed.
        self.submit = _at_once
        self._over = False  # no element will be started any more
        self._told = False  # a hand-over is on its way
        self._error: BaseException | None = None  # of the source
        self._errors: dict[int, BaseException] = {}  # of the function, by ticket

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        if self._source.chain.is_pullable:
            try:
                self._elements = self._source.chain.iterate(report)
            except Exception as error:
                self.fail(error)
        else:
            self._proceed = self._take
            self._inner = self.subscribe_to(self._source)

    def on_demand(self) -> None:
        self._hand_over()

    def on_processed(self) -> None:
        if self._window.ready and not self._told:
            self._hand_over()
        else:
            self._window.open = self._prompt()
            self._staff()

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        self._staff()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._staff()
        self._end()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self._error = error
        self.on_inner_complete(inner)

    def on_stop(self) -> None:
        self._over = True
        for seat in self._seats.values():
            seat.dismiss()
        elements: Any = self._elements
        self._elements = None
        if hasattr(elements, "close"):
            try:
                elements.close()
            except ValueError:
                pass  # it is running, and has just cancelled the flow; the last reference closes it

    async def aclose(self) -> None:
        tasks = [task for task in self._seats if not self.loop_handle.is_current_task(task)]
        await super().aclose()
        await wait_settled(*tasks)

    # -- acts -------------------------------------------------------------------------------------
    def _hand_over(self) -> None:
        """Deliver what is ready and asked for, and put the workers to work on what follows."""
        self._told = False
        if self._window.ready:
            self.emit(self._window.take(self._prompt()))
        self._window.open = self._prompt()
        self._staff()
        if self._over:
            self._end()

    def _prompt(self) -> int:
        """How many results downstream takes at once."""
        return min(
            self.demand.outstanding, self._window.limit - (self.emitted - self.processed_count)
        )

    def _staff(self) -> None:
        """Wake or hire a worker for each element that can be started."""
        if self.is_closed:
            return
        inner, window = self._inner, self._window
        if inner is None:
            if len(self._seats) == window.limit and not self._parked:
                return  # everybody is at work
            wanted = 0 if self._over else window.room
        else:
            if not self._over and (missing := window.room - inner.outstanding) > 0:
                inner.request(missing)
            wanted = len(inner.elements)
            self._over = self._over or (inner.is_done and not wanted)
        if self._over:
            wanted = len(self._parked)
        while wanted > 0 and self._parked:
            wanted -= 1
            parked = self._parked.popleft()
            if not parked.done():
                parked.set_result(None)
        while wanted > 0 and not self._over and len(self._seats) < window.limit:
            wanted -= 1
            self._hire()

    def _hire(self) -> None:
        seat = _Seat()
        seat.task = task = self.loop_handle.create_task(self._work(seat), "a worker")
        self._seats[task] = seat
        task.add_done_callback(self._left)

    def _left(self, task: Task[Any]) -> None:
        del self._seats[task]
        if not self.is_closed:
            self.submit(self._end)

    def _end(self) -> None:
        """End when all work is done and all results are delivered."""
        if self.is_closed or not self._over or self._seats or self._window.ready:
            return
        if self._errors:
            self.fail(combine_errors([self._errors[ticket] for ticket in sorted(self._errors)]))
        elif self._error is not None:
            self.fail(self._error)
        else:
            self.complete()

    # -- a worker ---------------------------------------------------------------------------------
    async def _work(self, seat: _Seat) -> None:
        window, apply, keeps, proceed = self._window, self._apply, self._keeps, self._proceed
        ticket = -1
        try:
            x = proceed(window.room > 0)
            while x is not _LEAVE:
                if x is _PARK:
                    parked = self.loop_handle.create_future()
                    self._parked.append(parked)
                    await parked
                    x = proceed(window.room > 0)
                    continue
                seat.ticket = ticket = window.start()
                result = await apply(x)
                if keeps:
                    result = x if result else None
                elif result is None:
                    raise no_element("map_async")
                room = window.finish(ticket, result)
                ticket = -1
                if not self._told:
                    self._told = True
                    self.loop_handle.call_soon(self._hand_over)
                x = proceed(room)
        except CancelledError:
            if not seat.dismissed:
                self._failed(ticket, Interrupted("a worker was cancelled from outside"))
            elif ticket >= 0:
                window.abandon(ticket)
            raise
        except Exception as error:
            self._failed(ticket, error)

    def _pull(self, room: bool) -> Any:
        """The next element of a synchronous source, or what to do instead."""
        if self._over:
            return _LEAVE
        if not room:
            return _PARK
        try:
            element = next(cast("Iterator[Any]", self._elements), _LEAVE)
        except Exception as error:
            self._error, element = error, _LEAVE
        if element is _LEAVE:
            self._over = True
            self.submit(self._staff)
        return element

    def _take(self, room: bool) -> Any:
        """The next element of an arm, which holds none without room, or what to do instead."""
        inner = cast("InnerSubscriber[Any]", self._inner)
        if self._errors or (inner.is_done and not inner.elements):
            return _LEAVE
        return inner.take(1)[0] if inner.elements else _PARK

    def _failed(self, ticket: int, error: BaseException) -> None:
        """The function failed: stop all work but that on earlier elements, where order counts."""
        if ticket >= 0:
            self._window.abandon(ticket)
        self._errors[ticket] = error
        self._over = True
        if self._inner is not None:
            self._inner.cancel()
        for task, seat in self._seats.items():
            earlier = self._window.ordered and 0 <= seat.ticket < ticket
            if not earlier and not self.loop_handle.is_current_task(task):
                seat.dismiss()
        self.submit(self._staff)


def _at_once(decision: Callable[..., object], *args: object) -> None:
    decision(*args)
