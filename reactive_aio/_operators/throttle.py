"""Operators that thin out elements by time: of those that arrive too often, one is passed on.

They read the source as fast as it emits. Without demand, an element that is due waits, and a later
one takes its place: so none of them fails for lack of requests, and none is a queue.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .._core.arguments import drop_handler, refuse_awaitable
from .._core.losses import DropCounter
from .._core.observation.awaited import Wait
from ..stage import (
    UNBOUNDED,
    Coordinator,
    Duration,
    InnerSubscriber,
    Timer,
    describe,
    from_push,
    require_sync_callable,
    to_seconds,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("debounce", "sample", "throttle_first", "throttle_latest")

T = TypeVar("T")

_NOTHING: Final[Any] = object()
OnDrop = Callable[[T], object] | None


def debounce(
    source: "Flow[T]", quiet: Duration | Callable[[T], Duration], *, on_drop: OnDrop[T] = None
) -> "Flow[T]":
    """Pass on an element when none has followed it for a time of *quiet*.

    ::

        a-b c----d-|
        .debounce(3)
        ------c---(d|)

    A function is called with each element that may be passed on, and returns its time: 0 passes it
    on at once. Of elements that arrive together, that is the last one. *on_drop* is called with
    each element dropped.

    Demand: unbounded upstream, from the first request on; without demand, the latest element that
        is due waits.
    Completes: when the source completes, after its last element.
    Fails: when the source fails, at once, or *quiet* or *on_drop* raises.
    Cancels: when the subscriber cancels; the element held is discarded.
    Holds: 2 elements: one that waits, and one in delivery.
    Rules: 1.1, 2.8
    """
    if callable(quiet):
        remedy = "map_async can add the time to the elements first."
        require_sync_callable("debounce", "quiet", quiet, remedy, takes=1)
        make = partial(_Debounce, _time_of=quiet)
        return _thinned(source, "debounce", 0.0, on_drop, make, shown=describe(quiet))
    seconds = to_seconds(quiet, "debounce: quiet")
    return _thinned(source, "debounce", seconds, on_drop, _Debounce)


def throttle_first(source: "Flow[T]", per: Duration, *, on_drop: OnDrop[T] = None) -> "Flow[T]":
    """Pass on an element, then none for a time of *per*.

    ::

        a b c--d e|
        .throttle_first(4)
        a----d-|

    An element that arrives without demand is dropped, too. *on_drop* is called with each element
    dropped.

    Demand: unbounded upstream, from the first request on.
    Completes: when the source completes.
    Fails: when the source fails, or *on_drop* raises.
    Cancels: when the subscriber cancels.
    Holds: 1 element in delivery.
    Rules: 1.1, 2.8
    """
    seconds = to_seconds(per, "throttle_first: per")
    return _thinned(source, "throttle_first", seconds, on_drop, _ThrottleFirst, holds=1)


def throttle_latest(source: "Flow[T]", per: Duration, *, on_drop: OnDrop[T] = None) -> "Flow[T]":
    """Pass on an element, then the latest after each time of *per*.

    ::

        a b c--d e|
        .throttle_latest(4)
        a---c--(e|)

    *on_drop* is called with each element dropped.

    Demand: unbounded upstream, from the first request on; without demand, the latest element that
        is due waits.
    Completes: when the source completes, after its last element.
    Fails: when the source fails, at once, or *on_drop* raises.
    Cancels: when the subscriber cancels; the element held is discarded.
    Holds: 2 elements: one that waits, and one in delivery.
    Rules: 1.1, 2.8
    """
    seconds = to_seconds(per, "throttle_latest: per")
    return _thinned(source, "throttle_latest", seconds, on_drop, _ThrottleLatest)


def sample(
    source: "Flow[T]", every: Duration, *, emit_last: bool = False, on_drop: OnDrop[T] = None
) -> "Flow[T]":
    """Pass on the latest element *every* so often, if there is a new one.

    ::

        a b--c---|
        .sample(3)
        ---b--c-|

    The clock starts with the first request. The last element is dropped if no sample was due after
    it; with *emit_last*, it is passed on when the source completes. *on_drop* is called with each
    element dropped.

    Demand: unbounded upstream, from the first request on; without demand, the latest element that
        is due waits.
    Completes: when the source completes; with *emit_last*, after its last element.
    Fails: when the source fails, at once, or *on_drop* raises.
    Cancels: when the subscriber cancels; the element held is discarded.
    Holds: 2 elements: one that waits, and one in delivery.
    Rules: 1.1, 2.8
    """
    seconds = to_seconds(every, "sample: every")
    shown = f"{seconds:g}, emit_last=True" if emit_last else None
    make = partial(_Sample, _emits_last=emit_last)
    return _thinned(source, "sample", seconds, on_drop, make, shown=shown)


def _thinned(
    source: "Flow[T]",
    name: str,
    seconds: float,
    on_drop: OnDrop[T],
    make: "Callable[..., _Thinning]",
    holds: int = 2,
    shown: str | None = None,
) -> "Flow[T]":
    handler = drop_handler(name, on_drop)
    return from_push(
        lambda downstream: make(downstream, source, seconds, handler, DropCounter(name)),
        name=f"{name}({seconds:g})" if shown is None else f"{name}({shown})",
        holds=holds,
        checked=True,
        upstreams=(source,),
        window=1,
        one_by_one=True,
        lossy=True,
    )


class _ThinningSubscriber(InnerSubscriber[T]):
    """Its `append` drops elements, so that no batch of a synchronous source is held."""

    __slots__ = ()

    @property
    def container(self) -> None:
        return None


@dataclass(eq=False, repr=False)
class _Thinning(Coordinator[Any]):
    """Keeps the latest element; a subclass decides when it is due."""

    _source: "Flow[Any]"
    _seconds: float
    _on_drop: OnDrop[Any]
    _drops: DropCounter
    _latest: Any = field(default=_NOTHING, init=False)
    _is_due: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.timer: Timer = Timer(self, self.on_time)

    # -- what a subclass decides ------------------------------------------------------------------
    @abstractmethod
    def on_latest(self) -> None:
        """`_latest` is a new element."""

    @abstractmethod
    def on_time(self) -> None:
        """The timer has fired."""

    def superfluous(self, held: list[Any], element: Any) -> Any:
        """Put *element* to those *held*, which have arrived at once; take out the one to drop."""
        dropped, held[-1] = held[-1], element
        return dropped

    def on_end(self) -> None:
        """The source has completed: by default, the latest element is due."""
        self.pass_on()

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        inner = _ThinningSubscriber[Any](self)
        inner.append = self._receiver(inner)
        self.inners[inner] = None
        inner.request(UNBOUNDED)
        inner.subscribe(self._source)

    def on_demand(self) -> None:
        if self._is_due:
            self.pass_on()
            if self._has_source_completed:
                self.complete()

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        if elements := inner.take(len(inner.elements)):
            self.keep_latest(elements)

    def keep_latest(self, elements: list[Any]) -> None:
        """Keep the last of *elements*, which have arrived together, and drop the others."""
        *others, latest = elements
        if self._latest is not _NOTHING:
            others.insert(0, self._latest)
        self._latest, self._is_due = latest, False
        self._drop(others)
        self.on_latest()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self.on_elements(inner)
        self.on_end()
        if self._latest is _NOTHING:
            self.complete()

    def on_stop(self) -> None:
        if self._latest is not _NOTHING:
            element, self._latest = self._latest, _NOTHING
            self.discard((element,))

    @property
    def held(self) -> int:
        return super().held + (self._latest is not _NOTHING)

    @property
    def own_wait(self) -> Wait | None:
        is_early = self._latest is not _NOTHING and not self._is_due
        return Wait("time", "its time") if is_early else super().own_wait

    # -- acts -------------------------------------------------------------------------------------
    def _receiver(self, inner: InnerSubscriber[Any]) -> Callable[[Any], None]:
        """Of the elements that a source sends at once, *inner* holds those that matter."""
        held, superfluous, counts = inner.elements, self.superfluous, self._drops.by_reason

        def receive(element: Any) -> None:
            if not held:
                held.append(element)
            elif (dropped := superfluous(held, element)) is not _NOTHING:
                if self._on_drop is None:
                    counts[""] += 1
                else:
                    drop(dropped)

        def drop(element: Any) -> None:
            try:
                self._drop([element])
            except Exception as error:
                inner.cancel()
                self.submit(self.fail, error)

        return receive

    def pass_on(self) -> None:
        """Emit the latest element, as soon as there is demand."""
        self._is_due = self._latest is not _NOTHING
        if self._is_due and self.demand:
            element, self._latest, self._is_due = self._latest, _NOTHING, False
            self.emit([element])
            self.on_emitted()

    def on_emitted(self) -> None:
        """The latest element has been emitted."""

    @property
    def _has_source_completed(self) -> bool:
        """Not if it has failed: `on_inner_error` may still follow."""
        return all(inner.is_done and inner.error is None for inner in self.inners)

    def drop_latest(self) -> None:
        """Drop the latest element."""
        if self._latest is not _NOTHING:
            element, self._latest, self._is_due = self._latest, _NOTHING, False
            self._drop([element])

    def _drop(self, elements: list[Any]) -> None:
        self._drops.add("", len(elements))
        if self._on_drop is not None:
            for element in elements:
                self._on_drop(element)


@dataclass(eq=False, repr=False)
class _Debounce(_Thinning):
    """One timer, which is left alone as long as it fires no later than the element is due: when it
    fires, it computes the remaining time."""

    _time_of: Callable[[Any], Duration] | None = None
    _due: float = 0.0
    """When the latest element is to be passed on."""
    _fires: float = 0.0

    def on_latest(self) -> None:
        now = self.loop_handle.time()
        self._due = now + (self._seconds if self._time_of is None else self._time(self._time_of))
        if not self.timer.is_running or self._due < self._fires:
            self._start(now)

    def on_time(self) -> None:
        now = self.loop_handle.time()
        if self._due > now:
            self._start(now)
        else:
            self.pass_on()

    def _time(self, time_of: Callable[[Any], Duration]) -> float:
        returned: Any = time_of(self._latest)
        refuse_awaitable("debounce", time_of, returned)
        return to_seconds(returned, f"debounce: the result of {describe(time_of)}", zero=True)

    def _start(self, now: float) -> None:
        self._fires = self._due
        self.timer.start(self._due - now)


@dataclass(eq=False, repr=False)
class _ThrottleFirst(_Thinning):
    _opens: float = float("-inf")

    def superfluous(self, held: list[Any], element: Any) -> Any:
        return element

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        for element in inner.take(len(inner.elements)):
            now = self.loop_handle.time()
            if self.demand and now >= self._opens:
                self._opens = now + self._seconds
                self.emit([element])
            else:
                self._drop([element])

    def on_latest(self) -> None:
        """No element waits."""

    def on_time(self) -> None:
        """There is no timer."""


@dataclass(eq=False, repr=False)
class _ThrottleLatest(_Thinning):
    """The timer runs for a time after each emission."""

    def superfluous(self, held: list[Any], element: Any) -> Any:
        # The first one may be due at once; the last one then waits for the timer.
        is_first_due = self._latest is _NOTHING and not self.timer.is_running and self.demand
        if is_first_due and len(held) == 1:
            held.append(element)
            return _NOTHING
        dropped, held[-1] = held[-1], element
        return dropped

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        first, rest = inner.take(1), inner.take(len(inner.elements))
        if not first:
            return
        self.keep_latest(first)
        if self.is_closed:
            self.discard(rest)
        elif rest:
            self.keep_latest(rest)

    def on_latest(self) -> None:
        if not self.timer.is_running:
            self.pass_on()

    def on_time(self) -> None:
        self.pass_on()

    def on_emitted(self) -> None:
        self.timer.start(self._seconds)


@dataclass(eq=False, repr=False)
class _Sample(_Thinning):
    _emits_last: bool = False
    _ticks: int = 0
    _began: float = 0.0

    def on_start(self) -> None:
        self._began = self.loop_handle.time()
        self.on_time()
        super().on_start()

    def on_latest(self) -> None:
        """It waits for the next tick."""

    def on_time(self) -> None:
        self.pass_on()
        # Computed from the beginning, so that errors do not add up.
        elapsed = self.loop_handle.time() - self._began
        self._ticks = max(self._ticks, int(elapsed / self._seconds)) + 1
        self.timer.start(self._began + self._ticks * self._seconds - self.loop_handle.time())

    def on_end(self) -> None:
        self.pass_on() if self._emits_last else self.drop_latest()
