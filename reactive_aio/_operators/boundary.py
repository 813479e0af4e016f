"""Operators about demand: boundaries, and what to do with elements nobody has asked for."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .._core.arguments import require_int
from .._core.upstreams.coordinator import Coordinator, InnerSubscriber
from ..stage import Downstream, from_push

if TYPE_CHECKING:
    from ..flow import Flow
    from ..spec import Subscription

__all__ = ("boundary",)

T = TypeVar("T")


def boundary(source: "Flow[T]", capacity: int = 256, *, refill: float = 0.75) -> "Flow[T]":
    """Let upstream and downstream run apart, with at most *capacity* elements between them.

    ::

        a--b--c--|
        .boundary(2)
        a--b--c--|

    Upstream works ahead, up to *capacity* elements, from the first request on; both sides give the
    loop a turn when they hand over. When *refill* of the elements has been consumed, as many are
    requested again.

    Demand: batched (*capacity*, refill at *refill* of it).
    Completes: when the source completes, behind the elements held.
    Fails: when the source fails, behind the elements held.
    Cancels: when the subscriber cancels; the elements held are discarded.
    Holds: *capacity* elements.
    Rules: 1.1, 3.4
    """
    capacity = require_int("boundary", "capacity", capacity, least=1)
    if not 0 < refill <= 1:
        raise ValueError(
            f"boundary: refill must be a part of capacity, above 0 and at most 1: {refill}"
        )

    def open(downstream: Downstream[T]) -> "Subscription":
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
    """Lends chunks downstream: what is lent counts as held until more is asked for."""

    def __init__(
        self, downstream: Downstream[T], source: "Flow[T]", capacity: int, mark: int
    ) -> None:
        super().__init__(downstream)
        self._source = source
        self._capacity = capacity
        self._mark = mark
        self._lent = self._freed = 0
        self._lending = False  # a hand-over is on its way
        # Each decision here settles its state before it calls anybody, and calls one at its end:
        # nothing can overtake anything, so that the trampoline would only cost time.
        self.submit = _at_once

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
            self._lending = True
            self.loop_handle.call_soon(self._request, freed)

    def _request(self, n: int) -> None:
        """Let a synchronous upstream produce in this turn, and hand over when it has returned."""
        self._inner.request(n)
        self._lend()

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        if not self._lending:
            self._lending = True
            self.loop_handle.call_soon(self._lend)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._inner = inner  # which may have ended while it was subscribed to
        self._lend()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self.on_inner_complete(inner)

    def _lend(self) -> None:
        self._lending = False
        chunk = self._inner.take(min(self.demand.outstanding, self._capacity))
        self._lent += len(chunk)
        self.emit(chunk)
        self.end_with(self._inner)


def _at_once(decision: Callable[..., object], *args: object) -> None:
    decision(*args)
