"""Operators that a clock takes part in: the loop's, so that virtual time holds for them as well."""

from typing import TYPE_CHECKING, Any, TypeVar, overload

from .._core.compiler.chain_sources import Downstream
from .._core.demand import require_demand
from .._core.duration import Duration, to_seconds
from .._core.queues.batch_timer import BatchTimer, TimerAction
from .._core.upstreams.coordinator import Coordinator
from .._core.upstreams.inner_subscriber import InnerSubscriber
from .._core.upstreams.sequential import SequentialCoordinator
from ..coerce import WINDOW, Source, to_flow
from ..errors import TimedOut
from ..stage import from_push

if TYPE_CHECKING:
    from .._core.loop import TimerHandle
    from ..flow import Flow

__all__ = ("buffer_timeout", "timeout")

T = TypeVar("T")
U = TypeVar("U")


@overload
def timeout(
    source: "Flow[T]", each: Duration, *, first: Duration | None = ..., fallback: None = ...
) -> "Flow[T]": ...
@overload
def timeout(
    source: "Flow[T]", each: Duration, *, first: Duration | None = ..., fallback: Source[U]
) -> "Flow[T | U]": ...
def timeout(
    source: "Flow[Any]",
    each: Duration,
    *,
    first: Duration | None = None,
    fallback: Source[Any] | None = None,
) -> "Flow[Any]":
    """Fail when the source lets the subscriber wait longer than *each* for an element or the end.

    Time runs only while there is demand that is not met: a subscriber that takes its time cannot
    make a flow time out. *first* is for the first element, where that may take longer or shorter.
    With a *fallback*, the source is cancelled and the flow goes on with that one, without a limit.

    ::

        a--b--------c--|
        .timeout(5)
        a--b----#

    Demand: passed through.
    Completes: when the source completes, or else *fallback*.
    Fails: with TimedOut, which tells how many elements had come, or when the source or *fallback*
        fails.
    Cancels: the source when time is over; the one that is at work when the subscriber cancels.
    Holds: up to 256 elements on their way down.
    Rules: 1.1, 1.4, 1.7
    """
    limit = to_seconds(each, "each")
    opening = limit if first is None else to_seconds(first, "first")
    other = None if fallback is None else to_flow(fallback, name="timeout")
    return from_push(
        lambda downstream: _Timeout(downstream, source, opening, limit, other),
        name=f"timeout({limit:g})",
        holds=WINDOW,
        checked=True,
        upstreams=(source,) if other is None else (source, other),
        window=WINDOW,
    )


class _Timeout(SequentialCoordinator[Any]):
    """One timer, which is not touched per element: when it goes off it looks how much is left."""

    def __init__(
        self,
        downstream: Downstream[Any],
        source: "Flow[Any]",
        first: float,
        each: float,
        fallback: "Flow[Any] | None",
    ) -> None:
        super().__init__(downstream)
        self._source = source
        self._limit = first
        self._each = each
        self._fallback = fallback
        self._came = 0
        self._over = False  # time was over, and the fallback is at work
        self._since: float | None = None  # since when downstream waits
        self._timer: TimerHandle | None = None

    # -- decisions --------------------------------------------------------------------------------
    def begin(self) -> None:
        self.switch(self._source)

    def on_demand(self) -> None:
        super().on_demand()
        if self._since is None:
            self._wait()

    def on_elements(self, inner: "InnerSubscriber[Any]") -> None:
        if inner is self.active and inner.elements:
            if not self._came and self._limit != self._each:
                self._limit = self._each
                self.on_stop()  # the timer may be set for much later
            self._came += len(inner.elements)
        super().on_elements(inner)
        self._wait()

    def on_stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- acts -------------------------------------------------------------------------------------
    def _wait(self) -> None:
        """Downstream waits from now on, if it does."""
        self._since = self.loop_handle.time() if self.demand and not self.is_closed else None
        if self._since is not None and self._timer is None and not self._over:
            self._timer = self.loop_handle.call_later(self._limit, self.submit, self._look)

    def _look(self) -> None:
        self._timer = None
        if self.is_closed or self._since is None:
            return
        left = self._since + self._limit - self.loop_handle.time()
        if left > 0:
            self._timer = self.loop_handle.call_later(left, self.submit, self._look)
        elif self._fallback is None:
            self.fail(TimedOut(self._story()))
        else:
            self._over = True
            self.switch(self._fallback)

    def _story(self) -> str:
        what = "no element" if not self._came else f"no further element after {self._came}"
        return f"{what} within {self._limit:g} s of being asked"


def buffer_timeout(source: "Flow[T]", size: int, within: Duration) -> "Flow[list[T]]":
    """Collect elements into lists: of *size*, or what has come *within* a time of the first one.

    A list that is due while nobody asks for it waits, and goes on growing up to *size*; then the
    source is not asked for more.

    ::

        a-b-----c--d--|
        .buffer_timeout(2, 4)
        --[a, b]--------[c, d]|

    Demand: batched (*size* elements upstream, asked for anew as they are handed on).
    Completes: when the source completes, behind the last list.
    Fails: when the source fails, behind a list of what it had sent.
    Cancels: when the subscriber cancels; what is collected is discarded.
    Holds: 2 × *size* elements: a list that grows, and one on its way down.
    Rules: 1.1, 1.5
    """
    size, limit = require_demand(size), to_seconds(within, "within")
    return from_push(
        lambda downstream: _BufferTimeout(downstream, source, size, limit),
        name=f"buffer_timeout({size}, {limit:g})",
        holds=2 * size,
        checked=True,
        upstreams=(source,),
        window=1,
    )


class _BufferTimeout(Coordinator[list[Any]]):
    def __init__(
        self, downstream: Downstream[list[Any]], source: "Flow[Any]", size: int, limit: float
    ) -> None:
        super().__init__(downstream)
        self._source = source
        self._limit = limit
        self._state = BatchTimer(size)
        self._timer: TimerHandle | None = None

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        self._inner: InnerSubscriber[Any] = self.subscribe_to(
            self._source, request=self._state.size
        )

    def on_demand(self) -> None:
        self._hand_over()

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        self._set(self._state.add(len(inner.elements) - self._state.held))
        self._hand_over()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._set(self._state.add(len(inner.elements) - self._state.held))
        self._set(self._state.ended())
        self._hand_over()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self.on_inner_complete(inner)

    def on_stop(self) -> None:
        self._set(TimerAction.STOP)

    # -- acts -------------------------------------------------------------------------------------
    def _rang(self) -> None:
        self._timer = None
        if not self.is_closed:
            self._set(self._state.rang())
            self._hand_over()

    def _set(self, clock: TimerAction) -> None:
        if clock is not TimerAction.LEAVE and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if clock is TimerAction.START:
            self._timer = self.loop_handle.call_later(self._limit, self.submit, self._rang)

    def _hand_over(self) -> None:
        while count := self._state.batch(self.demand.outstanding):
            batch = self._inner.take(count)
            self._set(self._state.handed_over(count))
            self._inner.request(count)
            self.emit([batch])
        self.end_with(self._inner)
