"""Operators that make a flow hot: its subscribers share one subscription to the source."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..errors import Interrupted, Overflow
from ..stage import (
    BoundedQueue,
    Demand,
    Downstream,
    DropCounter,
    Duration,
    FlowSubscription,
    InnerSubscriber,
    LoopHandle,
    OutputBuffer,
    OverflowPolicy,
    RecentElements,
    SharedRoom,
    from_push,
    require_int,
    require_policy,
    run_now,
    running_handle,
    to_seconds,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._core.loop import TimerHandle
    from ..flow import Flow

__all__ = ("cache", "replay", "share")

T = TypeVar("T")

_CAPACITY = 256


def share(
    source: "Flow[T]",
    *,
    replay: int = 0,
    grace: Duration = 0.0,
    overflow: OverflowPolicy = "wait",
    capacity: int = _CAPACITY,
) -> "Flow[T]":
    """Share one subscription to the source among all subscribers.

    The source is subscribed to with the first request of the first subscriber, and cancelled
    *grace* seconds after the last one has left; in these seconds, nothing is requested of it. The
    next subscriber then starts it afresh. A later subscriber first receives the last *replay*
    elements.

    Each subscriber has a queue of *capacity* elements. What the slowest one does to the others is
    said by *overflow*: ``"wait"`` (the source waits for the slowest), ``"drop_newest"``,
    ``"drop_oldest"``, ``"latest"`` (only the slow one misses elements), ``"fail"`` (only the slow
    one fails, with `Overflow`).

    ::

        a--b--c--|
        .share()
        a--b--c--|

    Demand: batched (*capacity* upstream): under ``"wait"`` as the slowest subscriber has room; else
        as the fastest has.
    Completes: when the source completes, after the elements held.
    Fails: when the source fails, after the elements held; by *overflow*. If it fails while there is
        no subscriber, that is reported, and the next one starts it afresh.
    Cancels: this subscriber; with the last one, after *grace*, the source.
    Holds: 2 × *capacity* elements with one subscriber, and 2 × *replay* of the last ones; for each
        further subscriber *capacity* and *replay* more.
    Rules: 1.1, 1.11
    """
    replay = require_int("share", "replay", replay)
    seconds = to_seconds(grace, "share: grace", zero=True)
    capacity = require_int("share", "capacity", capacity, least=1)
    policy = require_policy(overflow, "share")
    shared = _Shared(source, "share", capacity, policy, replay, None, seconds)
    return _hot(shared, source, f"share({_shown(replay=replay, grace=seconds)})")


def replay(
    source: "Flow[T]",
    n: int,
    *,
    ttl: Duration | None = None,
    overflow: OverflowPolicy = "wait",
    capacity: int = _CAPACITY,
) -> "Flow[T]":
    """Share one subscription to the source; later subscribers first receive the last *n* elements.

    The source is subscribed to with the first request, once, and kept when the last subscriber
    leaves: it then waits. With *ttl*, elements older than that are not repeated. After the end of
    the source, a subscriber receives the last elements, and completes. A failure is not kept: the
    next subscriber starts the source afresh. *overflow* and *capacity* are those of ``share``.

    ::

        a--b--c--|
        .replay(2)
        a--b--c--|

    Demand: batched (*capacity* upstream), as in ``share``.
    Completes: when the source completes, after the elements held.
    Fails: when the source fails, after the elements held; by *overflow*. If it fails while there is
        no subscriber, that is reported, and the next one starts it afresh.
    Cancels: this subscriber; the source is kept.
    Holds: 2 × *capacity* elements with one subscriber, and 2 × *n* of the last ones; for each
        further subscriber *capacity* and *n* more.
    Rules: 1.1, 1.11
    """
    n = require_int("replay", "n", n, least=1)
    seconds = None if ttl is None else to_seconds(ttl, "replay: ttl")
    capacity = require_int("replay", "capacity", capacity, least=1)
    policy = require_policy(overflow, "replay")
    shared = _Shared(source, "replay", capacity, policy, n, seconds, None)
    return _hot(shared, source, f"replay({n})")


def _report(loop_handle: LoopHandle, error: BaseException) -> None:
    """The next subscriber starts the source afresh, so that no subscriber receives *error*."""
    # Without a cause, it is the program that ends: asyncio.run() cancels the tasks that are left.
    if not isinstance(error, Interrupted) or error.__cause__ is not None:
        loop_handle.report("a shared flow failed while it had no subscriber", error)


def _shown(**arguments: float) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in arguments.items() if value)


def _hot(shared: "_Shared[T]", source: "Flow[T]", name: str) -> "Flow[T]":
    return from_push(
        shared.open,
        name=name,
        holds=2 * shared.capacity + 2 * shared.replay,
        checked=True,
        upstreams=(source,),
        window=int(shared.policy == "latest"),
        one_by_one=True,
        is_shared=True,
    )


class _Shared(Generic[T]):
    """One subscription to the source, and the queues of all subscribers."""

    def __init__(
        self,
        source: "Flow[T]",
        name: str,
        capacity: int,
        policy: OverflowPolicy,
        replay: int,
        ttl: float | None,
        grace: float | None,
    ) -> None:
        self._source = source
        self._name = name
        self.capacity: int = capacity
        self.policy: OverflowPolicy = policy
        self.replay: int = replay
        self._ttl = ttl
        self._grace = grace  # None: the source is kept
        self.submit: Callable[..., object] = run_now
        self.cleanup = None  # no single consumer awaits the cleanup of the source
        self.on_discard = None  # nor discards an element that others receive
        self.loop_handle: Any = None
        self._drops: DropCounter = DropCounter(name)
        self._timer: TimerHandle | None = None
        self._shared_room = SharedRoom(capacity, policy)
        self._reset()

    def _reset(self) -> None:
        self._inner: InnerSubscriber[T] | None = None
        self._outputs: tuple[OutputBuffer[T], ...] = ()
        self._history: RecentElements[T] = RecentElements(self.replay, self._ttl, self._now)
        self._is_passing_on = False
        self._is_completed = False

    def _now(self) -> float:
        now: float = self.loop_handle.time()
        return now

    # -- subscribers ------------------------------------------------------------------------------
    def open(self, downstream: Downstream[T]) -> FlowSubscription:
        """Accept a subscriber."""
        handle = running_handle(
            self.loop_handle, f"{self._name}: subscribe()", "subscribe where the others do"
        )
        if handle is not self.loop_handle:
            self.loop_handle = handle
            self._reset()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        extra = 0 if self.policy == "latest" else self.replay
        queue: BoundedQueue[T] = BoundedQueue(self.capacity + extra, self.policy, self._drops)
        output = OutputBuffer(
            downstream,
            queue,
            self._name,
            on_room=self._on_room,
            on_cancel=self._on_cancel,
            is_shared=True,
        )
        if repeated := self._repeated():
            output.offer_all(repeated)
        if self._is_completed:
            output.end(None)
        else:
            self._outputs = (*self._outputs, output)
        return output

    def _repeated(self) -> list[T]:
        elements = self._history.held()
        return elements[-1:] if self.policy == "latest" else elements

    def _on_cancel(self, output: OutputBuffer[T]) -> None:
        self._outputs = tuple(each for each in self._outputs if each is not output)
        if self._outputs:
            self._on_room(None)  # it may have been the slowest
        elif self._grace is not None and self._inner is not None:
            if self._grace:
                self._timer = self.loop_handle.call_later(self._grace, self._stop)
            else:
                self._stop()

    def _stop(self) -> None:
        """The last subscriber has left: cancel the source; the next one starts it afresh."""
        self._timer = None
        inner = self._inner
        if not self._outputs and inner is not None:
            self._reset()
            inner.cancel()
            inner.finish()

    # -- the source -------------------------------------------------------------------------------
    def discard(self, elements: Iterable[object], /) -> None:
        """No single subscriber could receive them."""

    def _on_room(self, output: OutputBuffer[T] | None) -> None:
        """A subscriber has processed elements, or has requested more; None: one has left."""
        inner = self._inner
        if inner is not None:
            if self._is_passing_on:
                return
            if inner.elements or inner.is_done:
                self._pass_on(inner)
            else:
                self._refill(inner, output)
        elif any(output.requested for output in self._outputs):
            self._inner = InnerSubscriber(self, self._name)
            self._refill(self._inner)
            self._inner.subscribe(self._source)

    def on_arrival(self, inner: InnerSubscriber[Any]) -> None:
        if not inner.collect(self._read):
            self._read(inner)

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._read(inner)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        if inner is self._inner:
            self._read(inner)
        else:
            self.loop_handle.report("an error after the end of a flow", error)

    def _read(self, inner: InnerSubscriber[T]) -> None:
        if inner is self._inner and not self._is_passing_on:
            self._pass_on(inner)

    def _pass_on(self, inner: InnerSubscriber[T]) -> None:
        """Deliver the elements for which there is room; then end as the source did."""
        self._is_passing_on = True
        try:
            while inner.elements and (room := self._room()) > 0 and inner is self._inner:
                chunk = inner.take(room)
                self._history.add(chunk)
                for output in self._outputs:
                    output.offer_all(chunk)
        finally:
            self._is_passing_on = False
        if inner is not self._inner:
            return
        if not inner.is_done:
            self._refill(inner)
        elif not inner.elements:
            self._end(inner.error)
            inner.finish()

    def _end(self, error: BaseException | None) -> None:
        outputs, history = self._outputs, self._history
        self._reset()
        if self._grace is None and error is None:
            self._is_completed, self._history = True, history
        for output in outputs:
            output.end(error)
        if error is not None and not outputs:
            _report(self.loop_handle, error)

    def _room(self) -> int:
        return self._shared_room.now(self._outputs) if self._outputs else 0

    def _refill(self, inner: InnerSubscriber[T], changed: OutputBuffer[T] | None = None) -> None:
        """Request as many elements as there is room for, unless a quarter is still to come."""
        if inner.outstanding * 4 <= self.capacity and self._outputs:
            enough = inner.outstanding + (self.capacity + 3) // 4
            wanted = self._shared_room.wanted(self._outputs, enough, changed)
            if wanted >= enough:
                inner.request(min(wanted, self.capacity) - inner.outstanding)


def cache(source: "Flow[T]", *, limit: int = 10_000) -> "Flow[T]":
    """Read the source once, and repeat all its elements to every subscriber.

    The source is subscribed to with the first request, and read as far as the fastest subscriber
    asks; the others read what it has emitted. It is kept when all subscribers have left: it then
    waits. A failure is not kept: the next subscriber starts the source afresh.

    ::

        a--b--c--|
        .cache()
        a--b--c--|

    Demand: what the fastest subscriber has requested beyond the elements kept.
    Completes: when the source completes; a later subscriber completes after the elements kept.
    Fails: when the source fails; with `Overflow` when it has more than *limit* elements. If it
        fails while there is no subscriber, that is reported.
    Cancels: this subscriber; the source is kept.
    Holds: *limit* elements.
    Rules: 1.1, 1.11
    """
    limit = require_int("cache", "limit", limit, least=1)
    cached = _Cached(source, limit)
    return from_push(
        cached.open,
        name=f"cache({limit})",
        holds=limit,
        checked=True,
        upstreams=(source,),
        one_by_one=False,
        is_shared=True,
    )


class _Cached(Generic[T]):
    """The elements of the source so far, and the subscribers, each at its own place."""

    def __init__(self, source: "Flow[T]", limit: int) -> None:
        self._source = source
        self._limit = limit
        self.submit: Callable[..., object] = run_now
        self.cleanup = None
        self.on_discard = None
        self.loop_handle: Any = None
        self._reset()

    def _reset(self) -> None:
        self.elements: list[T] = []
        self._inner: InnerSubscriber[T] | None = None
        self._readers: dict[_Reader[T], None] = {}
        self.is_completed = False

    def open(self, downstream: Downstream[T]) -> FlowSubscription:
        """Accept a subscriber."""
        remedy = "subscribe where the others do"
        handle = running_handle(self.loop_handle, "cache: subscribe()", remedy)
        if handle is not self.loop_handle:
            self.loop_handle = handle
            if not self.is_completed:
                self._reset()  # the source has ended with its loop
        reader = _Reader(self, downstream)
        self._readers[reader] = None
        reader.deliver()  # the end, if there was no element
        return reader

    def leave(self, reader: "_Reader[T]") -> None:
        """*reader* has cancelled, or has received the end."""
        self._readers.pop(reader, None)

    def ask(self, missing: int) -> None:
        """A subscriber has requested *missing* elements more than there are."""
        if self.is_completed:
            return
        inner = self._inner
        if inner is None:
            inner = self._inner = InnerSubscriber(self, "cache")
            inner.request(missing)
            inner.subscribe(self._source)
        elif missing > inner.outstanding:
            inner.request(missing - inner.outstanding)

    def discard(self, elements: Iterable[object], /) -> None:
        """No single subscriber could receive them."""

    def on_arrival(self, inner: InnerSubscriber[Any]) -> None:
        if not inner.collect(self._read):
            self._read(inner)

    def _read(self, inner: InnerSubscriber[Any]) -> None:
        if inner is not self._inner:
            return
        room = self._limit - len(self.elements)
        is_too_many = len(inner.elements) > room
        self.elements += inner.take(len(inner.elements))[:room]
        for reader in list(self._readers):
            reader.deliver()
        if is_too_many and inner is self._inner:
            inner.cancel()
            inner.finish()
            remedy = "allow more with limit=..., or use replay(n)."
            self._fail(Overflow("cache", self._limit, remedy))

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._read(inner)
        if inner is self._inner:
            self.is_completed, self._inner = True, None
            for reader in list(self._readers):
                reader.deliver()
            inner.finish()

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self._read(inner)
        if inner is self._inner:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        readers = self._readers
        self._reset()
        for reader in readers:
            reader.fail(error)
        if not readers:
            _report(self.loop_handle, error)


class _Reader(FlowSubscription, Generic[T]):
    """One subscriber, and how far it has read."""

    __slots__ = ("_cached", "_demand", "_downstream", "_elements", "_error", "_is_delivering",
                 "_is_over", "_read")  # fmt: skip

    def __init__(self, cached: _Cached[T], downstream: Downstream[T]) -> None:
        self._cached = cached
        self._downstream = downstream
        self._elements = cached.elements
        self._demand = Demand()
        self._read = 0
        self._error: BaseException | None = None
        self._is_delivering = False
        self._is_over = False

    def request(self, n: int, /) -> None:
        self._demand.add(n)
        self.deliver()
        missing = self._demand.outstanding - (len(self._elements) - self._read)
        if missing > 0 and not self._is_over and self._error is None:
            self._cached.ask(missing)

    def deliver(self) -> None:
        """Deliver the elements that are requested; then the end, if there are no more."""
        if self._is_delivering or self._is_over:
            return
        self._is_delivering = True
        try:
            while self._demand and self._read < len(self._elements):
                chunk = self._elements[self._read : self._read + self._demand.outstanding]
                self._demand.take(len(chunk))
                self._read += len(chunk)
                self._downstream.push(chunk)
        finally:
            self._is_delivering = False
        if self._read == len(self._elements) and not self._is_over:
            if self._error is not None:
                self._leave()
                self._downstream.fail(self._error)
            elif self._cached.is_completed:
                self._leave()
                self._downstream.complete()

    def fail(self, error: BaseException) -> None:
        """Fail after the elements that the source has emitted."""
        self._error = error
        self.deliver()

    def cancel(self) -> None:
        self._leave()

    def _leave(self) -> None:
        self._is_over = True
        self._cached.leave(self)
