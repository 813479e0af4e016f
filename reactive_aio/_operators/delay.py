"""Operators that pass elements on later: by a time, after a moment, or at a rate."""

from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .._core.observation.awaited import Wait
from .._core.queues.recent import RecentCosts
from .._core.upstreams.await_pool import AwaitPool
from .._shared.coerce import WINDOW
from ..limits import Limit, Limits, require_limit
from ..stage import (
    Coordinator,
    Duration,
    ForwardingCoordinator,
    InnerSubscriber,
    Timer,
    from_push,
    require_int,
    to_seconds,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._core.loop import Future
    from ..flow import Flow

__all__ = ("delay", "delay_subscription", "rate_limit")

T = TypeVar("T")


def delay(source: "Flow[T]", by: Duration, *, capacity: int = 256) -> "Flow[T]":
    """Pass on each element, and the completion, *by* a time later.

    ::

        a--b--|
        .delay(2)
        --a--b--|

    The whole flow is shifted, whatever the subscriber requests: the source is requested up to
    *capacity* elements ahead, so that the second element can begin to wait while the first one
    does. A source that sends more than that in the time waits, as it does for a slow subscriber:
    an element that is due without demand stays until it is requested, and counts.

    Demand: batched (*capacity* upstream, refill at 75 % of it).
    Completes: *by* a time after the source, and after the last element.
    Fails: when the source fails, at once; the elements held are discarded.
    Cancels: when the subscriber cancels; the elements held are discarded.
    Holds: 2 × *capacity* elements: as many are delayed, and as many in delivery.
    Rules: 1.1, 1.5
    """
    seconds = to_seconds(by, "delay: by", zero=True)
    capacity = require_int("delay", "capacity", capacity, least=1)
    return from_push(
        lambda downstream: _Delay(downstream, source, seconds, capacity),
        name=f"delay({seconds:g})",
        holds=2 * capacity,
        checked=True,
        upstreams=(source,),
        window=capacity,
        lossy=False,
    )


@dataclass(eq=False, repr=False)
class _Delay(Coordinator[Any]):
    """Elements wait in their `InnerSubscriber`; `_due` has the times of groups of them."""

    passes_each = True
    _source: "Flow[Any]"
    _seconds: float
    _capacity: int
    _due: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])
    _counted: int = 0  # elements whose time is known
    _ready: int = 0  # those of them that are due
    _ends: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._timer = Timer(self, self._on_timer)

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        self._inner: InnerSubscriber[Any] = self.subscribe_to(self._source, request=self._capacity)

    def on_demand(self) -> None:
        self._emit_due()

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        new = len(inner.elements) - self._counted
        if new > 0:
            self._counted += new
            self._due.append((self.loop_handle.time() + self._seconds, new))
            self._set_timer()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self.on_elements(inner)
        self._ends = self.loop_handle.time() + self._seconds
        self._set_timer()

    @property
    def own_wait(self) -> Wait | None:
        is_due = self._ready or not self._timer.is_running
        return super().own_wait if is_due else Wait("time", "the end of its delay")

    # -- acts -------------------------------------------------------------------------------------
    def _set_timer(self) -> None:
        due = self._due[0][0] if self._due else self._ends
        if not self._timer.is_running and due is not None:
            self._timer.start(due - self.loop_handle.time())

    def _on_timer(self) -> None:
        now = self.loop_handle.time()
        while self._due and self._due[0][0] <= now:
            self._ready += self._due.popleft()[1]
        is_over = self._ends is not None and self._ends <= now
        if self._due or not is_over:
            self._set_timer()
        self._emit_due()

    def _emit_due(self) -> None:
        count = min(self._ready, self.demand.outstanding)
        self._ready -= count
        self._counted -= count
        self.emit(self._inner.take(count))
        if self.is_closed:
            return
        is_over = self._ends is not None and self._ends <= self.loop_handle.time()
        missing = self._capacity - self._inner.outstanding
        if is_over and not self._counted:
            self.complete()
        elif missing * 4 >= self._capacity:
            self._inner.request(missing)


def delay_subscription(source: "Flow[T]", by: Duration) -> "Flow[T]":
    """Subscribe to the source *by* a time after the first request.

    ::

        a--b--|
        .delay_subscription(2)
        --a--b--|

    Demand: passed through, once the source is subscribed to.
    Completes: when the source completes.
    Fails: when the source fails.
    Cancels: the wait, or the source, when the subscriber cancels.
    Holds: up to 256 elements in delivery.
    Rules: 1.1, 3.12
    """
    seconds = to_seconds(by, "delay_subscription: by", zero=True)
    return from_push(
        lambda downstream: _DelaySubscription(downstream, source, seconds),
        name=f"delay_subscription({seconds:g})",
        holds=WINDOW,
        checked=True,
        upstreams=(source,),
        window=WINDOW,
    )


@dataclass(eq=False, repr=False)
class _DelaySubscription(ForwardingCoordinator[Any]):
    _source: "Flow[Any]"
    _seconds: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._timer = Timer(self, lambda: self.attach(self._source))

    def on_start(self) -> None:
        self._timer.start(self._seconds)


@overload
def rate_limit(source: "Flow[T]", n: int, per: Duration = 1.0) -> "Flow[T]": ...


@overload
def rate_limit(source: "Flow[T]", *, limiter: Limits) -> "Flow[T]": ...


def rate_limit(
    source: "Flow[T]", n: int | None = None, per: Duration = 1.0, *, limiter: Limits | None = None
) -> "Flow[T]":
    """Pass on at most *n* elements within any time of *per*.

    ::

        (abcd|)
        .rate_limit(2, 4)
        (ab)---(cd|)

    No element is lost: more than the rate is not requested of the source.

    A *limiter*, such as a `RateLimit`, takes the place of *n* and *per*: all flows that have it,
    and all work of ``map_async`` and ``for_each`` that has it, share its rate. An element is
    requested when the limit allows one, and counts when it passes; so a source that is silent takes
    nothing away from other flows. When another flow was faster, the element waits. While a
    `CircuitBreaker` is open, nothing is requested, until its *reset* has passed. A limit on what
    runs at the same time is refused: here, no work ends. ``limiter=RateLimit(n, smooth=True)``
    spreads the elements over the time.

    Demand: passed through, at most *n* within *per*; with *limiter*, one at a time.
    Completes: when the source completes.
    Fails: when the source fails, or the *limiter*.
    Cancels: when the subscriber cancels; an element that waits is discarded, and does not count.
    Holds: 1 element with *limiter*; else up to *n* elements in delivery.
    Rules: 1.1, 3.5
    """
    if limiter is not None:
        return _limited(source, n, per, limiter)
    if n is None:
        raise TypeError("rate_limit: give n, or limiter=RateLimit(n)")
    n = require_int("rate_limit", "n", n, least=1)
    seconds = to_seconds(per, "rate_limit: per")
    return from_push(
        lambda downstream: _RateLimit(downstream, source, n, seconds),
        name=f"rate_limit({n} per {seconds:g} s)",
        holds=n,
        checked=True,
        upstreams=(source,),
        window=n,
    )


def _limited(source: "Flow[T]", n: object, per: Duration, limiter: Limits) -> "Flow[T]":
    limit = require_limit("rate_limit", limiter)
    kinds = [limiter] if isinstance(limiter, Limit) else limiter
    kind = " + ".join(type(each).__name__ for each in kinds)
    if n is not None or per != 1.0:
        raise TypeError("rate_limit: give n and per, or a limiter, which has its own")
    if limit.needs_end_of_work:
        raise TypeError(
            f"rate_limit: a {kind} limits what runs at the same time, and here no work ends; give "
            "it to map_async or for_each"
        )
    return from_push(
        lambda downstream: _Limited(downstream, source, limit, kind),
        name=f"rate_limit(limiter={kind})",
        holds=1,
        checked=True,
        upstreams=(source,),
        window=1,
    )


@dataclass(eq=False, repr=False)
class _Limited(ForwardingCoordinator[Any]):
    """Waits for the limit, requests one element, and waits until the limit lets it pass."""

    passes_each = True
    _source: "Flow[Any]"
    _limiter: Limit
    _kind: str

    def __post_init__(self) -> None:
        super().__post_init__()
        self._waits: AwaitPool[None] = AwaitPool(
            self.loop_handle,
            f"rate_limit(limiter={self._kind})",
            lambda _: self.submit(self._on_allowed),
            lambda error, _: self.submit(self.fail, error),
            self.report_cleanup,
        )

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        self.upstream = self.subscribe_to(self._source)

    def on_demand(self) -> None:
        inner = self.upstream
        if inner is None or self._waits.running or inner.outstanding or inner.is_done:
            return
        if self.demand.outstanding:
            self._waits.start(self._limiter.wait, None)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        if inner.elements and not self._waits.running:
            self._waits.start(partial(self._limiter.pass_on, inner.elements[0]), None)
        self.end_with(inner)

    def _on_allowed(self) -> None:
        """The limit allows what was waited for: a request, or the element that it brought."""
        inner = self.upstream
        if self.is_closed or inner is None:
            return
        if inner.elements:
            self.emit(inner.take(1))
            self.end_with(inner)
            if not self.is_closed:
                self.on_demand()
        else:
            inner.request(1)

    def on_stop(self) -> None:
        self._waits.cancel()

    @property
    def own_wait(self) -> Wait | None:
        waits = self._waits.running
        return Wait("limit", f"the limiter {self._limiter!r}") if waits else super().own_wait

    @property
    def tasks(self) -> "Sequence[Future[Any]]":
        return [*super().tasks, *self._waits.tasks]


@dataclass(eq=False, repr=False)
class _RateLimit(ForwardingCoordinator[Any]):
    """Requests as many as may arrive: *n*, less those that arrived within the last *per*."""

    passes_each = True
    _source: "Flow[Any]"
    _n: int
    _seconds: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._timer = Timer(self, self.on_demand)
        self._arrivals = RecentCosts(self._seconds)

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        self.upstream = self.subscribe_to(self._source)

    def on_demand(self) -> None:
        inner, now = self.upstream, self.loop_handle.time()
        if inner is None:
            return
        self.request_missing(inner, at_most=self._n - int(self._arrivals.total_at(now)))
        is_limited = self.demand.outstanding > inner.outstanding and self._arrivals
        if is_limited and not self._timer.is_running:
            self._timer.start(self._arrivals.time_left(now))

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        if elements := inner.take(len(inner.elements)):
            self._arrivals.add(self.loop_handle.time(), len(elements))
            self.emit(elements)
            self.on_demand()
        self.end_with(inner)

    @property
    def own_wait(self) -> Wait | None:
        is_asked = self.upstream is not None and self.upstream.outstanding
        waits = self._timer.is_running and not is_asked
        return Wait("limit", "the end of its period") if waits else super().own_wait
