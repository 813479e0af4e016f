"""SocketSubscriber: one stream to which the client has subscribed."""

from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Iterator
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from ..._core.demand import Demand
from ..._core.flow_subscription import FlowSubscription
from ..._core.loop import CancelledError, LoopHandle, Task
from ...coerce import to_flow
from ..counters import Counters
from ..formats import Encode
from ..problem import Problem
from .messages import Id, format_error, format_message

if TYPE_CHECKING:
    from ...flow import Flow
    from ...spec import Subscription

__all__ = ("PREFETCH", "PublishingSocket", "SocketSubscriber")

PREFETCH: Final = 16
"""The number of elements requested ahead of the socket."""
_QUANTUM: Final = 8  # messages of a stream before the next stream is served


class PublishingSocket(Protocol):
    """What a `SocketSubscriber` needs from its socket."""

    loop_handle: LoopHandle
    counters: Counters
    encode: Encode[Any]

    def schedule(self, stream: Any, /) -> None:
        """Write the messages of *stream* as soon as the others have been served."""
        ...

    def remove(self, id: Id, /) -> None:
        """Free the id of a stream that has ended."""
        ...

    def count_useful(self) -> None:
        """Note that an element was sent, which offsets one useless message."""
        ...

    def problem(self, error: BaseException, /) -> Problem:
        """Return what the client receives for *error*."""
        ...


class SocketSubscriber:
    """The subscriber that buffers a flow's elements until the socket can take them.

    The client's demand reaches the flow in small portions, as the buffer has room: a client that
    requests everything and does not read costs at most `PREFETCH` elements.
    """

    def __init__(self, socket: PublishingSocket, id: Id) -> None:
        self.id: Id = id
        self.is_scheduled: bool = False
        """Whether it waits for the writer of the socket."""
        self.is_done: bool = False
        self.has_sent: bool = False
        """Whether an element has been sent."""
        self.task: Task[None] | None = None
        """Awaits the handler, if that is asynchronous."""
        self._socket = socket
        self._demand = Demand()
        self._outstanding = 0
        self._elements: deque[Any] = deque()
        self._upstream_is_done = False
        self._error: BaseException | None = None
        self._subscription: Subscription | None = None
        socket.counters.open += 1
        socket.counters.opened += 1

    # -- the beginning -----------------------------------------------------------------------------
    def begin(self, make: Callable[[], Any]) -> None:
        """Subscribe to what *make* returns, which may have to be awaited."""
        try:
            made = make()
            if isawaitable(made):
                self.task = self._socket.loop_handle.create_task(
                    self._subscribe_later(made), f"asgi: stream {self.id}"
                )
            else:
                _flow(made).subscribe(self)
        except Exception as error:
            self.on_error(error)

    async def _subscribe_later(self, made: Awaitable[Any]) -> None:
        try:
            found = await made
            if not self.is_done:
                _flow(found).subscribe(self)
        except CancelledError:
            if not self.is_done:
                self.on_error(RuntimeError("the task that makes the stream was cancelled"))
            raise
        except Exception as error:
            self.on_error(error)

    # -- the client's side -------------------------------------------------------------------------
    def add_demand(self, n: int) -> None:
        self._demand.add(n)
        self._request()

    def cancel(self) -> None:
        if not self.is_done:
            self._socket.counters.cancelled += 1
            self._stop()

    def fail(self, problem: Problem) -> str:
        """End the stream with *problem*; return the message for the client."""
        self._socket.counters.failed += 1
        self._stop()
        return format_error(self.id, problem)

    async def aclose(self) -> None:
        """Wait for the cleanup of a flow that has been cancelled."""
        if isinstance(self._subscription, FlowSubscription):
            await self._subscription.aclose()

    def _stop(self) -> None:
        self._finish()
        if self.task is not None:
            self.task.cancel()
        if self._subscription is not None and not self._upstream_is_done:
            self._subscription.cancel()

    def _finish(self) -> None:
        socket = self._socket
        self.is_done = True
        self._elements.clear()
        socket.counters.open -= 1
        socket.counters.outstanding -= self._outstanding
        self._outstanding = 0
        socket.remove(self.id)

    def _request(self) -> None:
        """Request as much of the client's demand as the buffer has room for."""
        if self._subscription is None or self._upstream_is_done or self.is_done:
            return
        room = PREFETCH - self._outstanding - len(self._elements)
        n = self._demand.take(room) if room > 0 else 0
        if n:
            self._outstanding += n
            self._socket.counters.outstanding += n
            self._subscription.request(n)

    # -- the socket's side -------------------------------------------------------------------------
    def messages(self) -> Iterator[str]:
        """Generate some messages, each after the previous one has been sent."""
        socket, elements = self._socket, self._elements
        head = format_message("next", self.id)[:-1] + ',"value":'
        for _ in range(_QUANTUM):
            if not elements:
                break
            try:
                encoded = socket.encode(elements.popleft())
                text = encoded if isinstance(encoded, str) else str(encoded, "utf-8")
            except Exception as error:
                yield self.fail(socket.problem(error))
                return
            socket.counters.elements += 1
            socket.count_useful()
            self.has_sent = True
            yield f"{head}{text}}}"
            if self.is_done:
                return
        if not elements and self._upstream_is_done:
            yield self._terminal_message()
        else:
            self._request()
            if elements:
                socket.schedule(self)

    def _terminal_message(self) -> str:
        self._finish()
        if self._error is None:
            self._socket.counters.completed += 1
            return format_message("complete", self.id)
        self._socket.counters.failed += 1
        return format_error(self.id, self._socket.problem(self._error))

    # -- the flow's side ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: "Subscription", /) -> None:
        self._subscription = subscription
        if self.is_done:
            subscription.cancel()
        else:
            self._request()

    def on_next(self, element: Any, /) -> None:
        if not self.is_done:
            self._outstanding -= 1
            self._socket.counters.outstanding -= 1
            self._elements.append(element)
            self._socket.schedule(self)

    def on_error(self, error: BaseException, /) -> None:
        self._error = error
        self.on_complete()

    def on_complete(self) -> None:
        self._upstream_is_done = True
        if not self.is_done:
            self._socket.schedule(self)


def _flow(made: Any) -> "Flow[Any]":
    """Convert what a handler returns to a flow of many elements, one or none."""
    if made is None:
        return to_flow([])
    many = isinstance(made, AsyncIterable | Iterator) or hasattr(made, "subscribe")
    return to_flow(cast("Any", made) if many else [made])
