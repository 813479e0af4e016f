"""Operators that combine several sources: in sequence, concurrently, or by position."""

from builtins import range as range_of, zip as zip_iterators
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from .._core.arguments import require_number
from .._core.failures import close_pulled
from .._core.upstreams.merging import combine_errors
from .._shared.coerce import WINDOW, Source, to_flow, to_flows
from ..stage import (
    UNBOUNDED,
    Coordinator,
    Downstream,
    FlowSubscription,
    ForwardingCoordinator,
    InlineStage,
    InnerSubscriber,
    MergingCoordinator,
    OnDiscard,
    SequentialCoordinator,
    describe,
    from_pull,
    from_push,
    pull,
    require_int,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("concat", "concat_with", "merge", "merge_with", "then", "zip", "zip_with")

T = TypeVar("T")
U = TypeVar("U")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")

_Flows = tuple["Flow[Any]", ...]
_IGNORE = InlineStage("ignore", each="drop")


def _combined(
    sources: Iterable[Source[Any]],
    name: str,
    iterate: "Callable[..., Iterator[Any]]",
    open: "Callable[[Downstream[Any], _Flows], FlowSubscription]",
    *,
    prefetch: int = 0,
    window: int = 0,
    one_by_one: bool | None = None,
    makes_tuples: bool = False,
) -> "Flow[Any]":
    """Make one iterator of sources that are all synchronous, else open a coordinator of them."""
    flows = to_flows(sources, name=name)
    name = f"{name}({len(flows)} sources)"
    contents = sum(flow.chain.weight for flow in flows) if makes_tuples else None
    if all(flow.chain.is_pullable for flow in flows):
        return from_pull(
            partial(iterate, flows),
            name=name,
            checked=True,
            upstreams=flows,
            contents=contents,
            gives_back=True,
        )
    return from_push(
        lambda downstream: open(downstream, flows),
        name=name,
        holds=window or prefetch * len(flows),
        checked=True,
        upstreams=flows,
        window=window,
        one_by_one=one_by_one,
        contents=contents,
    )


@overload
def concat(source: Source[T], /) -> "Flow[T]": ...
@overload
def concat(source: Source[T], other: Source[U], /, *others: Source[U]) -> "Flow[T | U]": ...
@overload
def concat(*sources: Source[T]) -> "Flow[T]": ...
def concat(*sources: Source[Any]) -> "Flow[Any]":
    """Emit the elements of several sources, one source after the other.

    A source is subscribed to when the previous one has completed and cleaned up, and receives the
    demand that is then outstanding. Sources that are all synchronous become one iterator.

    ::

        concat([1, 2], [3])
        (123|)

    Demand: passed through to the active source; the rest is carried over to the next one.
    Completes: when the last source completes.
    Fails: when the active source fails; the later ones are not subscribed to.
    Cancels: the active source, when the subscriber cancels.
    Holds: nothing where all sources are synchronous; else up to 256 elements in delivery.
    Rules: 1.1, 1.5, 3.13
    """
    return _concat(sources, "concat")


def concat_with(source: "Flow[T]", *others: Source[U]) -> "Flow[T | U]":
    """Emit the elements of this flow, then those of *others*, one source after the other.

    A source is subscribed to when the previous one has completed and cleaned up.

    ::

        a--b--|
        .concat_with(["x", "y"])
        a--b--(xy|)

    Demand: passed through to the active source; the rest is carried over to the next one.
    Completes: when the last source completes.
    Fails: when the active source fails; the later ones are not subscribed to.
    Cancels: the active source, when the subscriber cancels.
    Holds: nothing where all sources are synchronous; else up to 256 elements in delivery.
    Rules: 1.1, 1.5, 3.13
    """
    return _concat((source, *others), "concat_with")


def _concat(sources: Iterable[Source[Any]], name: str) -> "Flow[Any]":
    return _combined(sources, name, _chained, _Concat, window=WINDOW)


def _chained(flows: _Flows, on_discard: OnDiscard | None = None) -> Iterator[Any]:
    for flow in flows:
        yield from pull(flow, on_discard)


@dataclass(eq=False, repr=False)
class _Concat(SequentialCoordinator[Any]):
    _flows: _Flows

    def begin(self) -> None:
        self._remaining = iter(self._flows)
        self.next_after(None)

    def next_after(self, error: BaseException | None) -> None:
        following = next(self._remaining, None) if error is None else None
        if following is None:
            self.end(error)
        else:
            self.switch(following)


Priority = Sequence[float] | None


@overload
def merge(source: Source[T], /, *, prefetch: int = ..., priority: Priority = ...) -> "Flow[T]": ...
@overload
def merge(
    source: Source[T],
    other: Source[U],
    /,
    *others: Source[U],
    prefetch: int = ...,
    priority: Priority = ...,
) -> "Flow[T | U]": ...
@overload
def merge(*sources: Source[T], prefetch: int = ..., priority: Priority = ...) -> "Flow[T]": ...
def merge(*sources: Source[Any], prefetch: int = 256, priority: Priority = None) -> "Flow[Any]":
    """Emit the elements of several sources, each element as it arrives.

    All sources are subscribed to with the first request. Each may be up to *prefetch* elements
    ahead of the subscriber, and continues only when those have been processed: so a fast source
    cannot starve a slow one. Sources that are all synchronous become one iterator, which takes
    *prefetch* elements of each in turn.

    With a *priority*, a number for each source, elements that wait are emitted in its order: those
    of the source with the highest number first. Others may then wait for as long as it has any.

    ::

        merge([1, 2], [3])
        (123|)

    Demand: batched for each source (*prefetch*, refill at 75 % of it).
    Completes: when all sources have completed.
    Fails: when a source fails, after the elements that have arrived; the others are cancelled.
        Sources that fail at the same moment: with an ExceptionGroup.
    Cancels: all sources, when the subscriber cancels; the elements held are discarded.
    Holds: sources × *prefetch* elements; nothing where all sources are synchronous.
    Rules: 1.1, 1.3, 1.7
    """
    if priority is not None:
        return _prioritized(sources, prefetch, priority)
    return _merge(sources, prefetch, "merge")


def merge_with(source: "Flow[T]", *others: Source[U], prefetch: int = 256) -> "Flow[T | U]":
    """Emit the elements of this flow and of *others*, each element as it arrives.

    ::

        a--b-----|
        .merge_with([1, 2])
        (12a)--b-----|

    Demand: batched for each source (*prefetch*, refill at 75 % of it).
    Completes: when all sources have completed.
    Fails: when a source fails, after the elements that have arrived; the others are cancelled.
        Sources that fail at the same moment: with an ExceptionGroup.
    Cancels: all sources, when the subscriber cancels; the elements held are discarded.
    Holds: sources × *prefetch* elements; nothing where all sources are synchronous.
    Rules: 1.1, 1.3, 1.7
    """
    return _merge((source, *others), prefetch, "merge_with")


def _merge(sources: Iterable[Source[Any]], prefetch: int, name: str) -> "Flow[Any]":
    return _combined(
        sources,
        name,
        partial(_interleave, size=prefetch),
        lambda downstream, flows: _Merge(downstream, prefetch, flows),
        prefetch=require_int(name, "prefetch", prefetch, least=1),
        one_by_one=False,
    )


def _prioritized(
    sources: tuple[Source[Any], ...], prefetch: int, priority: Sequence[float]
) -> "Flow[Any]":
    if not isinstance(cast("object", priority), Sequence):
        raise TypeError(f"merge: priority must be a list of numbers, not {priority!r}")
    if len(priority) != len(sources):
        counts = f"{len(sources)}, not {len(priority)}"
        raise ValueError(f"merge: priority must have a number for each source: {counts}")
    numbers = [require_number("merge: a priority", each) for each in priority]
    order = sorted(range_of(len(sources)), key=lambda i: -numbers[i])
    return _combined(
        [sources[i] for i in order],
        "merge",
        _chained,
        lambda downstream, flows: _PrioritizedMerge(downstream, flows, prefetch),
        prefetch=require_int("merge", "prefetch", prefetch, least=1),
        one_by_one=False,
    )


@dataclass(eq=False, repr=False)
class _PrioritizedMerge(Coordinator[Any]):
    """Takes what waits in the order of its sources, which is that of their priority."""

    _flows: _Flows
    _prefetch: int
    _errors: list[BaseException] = field(default_factory=list[BaseException], init=False)

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        self._live = len(self._flows)
        self._order: list[InnerSubscriber[Any]] = [
            self.subscribe_to(flow, request=self._prefetch) for flow in self._flows
        ]

    def on_demand(self) -> None:
        self._emit_first()

    def on_processed(self) -> None:
        """Request again what has been taken and processed, once that is a part of the prefetch."""
        mark = max(1, self._prefetch * 3 // 4)
        for inner in self._order:
            if (missing := self._prefetch - inner.outstanding) >= mark:
                inner.request(missing)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        self._emit_first()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._live -= 1
        self._emit_first()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        """Stop all sources; the flow fails after the elements that they have sent."""
        self.stop_inners(self._errors)
        self._emit_first()

    # -- acts -------------------------------------------------------------------------------------
    def _emit_first(self) -> None:
        if self.processed_count == self.emitted:
            self.on_processed()
        chunk: list[Any] = []
        for inner in self._order:
            if inner.elements:
                chunk += inner.take(self.demand.outstanding - len(chunk))
        self.emit(chunk)
        if self.is_closed or any(inner.elements for inner in self._order):
            return
        if self._errors:
            self.fail(combine_errors(self._errors))
        elif not self._live:
            self.complete()


def _interleave(flows: _Flows, on_discard: OnDiscard | None = None, *, size: int) -> Iterator[Any]:
    iterators = [pull(flow, on_discard) for flow in flows]
    following: list[Iterator[Any]] = []
    is_end = True
    try:
        while iterators:
            for iterator in iterators:
                missing = size
                for element in islice(iterator, size):
                    missing -= 1
                    yield element
                if not missing:
                    following.append(iterator)
            iterators, following = following, []
    except GeneratorExit:
        is_end = False
        raise
    finally:
        close_pulled(*iterators, *following, is_end=is_end)


@dataclass(eq=False, repr=False)
class _Merge(MergingCoordinator[Any]):
    passes_each = True
    _flows: _Flows

    def on_start(self) -> None:
        for flow in self._flows:
            self.join(flow)


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
def zip(*sources: Source[Any], strict: bool = False, prefetch: int = 256) -> "Flow[Any]":
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
    return _zip(sources, strict, prefetch, "zip")


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
    source: "Flow[Any]", *others: Source[Any], strict: bool = False, prefetch: int = 256
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
    return _zip((source, *others), strict, prefetch, "zip_with")


def _zip(sources: Iterable[Source[Any]], strict: bool, prefetch: int, name: str) -> "Flow[Any]":
    return _combined(
        sources,
        name,
        partial(_zipped, strict=strict),
        lambda downstream, flows: _Zip(downstream, flows, strict, prefetch),
        prefetch=require_int(name, "prefetch", prefetch, least=1),
        makes_tuples=True,
    )


def _zipped(flows: _Flows, on_discard: OnDiscard | None = None, *, strict: bool) -> Iterator[Any]:
    iterators = [pull(flow, on_discard) for flow in flows]
    if on_discard is not None:
        return _closing_after(_zip_all(iterators, strict, on_discard), iterators)
    zipped = zip_iterators(*iterators, strict=strict)
    has_generators = any(hasattr(each, "close") for each in iterators)
    return _closing_after(zipped, iterators) if has_generators else zipped


def _zip_all(iterators: list[Any], strict: bool, on_discard: OnDiscard) -> Iterator[Any]:
    """The same; the elements taken for a tuple that could not be completed are discarded."""
    taken: list[Any] = []

    def note(element: T) -> T:
        taken.append(element)
        return element

    try:
        for each in zip_iterators(*(map(note, each) for each in iterators), strict=strict):
            taken.clear()
            yield each
    finally:
        for element in taken:
            on_discard(element)


def _closing_after(zipped: Iterator[Any], iterators: list[Iterator[Any]]) -> Iterator[Any]:
    is_end = True
    try:
        yield from zipped
    except GeneratorExit:
        is_end = False
        raise
    finally:
        close_pulled(*iterators, is_end=is_end)


@dataclass(eq=False, repr=False)
class _Zip(Coordinator[tuple[Any, ...]]):
    _flows: _Flows
    _strict: bool
    _prefetch: int

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        self._inners: list[InnerSubscriber[Any]] = [self.subscribe_to(flow) for flow in self._flows]

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


def then(source: "Flow[object]", successor: Source[U]) -> "Flow[U]":
    """Discard the elements; when the flow has completed, continue with *successor*.

    ::

        a--b--c--|
        .then(just("z"))
        ---------(z|)

    *successor* is a flow, a publisher, an iterable or an asynchronous iterable, which is subscribed
    to only then, when this flow has cleaned up. To wait for the end without a successor, use
    ``await flow.run()``.

    Demand: unbounded upstream, with the first request; then passed through to *successor*, at
        most 256 at a time.
    Completes: when *successor* completes.
    Fails: when the source fails (then *successor* is not subscribed to), or *successor* does.
    Cancels: the active one of the two.
    Holds: 256 elements, which were requested and wait for a slow subscriber.
    Rules: 1.1, 1.4
    """
    following = to_flow(successor, name="then")
    return from_push(
        lambda downstream: _Then(downstream, source, following),
        name=f"then({describe(successor)})",
        holds=WINDOW,
        checked=True,
        upstreams=(source, following),
        window=WINDOW,
    )


@dataclass(eq=False, repr=False)
class _Then(ForwardingCoordinator[U]):
    """Runs the source to its end, and forwards the successor."""

    _source: "Flow[object]"
    _following: "Flow[U]"

    def on_start(self) -> None:
        self.subscribe_to(self._source.via(_IGNORE), request=UNBOUNDED)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        if inner is self.upstream:
            super().on_inner_complete(inner)
        else:
            self.release(inner, partial(self.attach, self._following))

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        if inner is self.upstream:
            super().on_inner_error(inner, error)
        else:
            self.fail(error)
