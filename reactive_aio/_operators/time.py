"""Operators that depend on time: on the loop's clock, so that virtual time applies."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from .._core.arguments import refuse_awaitable
from .._core.observation.awaited import Wait
from .._core.queues.batch_timer import BatchTimer, TimerAction
from .._shared.coerce import WINDOW, Source, to_flow
from ..errors import TimedOut
from ..stage import (
    Coordinator,
    Duration,
    InnerSubscriber,
    SequentialCoordinator,
    Timer,
    from_push,
    require_int,
    require_sync_callable,
    to_seconds,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("buffer_timeout", "timeout")

T = TypeVar("T")
U = TypeVar("U")

_REMEDY: Final = "map_async can add what it needs to the elements first."


@overload
def timeout(
    source: "Flow[T]",
    each: Duration | None = ...,
    *,
    first: Duration | None = ...,
    total: Duration | None = ...,
    fallback: None = ...,
) -> "Flow[T]": ...
@overload
def timeout(
    source: "Flow[T]",
    each: Duration | None = ...,
    *,
    first: Duration | None = ...,
    total: Duration | None = ...,
    fallback: Source[U],
) -> "Flow[T | U]": ...
def timeout(
    source: "Flow[Any]",
    each: Duration | None = None,
    *,
    first: Duration | None = None,
    total: Duration | None = None,
    fallback: Source[Any] | None = None,
) -> "Flow[Any]":
    """Fail when the source takes longer than *each* to its next signal, or *total* to its end.

    A signal is an element or the end. For *each*, time runs only while there is demand: a slow
    subscriber cannot make a flow time out. One that requests ahead, such as ``for_each``, has
    demand while it works on an element. *first* is the limit for the first element, if it differs.
    *total* is for the whole: from the first request until the source ends, whoever is slow.

    With a *fallback*, the source is cancelled and the flow continues with the fallback, without a
    limit, as soon as the source has cleaned up. Without one, the flow fails at once.

    ::

        a--b--------c--|
        .timeout(5)
        a--b----#

    Demand: passed through.
    Completes: when the source or *fallback* completes.
    Fails: with TimedOut, which reports how many elements had arrived, or when the source or
        *fallback* fails.
    Cancels: the source when the time is over; the active one when the subscriber cancels.
    Holds: up to 256 elements in delivery.
    Rules: 1.1, 1.4, 1.7
    """
    if each is None and first is None and total is None:
        raise TypeError("timeout: give a limit for each element, for the first one, or in total=")
    limit = _limit_of(each, "each")
    opening = limit if first is None else _limit_of(first, "first")
    whole = _limit_of(total, "total")
    other = None if fallback is None else to_flow(fallback, name="timeout")
    given = {"": (each, limit), "first=": (first, opening), "total=": (total, whole)}
    shown = [f"{name}{seconds:g}" for name, (asked, seconds) in given.items() if asked is not None]
    return from_push(
        lambda downstream: _Timeout(downstream, source, opening, limit, whole, other),
        name=f"timeout({', '.join(shown)})",
        holds=WINDOW,
        checked=True,
        upstreams=(source,) if other is None else (source, other),
        window=WINDOW,
    )


def _limit_of(seconds: Duration | None, parameter: str) -> float:
    return inf if seconds is None else to_seconds(seconds, f"timeout: {parameter}")


@dataclass(eq=False, repr=False)
class _Timeout(SequentialCoordinator[Any]):
    """One timer, which no element touches: when it fires, it computes the remaining time.

    A second one is for the whole.
    """

    _source: "Flow[Any]"
    _limit: float
    _each: float
    _total: float
    _fallback: "Flow[Any] | None"
    _received: int = 0
    _has_timed_out: bool = False  # the fallback is active
    _waiting_since: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._timer = Timer(self, self._check)
        self._whole_timer = Timer(self, self._end_whole)

    # -- decisions --------------------------------------------------------------------------------
    def begin(self) -> None:
        if self._total < inf:
            self._whole_timer.start(self._total)
        self.switch(self._source)

    def on_demand(self) -> None:
        super().on_demand()
        if self._waiting_since is None:
            self._wait()

    def on_processed(self) -> None:
        self.on_demand()

    def on_elements(self, inner: "InnerSubscriber[Any]") -> None:
        if inner is self.active and inner.elements:
            if not self._received and self._limit != self._each:
                self._limit = self._each
                self._timer.stop()  # it may be set for much later
            self._received += len(inner.elements)
        super().on_elements(inner)
        self._wait()

    # -- acts -------------------------------------------------------------------------------------
    def _wait(self) -> None:
        """Start to wait, if an element was requested of the source."""
        is_waiting = self.active is not None and self.active.outstanding and not self.is_closed
        self._waiting_since = self.loop_handle.time() if is_waiting else None
        is_limited = self._limit < inf and not self._has_timed_out
        if is_limited and self._waiting_since is not None and not self._timer.is_running:
            self._timer.start(self._limit)

    def _check(self) -> None:
        if self.active is not None and self.active.elements:
            self.on_elements(self.active)  # they have arrived in time, in this turn of the loop
        if self.is_closed or self._waiting_since is None:
            return
        remaining = self._waiting_since + self._limit - self.loop_handle.time()
        if remaining > 0:
            self._timer.start(remaining)
        else:
            what = f"further element after {self._received}" if self._received else "element"
            self._time_out(f"no {what} within {self._limit:g} s of the request")

    def _end_whole(self) -> None:
        if self._has_timed_out:
            return
        if self.active is not None and self.active.elements:
            self.on_elements(self.active)  # they have arrived in time, in this turn of the loop
        if not self.is_closed:
            what = f"{self._received} elements, and no end," if self._received else "no element"
            self._time_out(f"{what} within {self._total:g} s in total")

    def _time_out(self, what: str) -> None:
        if self._fallback is None:
            self.fail(TimedOut(what))
        else:
            self._has_timed_out = True
            self._timer.stop()
            self.switch(self._fallback)


def buffer_timeout(
    source: "Flow[T]",
    size: int,
    duration: Duration,
    *,
    weight: Callable[[T], float] | None = None,
    max_weight: float | None = None,
    until: Callable[[T], object] | None = None,
) -> "Flow[list[T]]":
    """Collect elements into lists of *size*, or fewer when *duration* has passed since the first.

    A list is also complete before the element that would make its *weight* more than *max_weight*:
    of bytes, tokens, rows. (An element that is heavier alone makes a list alone.) And it is
    complete after an element for which *until* is true. A list that is due without demand waits,
    and grows until it is complete; when *size* elements wait, nothing more is requested.

    ::

        a-b-----c--d--|
        .buffer_timeout(2, 4)
        --[a, b]--------[c, d]|

    Demand: batched (*size* elements upstream, requested again as lists are emitted).
    Completes: when the source completes, after the last list.
    Fails: when the source fails, after a list of the elements it had sent; when *weight* or *until*
        raises.
    Cancels: when the subscriber cancels; the elements collected are discarded.
    Holds: 2 × *size* elements: lists that wait, and one that is being delivered.
    Rules: 1.1, 1.5
    """
    require_int("buffer_timeout", "size", size, least=1)
    limit = to_seconds(duration, "buffer_timeout: duration")
    cutter = cutter_of(weight, max_weight, until)
    return from_push(
        lambda downstream: BufferTimeout(downstream, source, BatchTimer(size), limit, cutter),
        name=f"buffer_timeout({size}, {limit:g})",
        holds=2 * size,
        checked=True,
        upstreams=(source,),
        window=1,
        one_by_one=True,
        lossy=False,
        contents=size * source.chain.weight,
    )


def cutter_of(
    weight: Callable[[Any], float] | None,
    max_weight: float | None,
    until: Callable[[Any], object] | None,
) -> "Cutter | None":
    """What ends a list besides its size, if one of these arguments was given."""
    if weight is None and max_weight is None and until is None:
        return None
    return Cutter(*_require_weights(weight, max_weight), _require_until(until))


def _require_weights(
    weight: Callable[[Any], float] | None, max_weight: float | None
) -> tuple[Callable[[Any], float] | None, float]:
    if (weight is None) != (max_weight is None):
        raise TypeError("buffer_timeout: weight and max_weight belong together; give both")
    if weight is None or max_weight is None:
        return None, inf
    require_sync_callable("buffer_timeout", "weight", weight, _REMEDY, takes=1)
    return weight, _weight_of("max_weight", max_weight)


def _require_until(until: Callable[[Any], object] | None) -> Callable[[Any], object] | None:
    if until is not None:
        require_sync_callable("buffer_timeout", "until", until, _REMEDY, takes=1)
    return until


def _weight_of(what: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"buffer_timeout: {what} must be a number, not {value!r}")
    if not value >= 0:
        raise ValueError(f"buffer_timeout: {what} must be 0 or more, not {value!r}")
    return value


@dataclass(slots=True, frozen=True, eq=False)
class Cutter:
    """Where a list ends, besides its size: by the weight of its elements, or by one of them."""

    weight: Callable[[Any], float] | None
    max_weight: float
    until: Callable[[Any], object] | None

    def weigh(self, element: object) -> float:
        return 0.0 if self.weight is None else _weight_of("a weight", self.weight(element))

    def is_end(self, element: object) -> bool:
        if self.until is None:
            return False
        answer = self.until(element)
        refuse_awaitable("buffer_timeout", self.until, answer)
        return bool(answer)


@dataclass(eq=False, repr=False)
class BufferTimeout(Coordinator[list[Any]]):
    """Emits the lists that `BatchTimer` and *cutter* decide on."""

    _source: "Flow[Any]"
    _state: BatchTimer
    _limit: float
    _cutter: Cutter | None
    _weight: float = 0.0
    """The weight of the list that grows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._timer = Timer(self, self._on_timer)

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        self._inner: InnerSubscriber[Any] = self.subscribe_to(
            self._source, request=self._state.size
        )

    def on_demand(self) -> None:
        self._emit_lists()

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        if self._cutter is None:
            self._apply(self._state.add(len(inner.elements) - self._state.held))
        else:
            for element in inner.elements[self._state.held :]:
                self._weigh(element, self._cutter)
        if inner.is_done:
            self._apply(self._state.end())
        self._emit_lists()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self.on_elements(inner)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self.on_elements(inner)

    @property
    def own_wait(self) -> Wait | None:
        waits = self._timer.is_running
        return Wait("time", "more elements, or the end of its time") if waits else super().own_wait

    # -- acts -------------------------------------------------------------------------------------
    def _weigh(self, element: Any, cutter: Cutter) -> None:
        """Add *element* to the list that grows, or to the next one if that would be too heavy."""
        state, weight = self._state, cutter.weigh(element)
        if not state.open:
            self._weight = 0.0
        elif self._weight + weight > cutter.max_weight:
            self._apply(state.cut())
            self._weight = 0.0
        self._weight += weight
        is_end = cutter.is_end(element)
        self._apply(state.add(1))
        if is_end or self._weight >= cutter.max_weight:
            self._apply(state.cut())

    def _on_timer(self) -> None:
        self._apply(self._state.fired())
        self._emit_lists()

    def _apply(self, action: TimerAction) -> None:
        if action is TimerAction.START:
            self._timer.start(self._limit)
        elif action is TimerAction.STOP:
            self._timer.stop()

    def _emit_lists(self) -> None:
        state = self._state
        while not self.is_closed and (count := state.batch_size(self.demand.outstanding)):
            batch = self._inner.take(count)
            self._apply(state.emitted())
            self._inner.request(count)
            self.emit([batch])
        self.end_with(self._inner)
