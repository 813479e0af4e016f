"""Operators for elements that arrive without demand: they are buffered, or dropped."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..stage import (
    UNBOUNDED,
    BoundedQueue,
    Coordinator,
    Downstream,
    FlowSubscription,
    InnerSubscriber,
    OutputBuffer,
    OverflowPolicy,
    from_push,
    require_capacity,
    require_policy,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("on_backpressure_buffer", "on_backpressure_drop", "on_backpressure_latest")

T = TypeVar("T")

_CHUNK = 256  # the most that on_backpressure_drop lets an island request at a time


def on_backpressure_buffer(
    source: "Flow[T]",
    capacity: int,
    *,
    overflow: OverflowPolicy = "fail",
    on_drop: Callable[[T], object] | None = None,
) -> "Flow[T]":
    """Buffer elements that arrive without demand, at most *capacity* of them.

    ::

        demand 1----2
        a--b--c--|
        .on_backpressure_buffer(8)
        a----b c--|

    When the buffer is full, *overflow* decides what happens: ``"fail"`` (the flow fails with
    `Overflow`, after the elements held), ``"drop_newest"``, ``"drop_oldest"`` or ``"latest"`` (only
    the latest is held). *on_drop* is called with each element dropped. ``"wait"`` is not possible
    here: for a source that can wait, use ``boundary``.

    Demand: unbounded upstream, from the first request on.
    Completes: when the source completes, after the elements held.
    Fails: when the source fails, after the elements held; by overflow; when *on_drop* raises.
    Cancels: when the subscriber cancels; the elements held are discarded.
    Holds: *capacity* elements.
    Rules: 1.1, 2.8
    """
    name = "on_backpressure_buffer"
    capacity, overflow = require_capacity(capacity, name), require_policy(overflow, name)
    if overflow == "wait":
        raise ValueError(
            f"{name}: overflow='wait' would refuse elements that cannot be given back; "
            "use boundary() to slow the source down, or another policy"
        )
    if overflow == "latest":
        return _backpressured(
            source, 1, overflow, on_drop, f"{name}({capacity})", holds=2, window=1
        )
    return _backpressured(
        source, capacity, overflow, on_drop, f"{name}({capacity})", holds=capacity
    )


def on_backpressure_drop(
    source: "Flow[T]", *, on_drop: Callable[[T], object] | None = None
) -> "Flow[T]":
    """Drop elements that arrive without demand.

    ::

        demand 1----2
        a--b--c--|
        .on_backpressure_drop()
        a-----c--|

    *on_drop* is called with each element dropped.

    Demand: unbounded upstream, from the first request on; a slow subscriber with more demand
        receives 256 elements at a time.
    Completes: when the source completes.
    Fails: when the source fails, or *on_drop* raises.
    Cancels: when the subscriber cancels.
    Holds: 256 elements, which were requested and wait for a slow subscriber.
    Rules: 1.1, 2.8
    """
    name = "on_backpressure_drop"
    return _backpressured(source, 0, "drop_newest", on_drop, name, holds=_CHUNK, window=_CHUNK)


def on_backpressure_latest(
    source: "Flow[T]", *, on_drop: Callable[[T], object] | None = None
) -> "Flow[T]":
    """Keep the latest of the elements that arrive without demand.

    ::

        demand 1------2
        a--b--c--|
        .on_backpressure_latest()
        a------c-|

    The subscriber receives one element at a time; when it has processed one, it receives the latest
    that has arrived meanwhile. *on_drop* is called with each element dropped.

    Demand: unbounded upstream, from the first request on.
    Completes: when the source completes, after the element held.
    Fails: when the source fails, after the element held; when *on_drop* raises.
    Cancels: when the subscriber cancels; the element held is discarded.
    Holds: 2 elements: the one the subscriber is processing, and the latest.
    Rules: 1.1, 2.8
    """
    name = "on_backpressure_latest"
    return _backpressured(source, 1, "latest", on_drop, name, holds=2, window=1)


def _backpressured(
    source: "Flow[T]",
    capacity: int,
    overflow: OverflowPolicy,
    on_drop: Callable[[T], object] | None,
    name: str,
    *,
    holds: int,
    window: int = 0,
) -> "Flow[T]":
    if on_drop is not None and not callable(on_drop):
        raise TypeError(f"{name}: on_drop must be a function of an element, not {on_drop!r}")

    def open(downstream: Downstream[T]) -> FlowSubscription:
        return _Backpressured(downstream, source, BoundedQueue(capacity, overflow), name, on_drop)

    return from_push(open, name=name, holds=holds, checked=True, upstreams=(source,), window=window)


class _OfferingSubscriber(InnerSubscriber[T]):
    """Offers each element to the queue as it arrives, so that no batch bypasses it."""

    __slots__ = ()

    def __init__(self, owner: "_Backpressured[T]", offer: Callable[[T], None]) -> None:
        super().__init__(owner)
        self.append = offer

    @property
    def container(self) -> None:
        return None


class _Backpressured(Coordinator[T]):
    """Requests everything of upstream, and lets a bounded queue decide about each element.

    Demand goes upstream one turn of the loop later, so that a synchronous upstream does not emit
    all its elements inside the subscriber's `request`.
    """

    def __init__(
        self,
        downstream: Downstream[T],
        source: "Flow[T]",
        queue: BoundedQueue[T],
        name: str,
        on_drop: Callable[[T], object] | None,
    ) -> None:
        super().__init__(downstream)
        self._source = source
        self._on_drop = on_drop
        self._is_subscribed = False
        self.output = OutputBuffer(
            downstream, queue, name, on_room=_ignore_room, on_cancel=self._overflowed
        )

    # -- downstream -------------------------------------------------------------------------------
    def request(self, n: int, /) -> None:
        if not self._is_subscribed:
            self._is_subscribed = True
            self.loop_handle.call_soon(self._begin)
        self.output.request(n)

    def processed(self) -> None:
        self.output.processed()

    def _begin(self) -> None:
        if not self.is_closed:
            inner = _OfferingSubscriber(self, self._take)
            self.inners[inner] = None
            inner.request(UNBOUNDED)
            inner.subscribe(self._source)

    def on_stop(self) -> None:
        self.output.cancel()

    def fail(self, error: BaseException) -> None:
        """Cancel upstream, and fail after the elements held."""
        for inner in self.inners:
            inner.cancel()
        self.output.end(error)

    def _overflowed(self, _: OutputBuffer[T]) -> None:
        for inner in self.inners:
            inner.cancel()

    # -- upstream ---------------------------------------------------------------------------------
    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        for element in inner.take(len(inner.elements)):
            self._take(element)

    def _take(self, element: T) -> None:
        decision = self.output.offer(element)
        if self._on_drop is not None and decision.dropped is not None:
            self._on_drop(decision.dropped)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self.on_elements(inner)
        self.output.end(inner.error)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self.on_inner_complete(inner)


def _ignore_room() -> None:
    """No producer waits for room."""
