"""Operators that combine the latest elements of several sources."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from .._core.arguments import refuse_awaitable
from .._core.upstreams.merging import combine_errors
from .._shared.coerce import WINDOW, Source, to_flow, to_flows
from ..errors import NotAnElement
from ..stage import (
    Coordinator,
    ForwardingCoordinator,
    InnerSubscriber,
    from_push,
    require_int,
    require_sync_callable,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("combine_latest", "with_latest_from")

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
R = TypeVar("R")

_NOTHING: Final = object()
_REMEDY: Final = "map_async can follow it."


@overload
def combine_latest(
    a: Source[A], b: Source[B], /, *, combine: None = ..., prefetch: int = ...
) -> "Flow[tuple[A, B]]": ...
@overload
def combine_latest(
    a: Source[A], b: Source[B], c: Source[C], /, *, combine: None = ..., prefetch: int = ...
) -> "Flow[tuple[A, B, C]]": ...
@overload
def combine_latest(
    a: Source[A],
    b: Source[B],
    c: Source[C],
    d: Source[D],
    /,
    *,
    combine: None = ...,
    prefetch: int = ...,
) -> "Flow[tuple[A, B, C, D]]": ...
@overload
def combine_latest(
    a: Source[A], b: Source[B], /, *, combine: Callable[[A, B], R], prefetch: int = ...
) -> "Flow[R]": ...
@overload
def combine_latest(
    a: Source[A],
    b: Source[B],
    c: Source[C],
    /,
    *,
    combine: Callable[[A, B, C], R],
    prefetch: int = ...,
) -> "Flow[R]": ...
@overload
def combine_latest(
    *sources: Source[A], combine: None = ..., prefetch: int = ...
) -> "Flow[tuple[A, ...]]": ...
@overload
def combine_latest(
    a: Source[Any],
    b: Source[Any],
    c: Source[Any],
    d: Source[Any],
    /,
    *others: Source[Any],
    combine: Callable[..., R],
    prefetch: int = ...,
) -> "Flow[R]": ...
@overload
def combine_latest(
    a: Source[A], /, *, combine: Callable[[A], R], prefetch: int = ...
) -> "Flow[R]": ...
def combine_latest(
    *sources: Source[Any], combine: Callable[..., Any] | None = None, prefetch: int = 256
) -> "Flow[Any]":
    """Combine the latest elements of several sources, whenever one of them has a new one.

    It emits a tuple, or ``combine(*latest)``, once every source has emitted. Every element takes
    part, in the order of arrival: without demand, each source waits after *prefetch* elements. For
    sources that cannot wait, or to see only the latest, put ``on_backpressure_latest()`` below.

    ::

        combine_latest(timer(1, "a"), interval(2).take(2))
        --(a, 0)-((a, 1)|)

    Demand: batched for each source (*prefetch*, refill at 75 % of it).
    Completes: when all sources have completed, or one has completed without an element.
    Fails: when a source fails, after the combinations of what has arrived, or *combine* raises.
    Cancels: all sources, when the subscriber cancels.
    Holds: sources × (*prefetch* + 1) elements, and up to 256 combinations in delivery.
    Rules: 1.1, 1.3, 1.7
    """
    if not sources:
        raise TypeError("combine_latest: at least one source is needed")
    if combine is not None:
        require_sync_callable("combine_latest", "combine", combine, _REMEDY, takes=len(sources))
    prefetch = require_int("combine_latest", "prefetch", prefetch, least=1)
    flows = to_flows(sources, name="combine_latest")
    return from_push(
        lambda downstream: _CombineLatest(downstream, flows, combine, prefetch),
        name=f"combine_latest({len(flows)} sources)",
        holds=len(flows) * (prefetch + 1) + WINDOW,
        checked=True,
        upstreams=flows,
        window=WINDOW,
        one_by_one=False,
        contents=None if combine else sum(flow.chain.weight for flow in flows),
    )


@dataclass(eq=False, repr=False)
class _CombineLatest(Coordinator[Any]):
    """Takes elements in the order in which they arrived."""

    _flows: "tuple[Flow[Any], ...]"
    _combine: Callable[..., Any] | None
    _prefetch: int
    _arrived: deque[tuple[InnerSubscriber[Any], int]] = field(
        default_factory=deque[tuple["InnerSubscriber[Any]", int]]
    )
    """A source, and how many elements of it have arrived one after another."""
    _counted: dict[InnerSubscriber[Any], int] = field(
        default_factory=dict["InnerSubscriber[Any]", int]
    )
    """How many of the elements of a source are in `_arrived`."""
    _errors: list[BaseException] = field(default_factory=list[BaseException])

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        self._latest: list[Any] = [_NOTHING] * len(self._flows)
        self._missing = self._live = len(self._flows)
        self._is_combined = False  # every element in `_latest` is part of a combination
        for index, flow in enumerate(self._flows):
            self.subscribe_to(flow, request=self._prefetch, tag=index)

    def on_demand(self) -> None:
        self._emit_combinations()

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        self._record(inner)
        self._emit_combinations()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._live -= 1
        self.on_elements(inner)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        """Stop all sources; the flow fails after the combinations of what they have sent."""
        self.stop_inners(self._errors)
        self.on_inner_complete(inner)

    def on_stop(self) -> None:
        self._arrived.clear()
        if self._started and not self._is_combined:
            latest, self._latest = self._latest, []
            self.discard([each for each in latest if each is not _NOTHING])

    # -- acts -------------------------------------------------------------------------------------
    def _record(self, inner: InnerSubscriber[Any]) -> None:
        new = len(inner.elements) - self._counted.get(inner, 0)
        if new:
            self._arrived.append((inner, new))
            self._counted[inner] = len(inner.elements)

    def _emit_combinations(self) -> None:
        made: list[Any] = []
        try:
            while self._arrived:
                inner, count = self._arrived.popleft()
                room = self.demand.outstanding - len(made)
                taken = min(count, room) if self._completes_combination(inner.tag) else count
                if taken < count:
                    self._arrived.appendleft((inner, count - taken))
                if not taken:
                    break
                self._counted[inner] -= taken
                self._advance(inner.tag, inner.take(taken), made)
                self._refill(inner)
        finally:
            self.emit(made)
        self._end_if_done()

    def _completes_combination(self, index: int) -> bool:
        """Whether there is an element of every source, with the next one of source *index*."""
        return self._missing <= (self._latest[index] is _NOTHING)

    def _advance(self, index: int, elements: list[Any], made: list[Any]) -> None:
        """Add the combinations with each of *elements*, if there are any, to *made*."""
        latest = self._latest
        if latest[index] is _NOTHING:
            self._missing -= 1
        if self._missing:
            latest[index] = elements[-1]
            return
        following = iter(elements)
        try:
            for element in following:
                latest[index] = element
                made.append(tuple(latest) if self._combine is None else self._combined(element))
                self._is_combined = True
        except BaseException:
            self.discard(following)
            raise

    def _refill(self, inner: InnerSubscriber[Any]) -> None:
        missing = self._prefetch - inner.outstanding
        if missing >= max(1, self._prefetch * 3 // 4):
            inner.request(missing)

    def _combined(self, element: Any) -> Any:
        assert self._combine is not None
        try:
            combination = self._combine(*self._latest)
        except BaseException:
            if self._is_combined:  # otherwise the others are discarded as well
                self.discard((element,))
            raise
        refuse_awaitable("combine_latest", self._combine, combination)
        if combination is None:
            raise NotAnElement("combine_latest produced None, which is not an element.")
        return combination

    def _end_if_done(self) -> None:
        is_impossible = self._is_impossible()
        if self.is_closed or (self._arrived and not is_impossible):
            return
        if self._errors:
            self.fail(combine_errors(self._errors))
        elif any(each.error is not None for each in self.inners):
            return  # `on_inner_error` follows
        elif not self._live or is_impossible:
            self.complete()

    def _is_impossible(self) -> bool:
        """Whether a source has ended without an element, so that there is no combination."""
        return self._missing > 0 and any(
            each.is_done and not each.elements and self._latest[each.tag] is _NOTHING
            for each in self.inners
        )


@overload
def with_latest_from(
    source: "Flow[A]", other: Source[B], *, combine: None = ...
) -> "Flow[tuple[A, B]]": ...
@overload
def with_latest_from(
    source: "Flow[A]", other: Source[B], *, combine: Callable[[A, B], R]
) -> "Flow[R]": ...
def with_latest_from(
    source: "Flow[Any]", other: Source[Any], *, combine: Callable[[Any, Any], Any] | None = None
) -> "Flow[Any]":
    """Combine each element with the latest element of *other*.

    It emits a pair, or ``combine(element, latest)``. Elements that arrive before the first one of
    *other* are left out. *other* is read as fast as it emits; only its latest element is kept. An
    element that waited for demand is combined when it is requested.

    ::

        a--b--c--|
        .with_latest_from(timer(2, "x"))
        ---(b, x)--(c, x)--|

    Demand: passed through, and one more for each element that is left out; *other* is requested
        element by element, without regard to demand.
    Completes: when the source completes.
    Fails: when the source or *other* fails, or *combine* raises.
    Cancels: *other*, when the source has ended; both, when the subscriber cancels.
    Holds: 257 elements: the latest of *other*, and up to 256 in delivery.
    Rules: 1.1, 1.3, 1.7
    """
    if combine is not None:
        require_sync_callable("with_latest_from", "combine", combine, _REMEDY, takes=2)
    latest = to_flow(other, name="with_latest_from")
    return from_push(
        lambda downstream: _WithLatestFrom(downstream, source, latest, combine),
        name=f"with_latest_from({latest.chain.trail()})",
        holds=WINDOW + 1,
        checked=True,
        upstreams=(source, latest),
        window=WINDOW,
        one_by_one=source.chain.is_one_by_one,
        lossy=source.chain.is_lossy,
        contents=None if combine else source.chain.weight + latest.chain.weight,
    )


@dataclass(eq=False, repr=False)
class _WithLatestFrom(ForwardingCoordinator[Any]):
    _source: "Flow[Any]"
    _other: "Flow[Any]"
    _combine: Callable[[Any, Any], Any] | None
    _latest: Any = _NOTHING
    _is_combined: bool = field(default=False, init=False)  # `_latest` was part of an element
    _sampled: InnerSubscriber[Any] | None = field(default=None, init=False)

    def on_start(self) -> None:
        # First, so that an element which is there already is known.
        self._sampled = self.subscribe_to(self._other, request=1)
        self._keep_latest(self._sampled)
        if not self.is_closed:
            self.upstream = self.subscribe_to(self._source)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        if inner is self._sampled:
            self._keep_latest(inner)
        else:
            super().on_elements(inner)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        if inner is self._sampled:
            self._keep_latest(inner)
        else:
            super().on_inner_complete(inner)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        if inner is self._sampled:
            self.fail(error)
        else:
            super().on_inner_error(inner, error)

    def on_stop(self) -> None:
        latest, self._latest = self._latest, _NOTHING
        if latest is not _NOTHING and not self._is_combined:
            self.discard((latest,))

    def emit(self, elements: list[Any]) -> None:
        if self._latest is _NOTHING:
            self.on_demand()  # as many again as were left out
            return
        made: list[Any] = []
        try:
            made.extend(self._combined(elements))  # it keeps those before an error
        except BaseException:
            self.discard(elements[len(made) :])
            raise
        finally:
            self._is_combined = self._is_combined or bool(made)
            super().emit(made)

    def _keep_latest(self, inner: InnerSubscriber[Any]) -> None:
        if inner.elements:
            self._latest, self._is_combined = inner.take(len(inner.elements))[-1], False
            inner.request(1)

    def _combined(self, elements: Iterable[Any]) -> Iterator[Any]:
        latest, combine = self._latest, self._combine
        for element in elements:
            if combine is None:
                yield (element, latest)
                continue
            made = combine(element, latest)
            refuse_awaitable("with_latest_from", combine, made)
            if made is None:
                raise NotAnElement("with_latest_from produced None, which is not an element.")
            yield made
