"""The boundary: a queue that lets upstream and downstream run independently."""

from typing import TYPE_CHECKING, Any, TypeVar

from ..stage import (
    Coordinator,
    Downstream,
    FlowSubscription,
    InnerSubscriber,
    from_push,
    require_int,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("boundary",)

T = TypeVar("T")


def boundary(source: "Flow[T]", capacity: int = 256, *, refill: float = 0.75) -> "Flow[T]":
    """Let upstream and downstream run independently, with *capacity* elements in between.

    ::

        a--b--c--|
        .boundary(2)
        a--b--c--|

    Upstream runs up to *capacity* elements ahead, from the first request on. Both sides yield to
    the loop at a hand-over. When the part *refill* of the elements has been processed, as many are
    requested again.

    Demand: batched (*capacity*, refill at *refill* of it).
    Completes: when the source completes, after the elements held.
    Fails: when the source fails, after the elements held.
    Cancels: when the subscriber cancels; the elements held are discarded.
    Holds: *capacity* elements.
    Rules: 1.1, 3.4
    """
    capacity = require_int("boundary", "capacity", capacity, least=1)
    if not 0 < refill <= 1:
        raise ValueError(
            f"boundary: refill must be a part of capacity, above 0 and at most 1: {refill}"
        )

    def open(downstream: Downstream[T]) -> FlowSubscription:
        return _Boundary(downstream, source, capacity, max(1, int(capacity * refill)))

    return from_push(
        open,
        name=f"boundary({capacity})",
        holds=capacity,
        checked=True,
        upstreams=(source,),
        window=capacity,
    )


class _Boundary(Coordinator[T]):
    """Lends chunks downstream; lent elements count as held until they have been processed."""

    # Each decision changes all state first and calls one thing, at its end, so that signals cannot
    # overtake each other.
    is_serialized = False

    def __init__(
        self, downstream: Downstream[T], source: "Flow[T]", capacity: int, mark: int
    ) -> None:
        super().__init__(downstream)
        self._source = source
        self._capacity = capacity
        self._mark = mark
        self._lent = self._freed = 0
        self._is_lending = False  # a hand-over is scheduled

    def on_start(self) -> None:
        self._inner: InnerSubscriber[T] = self.subscribe_to(self._source)
        self._freed = self._capacity
        self._refill()

    def on_demand(self) -> None:
        self.on_processed()
        self._lend()

    def on_processed(self) -> None:
        self._freed += self._lent
        self._lent = 0
        self._refill()

    def _refill(self) -> None:
        if self._freed >= self._mark and not self._inner.is_done:
            freed, self._freed = self._freed, 0
            self._is_lending = True
            self.loop_handle.call_soon(self._request, freed)

    def _request(self, n: int) -> None:
        """Request, then hand over the elements that a synchronous upstream has sent."""
        self._inner.request(n)
        self._lend()

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        if not self._is_lending:
            self._is_lending = True
            self.loop_handle.call_soon(self._lend)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._inner = inner  # it may have ended during `subscribe_to`
        self._lend()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self.on_inner_complete(inner)

    def _lend(self) -> None:
        self._is_lending = False
        chunk = self._inner.take(min(self.demand.outstanding, self._capacity))
        self._lent += len(chunk)
        self.emit(chunk)
        self.end_with(self._inner)
