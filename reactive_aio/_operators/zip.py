"""Operators that pair the elements of several sources by position."""

from builtins import zip as zip_iterators
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..coerce import Source, to_flow
from ..stage import (
    Coordinator,
    Downstream,
    InnerSubscriber,
    from_pull,
    from_push,
    pull,
    require_demand,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("zip", "zip_with")

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")


@overload
def zip(a: Source[A], /, *, strict: bool = ..., prefetch: int = ...) -> "Flow[tuple[A]]": ...
@overload
def zip(
    a: Source[A], b: Source[B], /, *, strict: bool = ..., prefetch: int = ...
) -> "Flow[tuple[A, B]]": ...
@overload
def zip(
    a: Source[A], b: Source[B], c: Source[C], /, *, strict: bool = ..., prefetch: int = ...
) -> "Flow[tuple[A, B, C]]": ...
@overload
def zip(
    a: Source[A],
    b: Source[B],
    c: Source[C],
    d: Source[D],
    /,
    *,
    strict: bool = ...,
    prefetch: int = ...,
) -> "Flow[tuple[A, B, C, D]]": ...
@overload
def zip(
    a: Source[A],
    b: Source[B],
    c: Source[C],
    d: Source[D],
    e: Source[E],
    /,
    *,
    strict: bool = ...,
    prefetch: int = ...,
) -> "Flow[tuple[A, B, C, D, E]]": ...
@overload
def zip(*sources: Source[A], strict: bool = ..., prefetch: int = ...) -> "Flow[tuple[A, ...]]": ...
def zip(*sources: Source[Any], strict: bool = False, prefetch: int = 32) -> "Flow[Any]":
    """Pair the elements of several sources: a tuple of the first of each, then of the second.

    It ends as soon as the end of a source makes another tuple impossible, and cancels the others.
    With *strict*, sources of different length fail the flow, as with the builtin. Sources that are
    all synchronous become one iterator.

    ::

        zip([1, 2, 3], ["a", "b"])
        ((1, a)(2, b)|)

    Demand: passed through to every source, at most *prefetch* at a time.
    Completes: when a source has completed and its elements are paired.
    Fails: when a source has failed and its elements are paired; with *strict*, with a ValueError
        when one has completed before another.
    Cancels: all sources, when one has ended or the subscriber cancels.
    Holds: sources × *prefetch* elements; nothing where all sources are synchronous.
    Rules: 1.1, 1.5, 3.13
    """
    return _zip([to_flow(source, name="zip") for source in sources], strict, prefetch, "zip")


@overload
def zip_with(
    source: "Flow[A]", b: Source[B], /, *, strict: bool = ..., prefetch: int = ...
) -> "Flow[tuple[A, B]]": ...
@overload
def zip_with(
    source: "Flow[A]", b: Source[B], c: Source[C], /, *, strict: bool = ..., prefetch: int = ...
) -> "Flow[tuple[A, B, C]]": ...
@overload
def zip_with(
    source: "Flow[A]",
    b: Source[B],
    c: Source[C],
    d: Source[D],
    /,
    *,
    strict: bool = ...,
    prefetch: int = ...,
) -> "Flow[tuple[A, B, C, D]]": ...
@overload
def zip_with(
    source: "Flow[A]", *others: Source[A], strict: bool = ..., prefetch: int = ...
) -> "Flow[tuple[A, ...]]": ...
def zip_with(
    source: "Flow[Any]", *others: Source[Any], strict: bool = False, prefetch: int = 32
) -> "Flow[Any]":
    """Pair the elements of this flow with those of *others*.

    ::

        a--b--c--|
        .zip_with([1, 2])
        (a, 1)--((b, 2)|)

    Demand: passed through to every source, at most *prefetch* at a time.
    Completes: when a source has completed and its elements are paired.
    Fails: when a source has failed and its elements are paired; with *strict*, with a ValueError
        when one has completed before another.
    Cancels: all sources, when one has ended or the subscriber cancels.
    Holds: sources × *prefetch* elements; nothing where all sources are synchronous.
    Rules: 1.1, 1.5, 3.13
    """
    flows = [source, *(to_flow(other, name="zip_with") for other in others)]
    return _zip(flows, strict, prefetch, "zip_with")


def _zip(flows: "list[Flow[Any]]", strict: bool, prefetch: int, name: str) -> "Flow[Any]":
    prefetch = require_demand(prefetch)
    name, upstreams = f"{name}({len(flows)} sources)", tuple(flows)
    if all(flow.chain.is_pullable for flow in flows):
        return from_pull(
            partial(_zip_iterators, upstreams, strict), name=name, checked=True, upstreams=upstreams
        )
    return from_push(
        lambda downstream: _Zip(downstream, upstreams, strict, prefetch),
        name=name,
        holds=prefetch * len(flows),
        checked=True,
        upstreams=upstreams,
    )


def _zip_iterators(flows: "tuple[Flow[Any], ...]", strict: bool) -> Iterator[Any]:
    iterators = [pull(flow) for flow in flows]
    zipped = zip_iterators(*iterators, strict=strict)
    generators = [each for each in iterators if hasattr(each, "close")]
    return _closing_after(zipped, generators) if generators else zipped


def _closing_after(zipped: Iterator[Any], generators: list[Any]) -> Iterator[Any]:
    try:
        yield from zipped
    finally:
        for generator in generators:
            generator.close()


class _Zip(Coordinator[tuple[Any, ...]]):
    def __init__(
        self,
        downstream: Downstream[tuple[Any, ...]],
        flows: "tuple[Flow[Any], ...]",
        strict: bool,
        prefetch: int,
    ) -> None:
        super().__init__(downstream)
        self._flows = flows
        self._strict = strict
        self._prefetch = prefetch
        self._inners: list[InnerSubscriber[Any]] = []

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        self._inners = [self.subscribe_to(flow) for flow in self._flows]

    def on_demand(self) -> None:
        """Request as many of each source as there is demand for, at most *prefetch*."""
        lent = self.emitted - self.processed_count
        target = min(self.demand.outstanding, self._prefetch - lent)
        for inner in self._inners:
            if (missing := target - inner.outstanding) > 0:
                inner.request(missing)

    def on_processed(self) -> None:
        self.on_demand()

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        self._emit_pairs()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._emit_pairs()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self._emit_pairs()

    # -- acts -------------------------------------------------------------------------------------
    def _emit_pairs(self) -> None:
        ready = min(len(inner.elements) for inner in self._inners)
        if ready:
            self.emit(
                list(zip_iterators(*(inner.take(ready) for inner in self._inners), strict=True))
            )
        exhausted = [inner for inner in self._inners if inner.is_done and not inner.elements]
        if not exhausted or self.is_closed:
            return
        for inner in exhausted:
            if inner.error is not None:
                self.fail(inner.error)
                return
        if not self._strict or len(exhausted) == len(self._inners):
            self.complete()
        else:
            self._check_lengths(exhausted)

    def _check_lengths(self, exhausted: list[InnerSubscriber[Any]]) -> None:
        """Strict: the others must have ended as well, so one more of each is requested."""
        for inner in self._inners:
            if inner.elements:
                short, long = self._inners.index(exhausted[0]) + 1, self._inners.index(inner) + 1
                self.fail(ValueError(f"zip: source {short} is shorter than source {long}"))
                return
        for inner in self._inners:
            if not inner.outstanding:
                inner.request(1)
