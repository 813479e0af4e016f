"""Operators that combine several sources, in sequence or concurrently."""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..coerce import WINDOW, Source, to_flow
from ..stage import (
    Downstream,
    MergingCoordinator,
    SequentialCoordinator,
    from_pull,
    from_push,
    pull,
    require_demand,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("concat", "concat_with", "merge", "merge_with")

T = TypeVar("T")
U = TypeVar("U")


@overload
def concat(source: Source[T], /) -> "Flow[T]": ...
@overload
def concat(source: Source[T], other: Source[U], /, *others: Source[U]) -> "Flow[T | U]": ...
@overload
def concat(*sources: Source[T]) -> "Flow[T]": ...
def concat(*sources: Source[Any]) -> "Flow[Any]":
    """Emit the elements of several sources, one source after the other.

    A source is subscribed to when the previous one has completed, and receives the demand that is
    then outstanding. Sources that are all synchronous become one iterator.

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
    return _concat([to_flow(source, name="concat") for source in sources], "concat")


def concat_with(source: "Flow[T]", *others: Source[U]) -> "Flow[T | U]":
    """Emit the elements of this flow, then those of *others*, one source after the other.

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
    return _concat(
        [source, *(to_flow(other, name="concat_with") for other in others)], "concat_with"
    )


def _concat(flows: "list[Flow[Any]]", name: str) -> "Flow[Any]":
    name, upstreams = f"{name}({len(flows)} sources)", tuple(flows)
    if all(flow.chain.is_pullable for flow in flows):
        return from_pull(partial(_chained, upstreams), name=name, checked=True, upstreams=upstreams)
    return from_push(
        lambda downstream: _Concat(downstream, upstreams),
        name=name,
        holds=WINDOW,
        checked=True,
        upstreams=upstreams,
        window=WINDOW,
    )


def _chained(flows: "tuple[Flow[Any], ...]") -> Iterator[Any]:
    for flow in flows:
        yield from pull(flow)


class _Concat(SequentialCoordinator[Any]):
    def __init__(self, downstream: Downstream[Any], flows: "tuple[Flow[Any], ...]") -> None:
        super().__init__(downstream)
        self._remaining = iter(flows)

    def begin(self) -> None:
        self.next_after(None)

    def next_after(self, error: BaseException | None) -> None:
        following = next(self._remaining, None) if error is None else None
        if following is None:
            self.end(error)
        else:
            self.switch(following)


@overload
def merge(source: Source[T], /, *, prefetch: int = 256) -> "Flow[T]": ...
@overload
def merge(
    source: Source[T], other: Source[U], /, *others: Source[U], prefetch: int = 256
) -> "Flow[T | U]": ...
@overload
def merge(*sources: Source[T], prefetch: int = 256) -> "Flow[T]": ...
def merge(*sources: Source[Any], prefetch: int = 256) -> "Flow[Any]":
    """Emit the elements of several sources, each element as it arrives.

    All sources are subscribed to with the first request. Each may be up to *prefetch* elements
    ahead of the subscriber, and continues only when those have been processed: so a fast source
    cannot starve a slow one. Sources that are all synchronous become one iterator, which takes
    *prefetch* elements of each in turn.

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
    return _merge([to_flow(source, name="merge") for source in sources], prefetch, "merge")


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
    flows = [source, *(to_flow(other, name="merge_with") for other in others)]
    return _merge(flows, prefetch, "merge_with")


def _merge(flows: "list[Flow[Any]]", prefetch: int, name: str) -> "Flow[Any]":
    prefetch = require_demand(prefetch)
    name, upstreams = f"{name}({len(flows)} sources)", tuple(flows)
    if all(flow.chain.is_pullable for flow in flows):
        return from_pull(
            partial(_interleaved, upstreams, prefetch), name=name, checked=True, upstreams=upstreams
        )
    return from_push(
        lambda downstream: _Merge(downstream, upstreams, prefetch),
        name=name,
        holds=prefetch * len(flows),
        checked=True,
        upstreams=upstreams,
    )


def _interleaved(flows: "tuple[Flow[Any], ...]", size: int) -> Iterator[Any]:
    iterators = [pull(flow) for flow in flows]
    try:
        while iterators:
            for iterator in tuple(iterators):
                missing = size
                for element in islice(iterator, size):
                    missing -= 1
                    yield element
                if missing:
                    iterators.remove(iterator)
    finally:
        unfinished: list[Any] = [*iterators]
        for iterator in unfinished:
            if hasattr(iterator, "close"):
                iterator.close()


class _Merge(MergingCoordinator[Any]):
    def __init__(
        self, downstream: Downstream[Any], flows: "tuple[Flow[Any], ...]", prefetch: int
    ) -> None:
        super().__init__(downstream, prefetch)
        self._flows = flows

    def on_start(self) -> None:
        for flow in self._flows:
            self.join(flow)
