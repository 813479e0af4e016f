"""Operators that map each element to a source, and merge those sources."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from types import GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .._core.arguments import explain_await
from .._core.compiler.chain import Flattening, is_spent
from .._core.compiler.discards import rest_of
from .._core.run_control import NestedFlow, Work, for_upstream
from .._core.time_slice import TimeSlice
from .._core.upstreams.await_pool import AwaitPool
from .._core.upstreams.splitting import call_with
from .._shared.coerce import Source, to_flow
from ..errors import NotAnElement
from ..stage import (
    UNBOUNDED,
    InnerSubscriber,
    MergingCoordinator,
    OnDiscard,
    describe,
    from_pull,
    from_push,
    pull,
    require_int,
    require_sync_callable,
)

if TYPE_CHECKING:
    from .._core.loop import Future
    from .._core.observation.awaited import Wait
    from ..flow import Flow

__all__ = ("concat_map", "flat_map")

T = TypeVar("T")
R = TypeVar("R")

_SIZED_ITERABLES: frozenset[type[Any]] = frozenset((list, tuple, range, set, frozenset, dict))
_BUILTIN_ITERABLES = _SIZED_ITERABLES | {GeneratorType}


def flat_map(
    source: "Flow[T]",
    mapper: Callable[[T], Source[R]],
    *,
    concurrency: int = 16,
    prefetch: int = 128,
) -> "Flow[R]":
    """Make a source of each element, and emit the elements of all of them as they arrive.

    *mapper* returns a flow, a publisher, an iterable or an asynchronous iterable. At most
    *concurrency* of them are active at a time, and each may be up to *prefetch* elements ahead of
    the subscriber. A synchronous one is pulled by demand, to its end, before the next is made;
    ``concurrency=1`` keeps the order of the elements in every case. One that has ended is active
    until it has cleaned up: *concurrency* connections are enough.

    ::

        a--b--c--|
        .flat_map(lambda x: [x, x.upper()])
        (aA)--(bB)--(cC)--|

    Demand: batched (*concurrency* upstream; *prefetch*, refill at 75 % of it, for each inner one).
    Completes: when the source and all inner ones have completed.
    Fails: when the source, *mapper* or an inner one fails, after the elements that have arrived;
        the others are cancelled. Sources that fail at the same moment: with an ExceptionGroup.
    Cancels: the source and all inner ones, when the subscriber cancels.
    Holds: *concurrency* × *prefetch* elements, and *concurrency* of the source.
    Rules: 1.1, 1.3, 1.7
    """
    require_int("flat_map", "concurrency", concurrency, least=1)
    return _mapped(source, mapper, concurrency, prefetch, "flat_map")


def concat_map(
    source: "Flow[T]", mapper: Callable[[T], Source[R]], *, prefetch: int = 128
) -> "Flow[R]":
    """Make a source of each element, and emit their elements, one source after the other.

    *mapper* returns a flow, a publisher, an iterable or an asynchronous iterable. The next source
    is made when the one before it has completed and cleaned up.

    ::

        a--b--c--|
        .concat_map(lambda x: [x, x.upper()])
        (aA)--(bB)--(cC)--|

    Demand: one element at a time upstream; batched for each inner source (*prefetch*, refill at
        75 % of it).
    Completes: when the source and the last inner one have completed.
    Fails: when the source, *mapper* or the active inner one fails, after the elements that have
        arrived.
    Cancels: the source and the active inner one, when the subscriber cancels.
    Holds: *prefetch* elements, and 1 of the source.
    Rules: 1.1, 1.3, 1.7
    """
    return _mapped(source, mapper, 1, prefetch, "concat_map")


def _mapped(
    source: "Flow[Any]",
    mapper: Callable[[Any], Source[Any]],
    concurrency: int,
    prefetch: int,
    name: str,
) -> "Flow[Any]":
    remedy = "use map_async, or from_awaitable in a plain function."
    require_sync_callable(name, "mapper", mapper, remedy, takes=1, may_generate=True)
    require_int(name, "prefetch", prefetch, least=1)

    def push_rest(downstream: Any, elements: Iterator[Any], first: Any, result: Any) -> "_FlatMap":
        """Go on with *result*, which *mapper* made of *first*, and with the other *elements*."""
        rest = from_pull(
            lambda: _prepended(first, elements),
            name=source.chain.trail,
            one_by_one=source.chain.is_one_by_one,
            continues=True,
        )
        coordinator = _FlatMap(downstream, prefetch, rest, mapper, concurrency, name)
        coordinator.begin_with(result)
        return coordinator

    flattening = None
    if source.chain.is_pullable:
        flattening = Flattening(partial(pull, source), mapper, _SIZED_ITERABLES, push_rest)
    shown = f", concurrency={concurrency}" if name == "flat_map" else ""
    return from_push(
        lambda downstream: _FlatMap(downstream, prefetch, source, mapper, concurrency, name),
        name=f"{name}({describe(mapper)}{shown})",
        holds=concurrency * (prefetch + 1),
        upstreams=(source,),
        one_by_one=False,
        contents=1,
        flattening=flattening,
    )


def _prepended(first: T, elements: Iterator[T]) -> Iterator[T]:
    try:
        yield first
        yield from elements
    finally:
        if isinstance(elements, GeneratorType):
            elements.close()


@dataclass(eq=False, repr=False)
class _FlatMap(MergingCoordinator[Any]):
    """Subscribes to inner sources that push, and pulls the synchronous ones, one at a time."""

    _source: "Flow[Any]"
    _mapper: Callable[[Any], Source[Any]]
    _concurrency: int
    _name: str
    _inner: Iterator[Any] | None = None
    """The synchronous source that is being pulled."""
    _pulled: Iterator[Any] | None = None
    """The elements of `_inner`, and of the synchronous sources that follow it directly."""
    _work: Work | None = None
    """The element that `_inner` was made of."""
    _pending: "tuple[Flow[Any], Work | None] | None" = None
    """A source that pushes and has not been subscribed to yet, and the element that it was made
    of."""
    _chunk: list[Any] = field(default_factory=list[Any])
    """The elements that are being pulled."""
    _opened_at: int = 0
    """How many elements there were in `_chunk` when `_inner` was first pulled from."""
    _reserved: int = 0  # elements that are being pulled
    _pull_first: bool = False
    _is_emit_scheduled: bool = False
    _opened: int = 0
    _batch: int = 8
    _time_slice: TimeSlice = field(default_factory=TimeSlice)

    def __post_init__(self) -> None:
        super().__post_init__()
        # The key for pulled elements in the accounts; `is_done`, as it has no upstream.
        self._account: InnerSubscriber[Any] = InnerSubscriber(self)
        self._account.is_done = True
        # The same for the results of awaitables, which it holds.
        self._awaited: InnerSubscriber[Any] = InnerSubscriber(self, tag=0)
        self._awaited.is_done = True
        self._awaited.outstanding = UNBOUNDED
        self._pool: AwaitPool[tuple[Flow[Any], Work | None]] = AwaitPool(
            self.loop_handle,
            lambda: f"a task of {self._source.chain.trail()} → {self._name}",
            self._on_result,
            partial(self.submit, self._on_await_failed),
            self.report_cleanup,
            self._on_late_result,
            self._on_await_cancelled,
        )

    def begin_with(self, result: Any) -> None:
        """The mapper was called for the first element, and has returned *result*."""
        mapper = self._mapper

        def first(_: Any) -> Any:
            self._mapper = mapper
            return result

        self._mapper = first

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        self._outer: InnerSubscriber[Any] = self.subscribe_to(self._source)

    def on_arrival(self, inner: InnerSubscriber[Any]) -> None:
        if inner is self._outer:
            self._schedule_emit()
        else:
            super().on_arrival(inner)

    def on_processed(self) -> None:
        self.refill()
        outer = self._outer
        has_next = bool(outer.elements) or not (outer.outstanding or outer.is_done)
        if has_next or self._pulled is not None or self._pending is not None:
            self.emit_waiting()  # one of them may have waited for room

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        if inner is self._outer:
            self.emit_waiting()
        else:
            super().on_inner_complete(inner)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        if inner is self._outer:
            self.emit_waiting()  # the failure follows the elements sent before it
        else:
            super().on_inner_error(inner, error)

    def _on_result(self, result: Any) -> None:
        """An awaitable has a result: emit it at the end of this turn, and start the next one.

        The pool calls this between decisions; it changes only what the next one reads.
        """
        awaited = self._awaited
        self.live_count -= 1
        if result is None:
            error = NotAnElement("from_awaitable produced None, which is not an element")
            self.submit(self.stop_all, error)
        else:
            awaited.elements.append(result)  # recorded with the others of this turn
            self.submit(self._open_next)
        if not awaited.is_notified:
            super().on_arrival(awaited)

    def _on_await_failed(self, error: BaseException, key: "tuple[Flow[Any], Work | None]") -> None:
        self.live_count -= 1
        chain = key[0].chain
        if isinstance(error, TypeError) and chain.awaitable is not None:
            error = explain_await("from_awaitable", "source", chain.awaitable, error)
        chain.annotate(error)
        self._on_await_cancelled(key)
        self.stop_all(error)
        self.emit_waiting()

    def _on_await_cancelled(self, key: "tuple[Flow[Any], Work | None]") -> None:
        if (work := key[1]) is not None:
            work.cut()

    def _on_late_result(self, result: Any) -> None:
        """An awaitable has a result, and the flow has ended."""
        if result is not None:
            self.discard((result,))

    def on_stop(self) -> None:
        self._pool.cancel()
        self._awaited.discard_held()
        self._close_inner()

    @property
    def calls(self) -> int:
        return self._pool.running

    def call_waits(self) -> "Iterator[Wait]":
        return self._pool.waits()

    @property
    def tasks(self) -> "Sequence[Future[Any]]":
        return [*super().tasks, *self._pool.tasks]

    # -- acts -------------------------------------------------------------------------------------
    def _schedule_emit(self) -> None:
        """Schedule `emit_waiting` after the current work."""
        if not self._is_emit_scheduled:
            self._is_emit_scheduled = True
            self.submit(self.emit_waiting)

    def emit_waiting(self) -> None:
        self._is_emit_scheduled = False
        self._time_slice.start_slice()
        self.record(self._awaited)
        self._open_next()
        if self._pulled is not None or self.accounting.waiting:
            self.emit(self._next_chunk())
        else:
            self._go_on_soon()
        self.finish()

    def _next_chunk(self) -> list[Any]:
        """Pull elements, and take those that wait, within demand."""
        room = self.demand.outstanding
        # The order alternates, so that neither kind can starve the other.
        self._pull_first = not self._pull_first
        chunk = [] if self._pull_first else self.take_waiting(room)
        try:
            self._pull(chunk, room - len(chunk))
        except BaseException:  # the program stops
            self.discard(chunk)
            raise
        if self._pull_first:
            chunk += self.take_waiting(room - len(chunk))
        return chunk

    def stop_all(self, error: BaseException) -> None:
        self._outer.discard_held()
        self._pool.cancel()
        self.live_count -= self._pool.running
        super().stop_all(error)
        self._close_inner()

    def record(self, inner: InnerSubscriber[Any]) -> None:
        if inner is not self._outer:
            super().record(inner)

    def finish(self) -> None:
        outer = self._outer
        if self._pulled is not None and is_spent(self._inner):
            self._note_all_pulled()
        if self._pulled is not None or self._pending is not None:
            return
        if outer.elements or not outer.is_done:
            return
        if outer.error is not None and not self.errors:
            self.stop_all(outer.error)
        super().finish()

    def _open(self) -> Iterator[Any] | None:
        """Make sources of the elements received; return the first one to pull."""
        outer = self._outer
        if self._pending is None and not outer.elements and (outer.outstanding or outer.is_done):
            return None
        free = self._free_count()
        while not self.errors and not self.is_closed:
            if self._pending is not None:
                if not self._admit(*self._pending):
                    break
                free = self._free_count()
            if not outer.elements and not outer.outstanding and free > 0:
                outer.is_notified = True  # what arrives at once is read here
                outer.request(free if self._source.chain.is_one_by_one else self._concurrency)
                outer.is_notified = False
            if free <= 0 or not outer.elements or self._check_slice():
                break
            try:
                element = outer.take_one()
                inner: Any = self.apply(self._source_of, element)
                work = self.work_on(element)
                if inner.__class__ in _BUILTIN_ITERABLES:
                    return self._opened_to_pull(cast("Iterator[Any]", iter(inner)), work)
                flow: Flow[Any] = inner
                if (awaitable := flow.chain.awaitable) is not None:
                    self.live_count += 1
                    if isinstance(element, NestedFlow):
                        awaitable = partial(call_with, element, awaitable)
                    self._pool.start(awaitable, (flow, work))
                    free -= 1
                    if free <= 0:
                        break
                elif flow.chain.is_pullable:
                    return self._opened_to_pull(pull(flow, self._discards_of(work)), work)
                else:
                    self._pending = flow, work
            except BaseException as error:
                self.stop_all(self.failure_of(error))
        return None

    def _source_of(self, element: Any) -> Any:
        made = self._mapper(element)
        return made if made.__class__ in _BUILTIN_ITERABLES else to_flow(made, name=self._name)

    def _discards_of(self, work: Work | None) -> OnDiscard | None:
        return for_upstream(self.on_discard, "work") if work is None else work.on_discard

    def _opened_to_pull(self, inner: Iterator[Any], work: Work | None) -> Iterator[Any]:
        # `extend` appends each element before it asks for the next one.
        self._note_pulled()
        self._inner, self._work, self._opened_at = inner, work, len(self._chunk)
        return inner

    def _note_pulled(self) -> None:
        """Elements of the source that is being pulled stand for the one it was made of."""
        if self._work is not None and len(self._chunk) > self._opened_at:
            self._work.is_replaced = True

    def _note_all_pulled(self) -> None:
        """The source that was being pulled has ended."""
        self._pulled = self._work = None

    def _pull(self, chunk: list[Any], at_most: int) -> None:
        """Append up to *at_most* elements of synchronous sources to *chunk*, within the bound."""
        self._chunk = chunk
        self._opened_at = began = len(chunk)
        self._reserved = min(at_most, self._spare())
        end = began + self._reserved
        while self._ready() and end > (before := len(chunk)) and not self._time_slice.is_slice_over:
            piece = min(end - before, self._batch)
            try:
                # `extend` keeps the elements before an error.
                chunk.extend(islice(self._pulled or (), piece))
            except BaseException as error:
                self.stop_all(self.failure_of(error))
            if len(chunk) - before < piece:
                self._note_all_pulled()
            self._batch = self._time_slice.next_batch_size(self._batch)
        self._reserved = 0
        self._note_pulled()
        self._chunk, self._opened_at = [], 0
        if pulled := len(chunk) - began:
            self.accounting.add_taken(self._account, pulled)
        self._go_on_soon()

    def _go_on_soon(self) -> None:
        """Schedule what the time slice, or the room that has become free, leaves for later."""
        if self._time_slice.is_slice_over or (
            self._pending is not None and self._spare() >= self.prefetch
        ):
            self._schedule_emit()  # other work of the executor runs in between

    def _active_count(self) -> int:
        """How many of the sources that push are active."""
        return len(self.inners) - (self._outer in self.inners) + self._pool.running

    def _free_count(self) -> int:
        """How many more sources may be active; results that wait take places as well."""
        limit, awaited, running = self._concurrency, self._awaited, self._pool.running
        new: int = len(awaited.elements) - awaited.tag
        room = 2 * limit - running - self.accounting.held_by(awaited) - new
        active = len(self.inners) - (self._outer in self.inners) + len(self.cleanups)
        free = limit - running - active
        return free if free < room else room

    def _spare(self) -> int:
        """How many more elements may be pulled, besides those that active sources may send."""
        allowed = (self._concurrency - self._active_count()) * self.prefetch
        return allowed - self.accounting.held_by(self._account) - self._reserved

    def _admit(self, flow: "Flow[Any]", work: Work | None) -> bool:
        """Subscribe to a source that pushes, unless pulled elements use up its share."""
        if self._spare() < self.prefetch:
            return False
        self._pending = None
        self.join(flow, kind="work", work=work)
        return True

    def _open_next(self) -> None:
        """Open sources, up to one to pull from, unless there is one."""
        if self._pulled is None and (first := self._open()) is not None:
            self._pulled = chain(first, chain.from_iterable(iter(self._open, None)))

    def _ready(self) -> bool:
        """Whether there is a source to pull from; opens the next one."""
        self._open_next()
        return self._pulled is not None

    def release_if_empty(self, inner: InnerSubscriber[Any]) -> None:
        """Its place is free when it has cleaned up."""
        if not inner.elements and not self.accounting.held_by(inner):
            self.accounting.forget(inner)
            self.release(inner) if inner.is_clean else self.release(inner, self.emit_waiting)
            inner.finish()

    def _check_slice(self) -> bool:
        """Whether the time slice is over; `_pull` cannot check it for sources without elements."""
        self._opened += 1
        if not self._opened & 63:
            self._time_slice.check_slice()
        return self._time_slice.is_slice_over

    def _close_inner(self) -> None:
        inner: Any = self._inner
        self._note_pulled()
        works = [self._work, *(() if self._pending is None else self._pending[1:])]
        self._pulled = self._inner = self._pending = self._work = None
        if works[0] is not None and works[0].is_replaced:
            self.discard(rest_of(inner))
        if hasattr(inner, "close"):
            try:
                inner.close()
            except BaseException as error:
                failure = self.failure_of(error)
                self.report_cleanup(f"the cleanup of a source of {self._name} raised", failure)
        for work in works:
            if work is not None:
                work.cut()
