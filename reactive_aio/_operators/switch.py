"""Operators that make a source of each element, and pass on one of these sources at a time."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from .._core.time_slice import TimeSlice
from .._shared.coerce import WINDOW, Source, to_flow
from ..errors import Overflow
from ..stage import (
    InnerSubscriber,
    SequentialCoordinator,
    describe,
    from_push,
    require_int,
    require_sync_callable,
)

if TYPE_CHECKING:
    from ..flow import Flow

__all__ = ("expand", "switch_map")

T = TypeVar("T")
R = TypeVar("R")

_REMEDY = "return a flow that awaits: from_awaitable, or a generator function's iterable."


def switch_map(source: "Flow[T]", mapper: Callable[[T], Source[R]]) -> "Flow[R]":
    """Make a source of each element, and pass on the latest one; the one before it is cancelled.

    *mapper* returns a flow, a publisher, an iterable or an asynchronous iterable.

    Of elements that arrive together, each makes a source, but only that of the last one passes on
    its elements: ``range(5000).switch_map(lambda n: just(n))`` emits 4999. In RxJava and Reactor,
    whose sources emit inside of ``subscribe``, it emits 5000 numbers, since each of these sources
    has emitted before it is switched off. Elements arrive together when their source emits them
    without a pause, as an iterable does; from one without an end, nothing would be passed on. What
    the subscriber has been given is not withdrawn, also where it has requested ahead.

    A new source begins when the one before has cleaned up, so that a pool of one connection is
    enough. Until then *mapper* is not called, and a newer element replaces the one that waits,
    which is discarded.

    ::

        a--b-----|
        .switch_map(lambda x: [x, x.upper()])
        (aA)--(bB)-----|

    Demand: batched (256 upstream, requested again as sources are made, without regard to demand,
        since a new element must not wait); passed through to the active source.
    Completes: when the source and the last one made have completed.
    Fails: when the source, *mapper* or the active one fails.
    Cancels: the one before, when a new element arrives; the source and the active one, when the
        subscriber cancels.
    Holds: 512 elements: up to 256 of the source, and up to 256 in delivery.
    Rules: 1.1, 1.7, 3.12
    """
    require_sync_callable("switch_map", "mapper", mapper, _REMEDY, takes=1, may_generate=True)
    return from_push(
        lambda downstream: _SwitchMap(downstream, source, mapper),
        name=f"switch_map({describe(mapper)})",
        holds=2 * WINDOW,
        checked=True,
        upstreams=(source,),
        window=WINDOW,
        lossy=None,
        contents=1,
    )


@dataclass(eq=False, repr=False)
class _SwitchMap(SequentialCoordinator[Any]):
    _source: "Flow[Any]"
    _mapper: Callable[[Any], Source[Any]]
    _outer: InnerSubscriber[Any] | None = field(default=None, init=False)
    _time_slice: TimeSlice = field(default_factory=TimeSlice, init=False)
    _is_suspended: bool = field(default=False, init=False)
    """Whether elements of the source wait for the next turn of the loop."""

    def begin(self) -> None:
        self._outer = self.subscribe_to(self._source, request=WINDOW)

    def stop_source(self) -> bool:
        return True  # the source completes, and those of its elements follow

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        if self._is_suspended:
            return  # the active source is cut by an element that has arrived
        if inner is not self._outer:
            super().on_elements(inner)
        else:
            self._time_slice.start_slice()
            self._switch_to_latest(inner)

    def _switch_to_latest(self, outer: InnerSubscriber[Any]) -> None:
        """Switch to a source of each element that has arrived, until the time slice is over."""
        while outer.elements and not self.is_closed:
            if self.is_waiting:
                self.discard(outer.take(len(outer.elements) - 1))
            self.after_cleanup(self._begin_latest, kind="work")
            missing = WINDOW - outer.outstanding
            if missing * 4 >= WINDOW:
                outer.request(missing)
            if self.is_waiting and len(outer.elements) < 2:
                return
            if outer.elements and self._time_slice.check_slice():
                self._is_suspended = True
                self.loop_handle.call_soon(self.submit, self._resume)
                return

    def _begin_latest(self) -> None:
        assert self._outer is not None
        element = self._outer.take_one()
        made = self.apply(self._source_of, element)
        self.follow(made, kind="work", work=self.work_on(element))

    def _source_of(self, element: Any) -> "Flow[Any]":
        return to_flow(self._mapper(element), name="switch_map")

    def _resume(self) -> None:
        self._is_suspended = False
        assert self._outer is not None
        self.on_elements(self._outer)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        if inner is not self._outer:
            super().on_inner_complete(inner)
            return
        self.on_elements(inner)
        if self.active is None and not inner.elements:
            self.complete()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        if inner is self._outer:
            self.fail(error)
        else:
            super().on_inner_error(inner, error)

    def next_after(self, error: BaseException | None) -> None:
        outer = self._outer
        if error is not None or outer is None or (outer.is_done and not outer.elements):
            self.end(error)
        else:
            self.release_active()


def expand(
    source: "Flow[T]", mapper: Callable[[T], Source[T]], *, capacity: int = 4096
) -> "Flow[T]":
    """Emit each element, and the elements of ``mapper(element)``, and of those, and so on.

    For trees and for pages that name the next one. Level by level: the elements of the source
    first, then those made of them. *mapper* returns a source, an empty one where nothing follows.
    It is called when the source before has cleaned up.

    ::

        (ab|)
        .expand(lambda x: [x.upper()] if x.islower() else [])
        (abAB|)

    Demand: passed through to the active source.
    Completes: when the source and everything made of it have completed.
    Fails: when one of the sources or *mapper* fails; with `Overflow` when more than *capacity*
        elements wait to be expanded.
    Cancels: the active source, when the subscriber cancels.
    Holds: *capacity* elements that wait to be expanded, and up to 256 elements in delivery.
    Rules: 1.1, 1.7, 3.3
    """
    require_sync_callable("expand", "mapper", mapper, _REMEDY, takes=1, may_generate=True)
    capacity = require_int("expand", "capacity", capacity, least=1)
    return from_push(
        lambda downstream: _Expand(downstream, source, mapper, capacity),
        name=f"expand({describe(mapper)})",
        holds=capacity + WINDOW,
        checked=True,
        upstreams=(source,),
        window=WINDOW,
        lossy=None,
    )


@dataclass(eq=False, repr=False)
class _Expand(SequentialCoordinator[Any]):
    _source: "Flow[Any]"
    _mapper: Callable[[Any], Source[Any]]
    _capacity: int
    _waiting: deque[Any] = field(default_factory=deque[Any], init=False)

    def begin(self) -> None:
        self.switch(self._source)

    def emit(self, elements: list[Any]) -> None:
        self._waiting.extend(elements)
        super().emit(elements)
        if len(self._waiting) > self._capacity:
            remedy = "allow more with capacity=..., or expand less at each level."
            self.fail(Overflow("expand", self._capacity, remedy))

    def next_after(self, error: BaseException | None) -> None:
        if error is not None or not self._waiting:
            self.end(error)
        else:
            self.after_cleanup(self._expand_next, kind="work")

    def _expand_next(self) -> None:
        made = self._mapper(self._waiting.popleft())
        self.follow(to_flow(made, name="expand"), kind="work")

    def on_stop(self) -> None:
        self._waiting.clear()
