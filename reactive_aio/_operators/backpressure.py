"""Operators with a queue between upstream and downstream, in place of demand that is passed on.

`boundary` requests what its queue can hold. The others request everything, and buffer or drop the
elements that arrive without demand.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from .._core.arguments import drop_handler
from .._core.losses import DropCounter
from .._core.queues.bounded_queue import (
    LOSSY,
    BoundedQueue,
    OverflowPolicy,
    require_capacity,
    require_policy,
)
from .._core.queues.output_buffer import OutputBuffer
from ..stage import (
    UNBOUNDED,
    Coordinator,
    ForwardingCoordinator,
    InnerSubscriber,
    from_push,
    require_int,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = (
    "boundary",
    "limit_rate",
    "on_backpressure_buffer",
    "on_backpressure_drop",
    "on_backpressure_error",
    "on_backpressure_latest",
)

T = TypeVar("T")

_CHUNK = 256  # the most that on_backpressure_drop lets an island request at a time


def boundary(source: "Flow[T]", capacity: int = 256, *, refill: float = 0.75) -> "Flow[T]":
    """Let upstream and downstream run independently, with *capacity* elements in between.

    ::

        a--b--c--|
        .boundary(2)
        a--b--c--|

    Upstream runs up to *capacity* elements ahead, from the first request on. Both sides yield to
    the loop at a hand-over. When *refill* of the *capacity*, by default three quarters, has been
    processed, as many are requested again.

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

    return from_push(
        lambda downstream: _Boundary(downstream, source, capacity, max(1, int(capacity * refill))),
        name=f"boundary({capacity})",
        holds=capacity,
        checked=True,
        upstreams=(source,),
        window=capacity,
        one_by_one=False,
    )


@dataclass(eq=False, repr=False)
class _Boundary(Coordinator[T]):
    """Lends chunks downstream; lent elements count as held until they have been processed."""

    # Each decision changes all state first and calls one thing, at its end, so that signals cannot
    # overtake each other.
    is_serialized = False
    passes_each = True

    _source: "Flow[T]"
    _capacity: int
    _mark: int
    _lent: int = 0
    _freed: int = 0
    _is_lending: bool = False  # a hand-over is scheduled

    def on_start(self) -> None:
        self._inner: InnerSubscriber[T] = self.subscribe_to(self._source)
        self._freed = self._capacity
        self._refill()

    def on_demand(self) -> None:
        self.on_processed()
        if not self._is_lending:
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
        self._inner.is_notified = True
        self._inner.request(n)
        self._lend()

    def on_arrival(self, inner: InnerSubscriber[Any]) -> None:
        """Wait for the end of this turn of the loop: more elements may arrive in it."""
        inner.is_notified = True
        if not self._is_lending:
            self._is_lending = True
            self.loop_handle.call_soon(self._lend)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._inner = inner  # it may have ended during `subscribe_to`
        self._lend()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self.on_inner_complete(inner)

    def _lend(self) -> None:
        self._is_lending = self._inner.is_notified = False
        chunk = self._inner.take(min(self.demand.outstanding, self._capacity))
        self._lent += len(chunk)
        self.emit(chunk)
        self.end_with(self._inner)


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
    return _backpressured(source, capacity, overflow, on_drop, f"{name}({capacity})")


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
    return _backpressured(source, 0, "drop_newest", on_drop, "on_backpressure_drop", _CHUNK)


def on_backpressure_error(source: "Flow[T]") -> "Flow[T]":
    """Fail when an element arrives without demand.

    ::

        demand 1----2
        a--b--c--|
        .on_backpressure_error()
        a--#

    Demand: unbounded upstream, from the first request on; a slow subscriber with more demand
        receives 256 elements at a time.
    Completes: when the source completes.
    Fails: when the source fails; with `Overflow` when an element arrives without demand.
    Cancels: when the subscriber cancels, or by overflow.
    Holds: 256 elements, which were requested and wait for a slow subscriber.
    Rules: 1.1, 2.8
    """
    return _backpressured(source, 0, "fail", None, "on_backpressure_error", _CHUNK)


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
    return _backpressured(source, 1, "latest", on_drop, "on_backpressure_latest")


def _backpressured(
    source: "Flow[T]",
    capacity: int,
    overflow: OverflowPolicy,
    on_drop: Callable[[T], object] | None,
    name: str,
    window: int = 0,
) -> "Flow[T]":
    operator = name.partition("(")[0]
    handler = drop_handler(operator, on_drop)
    is_single = overflow == "latest"
    if is_single:
        capacity = 1
    return from_push(
        lambda downstream: _Backpressured(
            downstream,
            source,
            BoundedQueue(capacity, overflow, DropCounter(operator)),
            name,
            handler,
        ),
        name=name,
        holds=capacity + (1 if is_single else window),
        checked=True,
        upstreams=(source,),
        window=0 if is_single else window,
        one_by_one=overflow in LOSSY or window > 0,
        lossy=overflow in LOSSY,
    )


def _ignore(_: object) -> None:
    pass


class _OfferingSubscriber(InnerSubscriber[T]):
    """Its `append` puts each element into the queue at once, where the policy decides about it."""

    __slots__ = ()

    def flush(self) -> None:
        if not self.is_notified and not self.is_done:
            self._owner.on_arrival(self)

    @property
    def container(self) -> None:
        return None


@dataclass(slots=True, eq=False, repr=False)
class _Output(OutputBuffer[T]):
    """Ends its coordinator with the island, which waits for the cleanup of what that has left."""

    _: KW_ONLY
    coordinator: "_Backpressured[T]"

    def send_end(self, error: BaseException | None) -> None:
        self.coordinator.end_now(error)


@dataclass(eq=False, repr=False)
class _Backpressured(Coordinator[T]):
    """Requests everything of upstream, and lets a bounded queue decide about each element.

    Demand goes upstream one turn of the loop later, so that a synchronous upstream does not emit
    all its elements inside the subscriber's `request`.
    """

    _source: "Flow[T]"
    _queue: BoundedQueue[T]
    _name: str
    _on_drop: Callable[[T], object] | None
    _is_subscribed: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.output: OutputBuffer[T] = _Output(
            self.downstream,
            self._queue,
            self._name,
            on_room=_ignore,  # no producer waits for it
            on_cancel=self._cancel_upstream,
            keeps_refused=False,
            coordinator=self,
        )
        if self._on_drop is None and self._queue.policy == "fail" and self.on_discard is not None:
            self._on_drop = self.on_discard  # the element with which the flow fails

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
            inner = _OfferingSubscriber[T](self)
            # Where only the latest is held, a batch would be one element.
            inner.append = self._offer if self._queue.policy == "latest" else self._take
            self.inners[inner] = None
            inner.request(UNBOUNDED)
            inner.subscribe(self._source)

    def on_stop(self) -> None:
        self.output.cancel()

    def fail(self, error: BaseException) -> None:
        """Cancel upstream, and fail after the elements held."""
        self._cancel_upstream()
        self.output.end(error)

    def end_now(self, error: BaseException | None) -> None:
        """No element is held: end."""
        if error is None:
            self.complete()
        else:
            super().fail(error)

    @property
    def held(self) -> int:
        return super().held + self.output.held

    @property
    def is_lossy(self) -> bool:
        return self.output.is_lossy

    def oldest(self, now: float, waiting: int) -> float | None:
        return self.output.oldest(now, waiting)

    def _cancel_upstream(self, _: object = None) -> None:
        for inner in self.inners:
            inner.cancel()

    # -- upstream ---------------------------------------------------------------------------------
    def _take(self, element: T) -> None:
        """Hold *element*; the reader is lent all of a batch when that is over, or does not fit."""
        queue = self._queue
        if queue.follow(element):
            return
        if queue.elements or not queue.capacity or self.output.is_ended:
            self.output.flush()
            self._offer(element)
        else:
            queue.enter(element)

    def on_arrival(self, inner: InnerSubscriber[Any]) -> None:
        self.on_elements(inner)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        for element in inner.take(len(inner.elements)):
            self._take(element)
        self.output.flush()

    def _offer(self, element: T) -> None:
        decision = self.output.offer(element)
        if self._on_drop is not None and decision.dropped is not None:
            self._on_drop(decision.dropped)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self.on_elements(inner)
        self.output.end(inner.error)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self.on_inner_complete(inner)


def limit_rate(source: "Flow[T]", high: int, low: int | None = None) -> "Flow[T]":
    """Request at most *high* elements at a time of the source, whatever the demand.

    For a source that prepares as much as is requested, such as a query or a remote publisher. After
    *high* elements, it requests again whenever *low* have been processed (three quarters of *high*
    by default), or fewer if the demand is less.

    ::

        a--b--c--|
        .limit_rate(2)
        a--b--c--|

    Demand: passed through, at most *high* at a time.
    Completes: when the source completes.
    Fails: when the source fails.
    Cancels: when the subscriber cancels.
    Holds: *high* elements in delivery.
    Rules: 1.1, 3.8
    """
    high = require_int("limit_rate", "high", high, least=1)
    low = max(1, high * 3 // 4) if low is None else require_int("limit_rate", "low", low, least=1)
    if low > high:
        raise ValueError(f"limit_rate: low must be at most high ({high}), not {low}")
    return from_push(
        lambda downstream: _LimitRate(downstream, source, high, low),
        name=f"limit_rate({high}, {low})",
        holds=high,
        checked=True,
        upstreams=(source,),
    )


@dataclass(eq=False, repr=False)
class _LimitRate(ForwardingCoordinator[T]):
    """What was requested and has not been processed is at most *high* elements."""

    _source: "Flow[T]"
    _high: int
    _low: int

    def on_start(self) -> None:
        self.upstream = self.subscribe_to(self._source)

    def on_demand(self) -> None:
        inner = self.upstream
        if inner is None:
            return
        if inner.is_lossy:  # which is the lower limit
            self.request_missing(inner)
            return
        unprocessed = self.emitted - self.processed_count
        wanted = min(self.demand.outstanding, self._high - unprocessed)
        missing = wanted - inner.outstanding
        if missing > 0 and missing >= min(self._low, self.demand.outstanding):
            inner.request(missing)
