"""Operators that choose between sources while they run: which one to pass on, and until when."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .._core.failures import close_pulled
from .._shared.coerce import WINDOW, Moment, Source, close_unstarted, to_flow, to_flows, to_moment
from ..stage import (
    ForwardingCoordinator,
    InnerSubscriber,
    OnDiscard,
    SequentialCoordinator,
    from_pull,
    from_push,
    pull,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("race", "switch_if_empty", "take_until")

T = TypeVar("T")
U = TypeVar("U")


@overload
def race(source: Source[T], other: Source[U], /, *others: Source[U]) -> "Flow[T | U]": ...
@overload
def race(*sources: Source[T]) -> "Flow[T]": ...
def race(*sources: Source[Any]) -> "Flow[Any]":
    """Pass on the source that sends a signal first, and cancel the others.

    All sources are subscribed to with the first request, and one element is requested of each. An
    element, the end and an error all count as the first signal; of sources that have one at once,
    the first in the list wins. The first one does not wait for the cleanup of the others; what
    follows the flow, such as another run of ``repeat``, does.

    ::

        race(timer(2, "a"), timer(1, "b"))
        -(b|)

    Demand: one element of each source, then all of it to the first.
    Completes: when the first source completes.
    Fails: when the first source fails.
    Cancels: the others, when the first is known; the active ones, when the subscriber cancels.
    Holds: up to 256 elements in delivery, and one of each source.
    Rules: 1.1, 1.7, 3.12
    """
    if not sources:
        raise TypeError("race: at least one source is needed")
    flows = to_flows(sources, name="race")
    return from_push(
        lambda downstream: _Race(downstream, flows),
        name=f"race({len(flows)} sources)",
        holds=WINDOW + len(flows),
        checked=True,
        upstreams=flows,
        window=WINDOW,
    )


@dataclass(eq=False, repr=False)
class _Race(ForwardingCoordinator[Any]):
    _flows: "tuple[Flow[Any], ...]"

    def on_start(self) -> None:
        for flow in self._flows:
            inner = self.subscribe_to(flow, request=1)
            if inner.elements or inner.is_done:
                break  # the others need not even start

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        if self.upstream is None:
            self._choose(inner)
        if inner is self.upstream:
            super().on_elements(inner)

    def _choose(self, first: InnerSubscriber[Any]) -> None:
        self.upstream = first
        for inner in [inner for inner in self.inners if inner is not first]:
            self.release(inner)
        self.on_demand()


def switch_if_empty(source: "Flow[T]", other: Source[U]) -> "Flow[T | U]":
    """When the source completes without an element, continue with *other*.

    *other* begins when the source has cleaned up.

    ::

        ---|
        .switch_if_empty(["x", "y"])
        ---(xy|)

    Demand: passed through to the active source.
    Completes: when the source completes after an element, or *other* completes.
    Fails: when the active source fails.
    Cancels: the active source, when the subscriber cancels.
    Holds: nothing where both are synchronous; else up to 256 elements in delivery.
    Rules: 1.1, 1.5, 3.13
    """
    following = to_flow(other, name="switch_if_empty")
    name, upstreams = f"switch_if_empty({following.chain.trail()})", (source, following)
    if all(flow.chain.is_pullable for flow in upstreams):
        opened = partial(_or_else, *upstreams)
        return from_pull(opened, name=name, checked=True, upstreams=upstreams, gives_back=True)
    return from_push(
        lambda downstream: _SwitchIfEmpty(downstream, source, following),
        name=name,
        holds=WINDOW,
        checked=True,
        upstreams=upstreams,
        window=WINDOW,
    )


def _or_else(
    source: "Flow[Any]", other: "Flow[Any]", on_discard: OnDiscard | None = None
) -> Iterator[Any]:
    is_empty = True
    elements = pull(source, on_discard)
    try:
        for element in elements:
            is_empty = False
            yield element
            break
    except GeneratorExit:
        close_pulled(elements)
        raise
    yield from pull(other, on_discard) if is_empty else elements


@dataclass(eq=False, repr=False)
class _SwitchIfEmpty(SequentialCoordinator[Any]):
    _source: "Flow[Any]"
    _other: "Flow[Any] | None"

    def begin(self) -> None:
        self.switch(self._source)

    def next_after(self, error: BaseException | None) -> None:
        other, self._other = self._other, None
        if error is None and not self.emitted and other is not None:
            self.switch(other)
        else:
            self.end(error)


def take_until(source: "Flow[T]", moment: Moment) -> "Flow[T]":
    """Pass on elements until *moment*, then complete and cancel the source.

    *moment* is an `asyncio.Event` (until it is set), an awaitable (until it is done) or a
    publisher, an asynchronous iterable or an iterable (until it emits an element or completes). A
    bare coroutine serves one subscription. Elements that were delivered before it are not
    withdrawn, although a slow subscriber that has requested ahead may still work on them.

    ::

        a--b--c--d--|
        .take_until(timer(5))
        a--b-|

    Demand: passed through; one element is requested of a publisher.
    Completes: at *moment*, or when the source completes.
    Fails: when the source or *moment* fails.
    Cancels: the source at *moment*, *moment* at the end of the source; both when the subscriber
        cancels.
    Holds: up to 256 elements in delivery.
    Rules: 1.1, 1.7, 3.12
    """
    until = to_moment(moment, name="take_until")
    return from_push(
        lambda downstream: _TakeUntil(downstream, source, until, moment),
        name=f"take_until({until.chain.trail()})",
        holds=WINDOW,
        checked=True,
        upstreams=(source, until),
        window=WINDOW,
        one_by_one=source.chain.is_one_by_one,
        lossy=source.chain.is_lossy,
    )


@dataclass(eq=False, repr=False)
class _TakeUntil(ForwardingCoordinator[Any]):
    _source: "Flow[Any]"
    _until: "Flow[Any]"
    _given: object
    _moment: InnerSubscriber[Any] | None = field(default=None, init=False)

    def on_start(self) -> None:
        # First, so that a moment which has come already lets no element pass.
        self._moment = self.subscribe_to(self._until, request=1, kind="control")
        if self._moment.elements or self._moment.is_done:
            self.on_elements(self._moment)
        else:
            self.upstream = self.subscribe_to(self._source)

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        if inner is not self._moment:
            super().on_elements(inner)
        elif not self.is_closed:
            inner.take(len(inner.elements))  # a sign of the moment, which is not discarded
            self.end(inner.error)

    def on_stop(self) -> None:
        close_unstarted(self._given)
