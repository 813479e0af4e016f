"""Operators that make a flow hot: its subscribers share one subscription to the source."""

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .._core.loop import running_handle
from .._core.losses import DropCounter
from .._core.queues.bounded_queue import LOSSY, BoundedQueue, OverflowPolicy, require_policy
from .._core.queues.output_buffer import OutputBuffer
from .._core.queues.recent import RecentElements
from .._core.queues.shared_room import SharedRoom
from .._core.run_control import RunControl, RunDiscards, discard_interrupted, interrupt_call
from .._core.upstreams.after_cleanup import SourceBefore
from .._core.upstreams.decisions import run_now
from ..errors import Interrupted, Overflow
from ..stage import (
    Demand,
    Downstream,
    Duration,
    FlowSubscription,
    InnerSubscriber,
    LoopHandle,
    OnDiscard,
    from_push,
    require_int,
    to_seconds,
)

if TYPE_CHECKING:
    from .._core.loop import TimerHandle
    from ..flow import Flow

__all__ = ("cache", "replay", "share")

T = TypeVar("T")
R = TypeVar("R")

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
    next subscriber then starts it afresh, as soon as it has cleaned up. A later subscriber first
    receives the last *replay* elements. A drain of the only subscriber completes the source at
    once, and delivers what it has emitted.

    Each subscriber has a queue of *capacity* elements. When it is full, *overflow* decides:
    ``"wait"`` (the source waits for the slowest subscriber), ``"drop_newest"``, ``"drop_oldest"``,
    ``"latest"`` (the slow one misses elements), ``"fail"`` (the slow one fails, with `Overflow`).
    Only ``"wait"`` slows the source; under any other policy a subscriber that is alone and slow
    misses elements, as it would beside others.

    ::

        a--b--c--|
        .share()
        a--b--c--|

    Demand: batched (*capacity* upstream): under ``"wait"`` as the slowest subscriber has room; else
        always.
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
    the source, a subscriber receives the last elements, and completes. A failure is not kept, nor
    is a source that a drain of the only subscriber has completed: the next subscriber starts the
    source afresh. *overflow* and *capacity* are those of ``share``.

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
        one_by_one=True,
        lossy=shared.policy in LOSSY,
        may_hand_over=shared.may_hand_over,
    )


@dataclass(slots=True, eq=False)
class _Life:
    """The source of a hot flow, from its first subscriber to its end.

    It has a control of its own, so that a drain of the only subscriber completes it, and not the
    operators between. It counts what is discarded there for the only subscriber, or for the one
    that has left last, since no other one can receive it.
    """

    keeps: bool
    """Whether elements are kept for a later subscriber when the last one has left."""
    subscribers: int
    """How many there were."""
    control: RunControl = field(default_factory=RunControl)
    heir: OnDiscard | None = None
    """What receives the elements that are discarded."""
    is_work: bool = False
    _is_handing_over: bool = False

    def join(self, downstream: Downstream[Any], *, alone: bool) -> None:
        """*downstream* is that of one more subscriber, which is *alone* now."""
        on_discard = downstream.on_discard
        if not self.subscribers:
            self.is_work = isinstance(on_discard, RunDiscards) and on_discard.is_work
        self.subscribers += 1
        self.heir = on_discard if alone else None

    @property
    def on_discard(self) -> OnDiscard:
        return RunDiscards(self.control, self, (), self.is_work)

    def may_hand_over(self) -> bool:
        """Whether the only subscriber may give away what it has received."""
        is_alone = self.subscribers == 1 and (not self.keeps or self.control.is_stopped)
        return self._is_handing_over or is_alone

    def discard(self, element: object, /) -> None:
        if self.heir is not None:
            self._hand_over(partial(self.heir, element))

    def interrupt(self, element: object, /) -> None:
        self._hand_over(partial(discard_interrupted, self.heir, element))

    def interrupt_call(self) -> OnDiscard:
        return self._hand_over(partial(interrupt_call, self.heir))

    def _hand_over(self, give: Callable[[], R]) -> R:
        self._is_handing_over = True  # no subscriber has received it
        try:
            return give()
        finally:
            self._is_handing_over = False


class _Hot(Generic[T]):
    """A hot flow: it owns the subscription to the source."""

    def __init__(self, source: "Flow[T]", name: str, *, keeps: bool) -> None:
        self._source = source
        self._name = name
        self._keeps = keeps
        self.submit: Callable[..., object] = run_now
        self.cleanup = None  # no single consumer awaits the cleanup of the source
        self.loop_handle: Any = None
        self._inner: InnerSubscriber[T] | None = None
        self._life = _Life(keeps, 0)
        self.before: SourceBefore = SourceBefore(self._go_on)
        """The source that has ended or was cancelled, until it has cleaned up."""

    @property
    def on_discard(self) -> OnDiscard:
        return self._life.on_discard

    def discard(self, elements: Iterable[object], /) -> None:
        for element in elements:
            self._life.discard(element)

    def may_hand_over(self) -> bool:
        return self._life.may_hand_over()

    @property
    def held_back_by(self) -> Downstream[Any] | None:
        """The subscriber for which all others wait."""
        return None

    @property
    def source(self) -> FlowSubscription | None:
        """The subscription to the source."""
        return None if self._inner is None else self._inner.upstream

    def drain_source(self) -> bool:
        """Complete the source after what it has emitted; return whether it runs."""
        if self._inner is not None:
            self._life.control.stop()
        return self._inner is not None

    def _leave(self, inner: InnerSubscriber[T]) -> None:
        """The source has ended, or is cancelled; another one begins when it has cleaned up."""
        self.before.leave(self.loop_handle, inner)

    def _go_on(self, interrupted: Interrupted | None) -> None:
        """The source before has cleaned up: start it afresh, if there are subscribers by now."""
        raise NotImplementedError


class _Shared(_Hot[T]):
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
        super().__init__(source, name, keeps=grace != 0.0)
        self.capacity: int = capacity
        self.policy: OverflowPolicy = policy
        self.replay: int = replay
        self._ttl = ttl
        self._grace = grace  # None: the source is kept
        self._ending: list[OutputBuffer[T]] = []
        """Those that still hold elements of a source that has ended."""
        self._timer: TimerHandle | None = None
        self._shared_room = SharedRoom(capacity, policy)
        self._reset()

    def _reset(self) -> None:
        self._stop_timer()
        self._inner = None
        self._outputs: tuple[OutputBuffer[T], ...] = ()
        self._history: RecentElements[T] = RecentElements(self.replay, self._ttl, self._now)
        self._is_passing_on = False
        self._is_completed = False
        self._is_refill_due = False

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

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
            self.before.forget()
            self._reset()
        self._stop_timer()
        if self._inner is None and not self._outputs:
            self._ending = [each for each in self._ending if not each.is_closed]
            self._life = _Life(self._keeps, len(self._ending))
        self._life.join(downstream, alone=not self._outputs)
        extra = 0 if self.policy == "latest" else self.replay
        drops = DropCounter(self._name, self._source.chain.label)
        queue: BoundedQueue[T] = BoundedQueue(self.capacity + extra, self.policy, drops)
        output = _SharedOutput(
            downstream,
            queue,
            self._name,
            on_room=self._on_room,
            on_cancel=self._on_cancel,
            hub=self,
            shared=self,
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
            alone = self._outputs[0].downstream.on_discard
            self._life.heir = alone if len(self._outputs) == 1 else None
            self._on_room()  # it may have been the slowest
            return
        self._life.heir = output.downstream.on_discard
        is_drained = self._life.control.is_stopped
        if self._inner is not None and (is_drained or self._grace is not None):
            if self._grace and not is_drained:
                self._timer = self.loop_handle.call_later(self._grace, self._stop)
            else:
                self._stop()

    def _stop(self) -> None:
        """The last subscriber has left: cancel the source; the next one starts it afresh."""
        self._timer = None
        inner = self._inner
        if not self._outputs and inner is not None:
            self._reset()
            self._leave(inner)

    def _go_on(self, interrupted: Interrupted | None) -> None:
        if interrupted is None:
            self._on_room()
        else:
            self._end(interrupted)

    def drain(self, output: OutputBuffer[T]) -> bool:
        """Complete the source, if *output* is that of the only subscriber; return whether it is."""
        return self._outputs == (output,) and self.drain_source()

    # -- the source -------------------------------------------------------------------------------
    def _on_room(self, _: object = None) -> None:
        """A subscriber has processed elements, has requested more, or has left."""
        inner = self._inner
        if inner is not None:
            if self._is_passing_on:
                return
            if inner.elements or inner.is_done:
                self._pass_on(inner)
            else:
                self._refill(inner)
        elif self.before.is_settled and any(output.requested for output in self._outputs):
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
            self._leave(inner)
            self._end(inner.error)

    def _end(self, error: BaseException | None) -> None:
        outputs, history = self._outputs, self._history
        self._reset()
        if self._grace is None and error is None and not self._life.control.is_stopped:
            self._is_completed, self._history = True, history
        self._life.keeps = self._is_completed
        for output in outputs:
            output.end(error)
        self._ending = [each for each in (*self._ending, *outputs) if not each.is_closed]
        if error is not None and not outputs:
            _report(self.loop_handle, error)

    @property
    def held_back_by(self) -> Downstream[Any] | None:
        return self._shared_room.held_back_by(self._outputs)

    def _room(self) -> int:
        return self._shared_room.now(self._outputs) if self._outputs else 0

    def _refill(self, inner: InnerSubscriber[T]) -> None:
        """Request as many elements as there is room for, unless a quarter is still to come."""
        if inner.outstanding * 4 <= self.capacity and self._outputs:
            enough = inner.outstanding + (self.capacity + 3) // 4
            wanted = self._shared_room.wanted(self._outputs, enough)
            if wanted >= enough:
                inner.request(min(wanted, self.capacity) - inner.outstanding)
            elif self.policy != "wait" and not self._is_refill_due:
                self._is_refill_due = True
                self.loop_handle.call_soon(self._refill_now, inner, self._outputs[0].queue.entered)

    def _refill_now(self, inner: InnerSubscriber[T], entered: int) -> None:
        """No policy but ``wait`` slows the source: request more, although nobody has room.

        Unless elements have *entered* queues since then: the subscribers are keeping up.
        """
        if inner is self._inner:
            self._is_refill_due = False
            if not self._outputs or self._outputs[0].queue.entered != entered:
                self._refill(inner)
            elif inner.outstanding * 4 <= self.capacity:
                inner.request(self.capacity - inner.outstanding)


@dataclass(slots=True, eq=False, repr=False)
class _SharedOutput(OutputBuffer[T]):
    """The queue of one subscriber."""

    _: KW_ONLY
    shared: _Shared[T]

    @property
    def is_settled(self) -> bool:
        return self.shared.before.is_settled

    async def settle(self) -> None:
        await self.shared.before.settle()


def cache(source: "Flow[T]", *, limit: int = 10_000) -> "Flow[T]":
    """Read the source once, and repeat all its elements to every subscriber.

    The source is subscribed to with the first request, and read as far as the fastest subscriber
    asks; the others read what it has emitted. It is kept when all subscribers have left: it then
    waits. A failure is not kept, nor is a source that a drain of the only subscriber has completed:
    the next subscriber starts the source afresh.

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
        may_hand_over=cached.may_hand_over,
    )


class _Cached(_Hot[T]):
    """The elements of the source so far, and the subscribers, each at its own place."""

    def __init__(self, source: "Flow[T]", limit: int) -> None:
        super().__init__(source, "cache", keeps=True)
        self._limit = limit
        self._reset()

    def _reset(self) -> None:
        self.elements: list[T] = []
        self._inner = None
        self._readers: dict[_Reader[T], None] = {}
        self.is_completed = False

    def open(self, downstream: Downstream[T]) -> FlowSubscription:
        """Accept a subscriber."""
        remedy = "subscribe where the others do"
        handle = running_handle(self.loop_handle, "cache: subscribe()", remedy)
        if handle is not self.loop_handle:
            self.loop_handle = handle
            self.before.forget()
            if not self.is_completed:
                self._reset()  # the source has ended with its loop
        if self._inner is None and not self._readers:
            self._life = _Life(self._keeps, 0)
        self._life.join(downstream, alone=not self._readers)
        reader = _Reader(self, downstream)
        self._readers[reader] = None
        if self.is_completed:
            reader.end(None)
        return reader

    def leave(self, reader: "_Reader[T]", unread: list[T]) -> None:
        """*reader* has received the end, or has cancelled before it has read *unread*."""
        self._readers.pop(reader, None)
        inner = self._inner
        if self._readers or inner is None:
            return
        self._life.heir = reader.on_discard
        if self._life.control.is_stopped:  # nothing is kept for another subscriber
            self._reset()
            self._leave(inner)
            self.discard(unread)

    def drain(self, reader: "_Reader[T]") -> bool:
        """Complete the source, if *reader* is the only one; return whether it is."""
        return [*self._readers] == [reader] and (self.is_completed or self.drain_source())

    def ask(self, missing: int) -> None:
        """A subscriber has requested *missing* elements more than there are."""
        if self.is_completed:
            return
        inner = self._inner
        if inner is None and not self.before.is_settled:
            return  # `_go_on` follows
        if inner is None:
            inner = self._inner = InnerSubscriber(self, "cache")
            inner.request(missing)
            inner.subscribe(self._source)
        elif missing > inner.outstanding:
            inner.request(missing - inner.outstanding)

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
            remedy = "allow more with limit=..., or use replay(n)."
            self._fail(Overflow("cache", self._limit, remedy))

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._read(inner)
        if inner is self._inner:
            readers = self._readers
            if self._life.control.is_stopped:
                self._reset()
            else:
                self.is_completed, self._inner = True, None
            self._leave(inner)
            for reader in list(readers):
                reader.end(None)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self._read(inner)
        if inner is self._inner:
            self._fail(error)

    def _go_on(self, interrupted: Interrupted | None) -> None:
        if interrupted is not None:
            self._fail(interrupted)
        elif (missing := max((reader.missing for reader in self._readers), default=0)) > 0:
            self.ask(missing)

    def _fail(self, error: BaseException) -> None:
        readers, inner = self._readers, self._inner
        self._reset()
        if inner is not None:
            self._leave(inner)
        for reader in readers:
            reader.end(error)
        if not readers:
            _report(self.loop_handle, error)


class _Reader(FlowSubscription, Generic[T]):
    """One subscriber, and how far it has read."""

    __slots__ = ("_cached", "_demand", "_downstream", "_elements", "_error", "_is_delivering",
                 "_is_ended", "_is_over", "_read")  # fmt: skip

    def __init__(self, cached: _Cached[T], downstream: Downstream[T]) -> None:
        self._cached = cached
        self._downstream = downstream
        self._elements = cached.elements
        self._demand = Demand()
        self._read = 0
        self._error: BaseException | None = None
        self._is_delivering = False
        self._is_ended = False  # no elements follow those that there are
        self._is_over = False

    @property
    def on_discard(self) -> OnDiscard | None:
        return self._downstream.on_discard

    def request(self, n: int, /) -> None:
        self._demand.add(n)
        self.deliver()
        if (missing := self.missing) > 0 and not self._is_over and not self._is_ended:
            self._cached.ask(missing)

    @property
    def missing(self) -> int:
        """How many elements it has requested that the source has not emitted."""
        return self._demand.outstanding - (len(self._elements) - self._read)

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
        if self._is_ended and self._read == len(self._elements) and not self._is_over:
            self.cancel()
            if self._error is not None:
                self._downstream.fail(self._error)
            else:
                self._downstream.complete()

    def end(self, error: BaseException | None) -> None:
        """Complete, or fail, after the elements that the source has emitted."""
        self._is_ended, self._error = True, error
        self.deliver()

    def stop_source(self) -> bool:
        if not self._cached.drain(self):
            self._elements = self._elements.copy()  # the others go on
            self.end(None)
        return True

    def cancel(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._cached.leave(self, self._elements[self._read :])

    def waiting_failure(self) -> BaseException | None:
        return None if self._is_over else self._error

    @property
    def shared_source(self) -> FlowSubscription | None:
        return self._cached.source

    @property
    def is_settled(self) -> bool:
        return self._cached.before.is_settled

    async def settle(self) -> None:
        await self._cached.before.settle()
