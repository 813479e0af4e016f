"""One stream that the client has subscribed to."""

from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Iterator
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from ..._core.demand import Demand
from ..._core.loop import CancelledError, LoopHandle, Task
from ...coerce import to_flow
from ..forms import Encode
from ..problem import Problem
from ..tally import Tally
from .messages import Id, ending, write

if TYPE_CHECKING:
    from ...flow import Flow
    from ...spec import Subscription

__all__ = ("HELD", "Outgoing", "OutputBuffer")

HELD: Final = 16
"""Elements that are asked for at a time, and wait for their turn at most."""
_QUANTUM: Final = 8  # messages of a stream before another has its turn


class OutputBuffer(Protocol):
    """What a stream needs of its socket."""

    loop_handle: LoopHandle
    tally: Tally
    encode: Encode[Any]

    def ready(self, stream: Any, /) -> None:
        """*stream* has something to write."""
        ...

    def ended(self, id: Id, /) -> None: ...

    def useful(self) -> None:
        """An element has gone out."""
        ...

    def problem(self, error: BaseException, /) -> Problem:
        """What the client is told of *error*."""
        ...


class Outgoing:
    """The subscriber that holds a flow's elements until the socket can take them.

    The client's demand reaches the flow in small pieces, as there is room: a client that asks for
    everything and does not read makes nobody hold more than `HELD`.
    """

    def __init__(self, outlet: OutputBuffer, id: Id) -> None:
        self.id: Id = id
        self.queued: bool = False
        """Whether it waits for its turn to write."""
        self.over: bool = False
        self.fruitless: bool = True
        """Whether no element has gone out yet."""
        self._outlet = outlet
        self._demand = Demand()
        self._asked = 0  # of the flow, and not come yet
        self._elements: deque[Any] = deque()
        self._done = False
        self._error: BaseException | None = None
        self._subscription: Subscription | None = None
        self._task: Task[None] | None = None
        outlet.tally.open += 1
        outlet.tally.opened += 1

    # -- the beginning -----------------------------------------------------------------------------
    def begin(self, make: Callable[[], Any]) -> None:
        """Subscribe to what *make* returns; that may have to be awaited."""
        try:
            made = make()
            if isawaitable(made):
                self._task = self._outlet.loop_handle.create_task(
                    self._await(made), f"asgi: stream {self.id}"
                )
            else:
                _flow(made).subscribe(self)
        except Exception as error:
            self.on_error(error)

    async def _await(self, made: Awaitable[Any]) -> None:
        try:
            found = await made
            if not self.over:
                _flow(found).subscribe(self)
        except CancelledError:
            if not self.over:
                self.on_error(RuntimeError("the task that makes the stream was cancelled"))
            raise
        except Exception as error:
            self.on_error(error)

    # -- the client's side -------------------------------------------------------------------------
    def demand(self, n: int) -> None:
        self._demand.add(n)
        self._ask()

    def cancel(self) -> None:
        if not self.over:
            self._outlet.tally.cancelled += 1
            self._leave()

    def fail(self, problem: Problem) -> str:
        """End it for what the client did wrong; return the message."""
        self._outlet.tally.failed += 1
        self._leave()
        return ending(self.id, problem)

    async def aclose(self) -> None:
        """Wait until the flow, which was left before, has cleaned up after itself."""
        if hasattr(self._subscription, "aclose"):
            await cast("Any", self._subscription).aclose()

    @property
    def task(self) -> Task[None] | None:
        return self._task

    def _leave(self) -> None:
        self._end()
        if self._task is not None:
            self._task.cancel()
        if self._subscription is not None and not self._done:
            self._subscription.cancel()

    def _end(self) -> None:
        outlet = self._outlet
        self.over = True
        self._elements.clear()
        outlet.tally.open -= 1
        outlet.tally.outstanding -= self._asked
        self._asked = 0
        outlet.ended(self.id)

    def _ask(self) -> None:
        """Ask the flow for as much of the demand as there is room for."""
        if self._subscription is None or self._done or self.over:
            return
        room = HELD - self._asked - len(self._elements)
        n = self._demand.take(room) if room > 0 else 0
        if n:
            self._asked += n
            self._outlet.tally.outstanding += n
            self._subscription.request(n)

    # -- the socket's side -------------------------------------------------------------------------
    def write(self) -> Iterator[str]:
        """Some messages, each when the one before has been sent."""
        outlet, elements = self._outlet, self._elements
        head = write("next", self.id)[:-1] + ',"value":'
        for _ in range(_QUANTUM):
            if not elements:
                break
            try:
                written = outlet.encode(elements.popleft())
                text = written if isinstance(written, str) else str(written, "utf-8")
            except Exception as error:
                yield self.fail(outlet.problem(error))
                return
            outlet.tally.elements += 1
            outlet.useful()
            self.fruitless = False
            yield f"{head}{text}}}"
            if self.over:
                return
        if not elements and self._done:
            yield self._last()
        else:
            self._ask()
            if elements:
                outlet.ready(self)

    def _last(self) -> str:
        self._end()
        if self._error is None:
            self._outlet.tally.completed += 1
            return write("complete", self.id)
        self._outlet.tally.failed += 1
        return ending(self.id, self._outlet.problem(self._error))

    # -- the flow's side ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription", /) -> None:
        self._subscription = subscription
        if self.over:
            subscription.cancel()
        else:
            self._ask()

    def on_next(self, element: Any, /) -> None:
        if not self.over:
            self._asked -= 1
            self._outlet.tally.outstanding -= 1
            self._elements.append(element)
            self._outlet.ready(self)

    def on_error(self, error: BaseException, /) -> None:
        self._error = error
        self.on_complete()

    def on_complete(self) -> None:
        self._done = True
        if not self.over:
            self._outlet.ready(self)


def _flow(made: Any) -> "Flow[Any]":
    """What a handler returns: many elements, one, or none."""
    if made is None:
        return to_flow([])
    many = isinstance(made, AsyncIterable | Iterator) or hasattr(made, "subscribe")
    return to_flow(cast("Any", made) if many else [made])
