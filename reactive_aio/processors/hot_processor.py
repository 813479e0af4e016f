"""HotProcessor: the base of all processors: the producers' side, and a publisher upstream."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass, field
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, cast

from .._core.arguments import require_text
from .._core.compiler.chain import Chain, PushSource
from .._core.compiler.discards import discard
from .._core.compiler.error_notes import restorer
from .._core.losses import DISCARDED, OVERTAKEN, REFUSED, DropCounter
from .._core.observation.figures import FlowStats
from .._core.observation.registry import add_processor
from .._core.queues.bounded_queue import (
    LOSSY,
    BoundedQueue,
    Emission,
    OverflowPolicy,
    require_capacity,
    require_policy,
)
from .._core.queues.hot_emitter import EMISSIONS_PER_CLOCK_READ, HotEmitter
from .._core.queues.output_buffer import OutputBuffer
from .._core.run_control import (
    OnDiscard,
    RunControl,
    RunDiscards,
    discard_interrupted,
    interrupt_call,
)
from .._core.subscription.bulk_subscriber import BulkReceiver, BulkSubscriber
from .._core.upstreams.decisions import run_now
from ..flow import Flow
from ..spec import Subscription
from ..stage import Downstream, FlowSubscription, InnerSubscriber

if TYPE_CHECKING:
    from .._core.loop import Future
    from ..stage import LoopHandle

T = TypeVar("T")

_ACCEPTED: Final = Emission.ACCEPTED
NO_SUBSCRIBER: Final = "no_subscriber"
"""The reason counted for elements that were emitted without a subscriber."""


@dataclass(frozen=True, kw_only=True)
class ProcessorStats(FlowStats):
    """The counts of a processor, and the state of its slowest subscriber."""

    accepted: int
    """Elements that were accepted. One of a thread counts when the loop has collected it, or when a
    newer one has taken its place."""
    refused: int
    """Emissions that were refused because a queue was full."""
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    """Elements dropped, by reason; counted once for each subscriber that missed one.

    The reasons are the overflow policies, ``"no_subscriber"``, ``"discarded"`` (held when the
    subscriber cancelled, or when the processor ended before the publisher upstream) and
    ``"overtaken"`` (held when the publisher upstream failed).
    """
    subscribers: int
    held: int
    """The most elements held for one subscriber now."""
    highest: int
    """The most elements ever held for one subscriber."""
    requested: int
    """The least outstanding demand of a subscriber; 0 without one."""
    is_done: bool


def _never() -> bool:
    return False


class HotProcessor(Flow[T], BulkReceiver, ABC):
    """A hot flow that producers or a publisher emit into; the base of all processors."""

    __slots__ = ("_accepted", "_capacity", "_dropped", "_drops", "_emitter", "_failure", "_feed",
                 "_highest", "_is_done", "_is_loop_running", "_mail", "_name", "_outputs",
                 "_overflow", "_sole", "_subscriber_waiters", "_thread", "_waiting")  # fmt: skip

    def __init__(
        self, capacity: int = 256, *, overflow: OverflowPolicy = "wait", name: str = ""
    ) -> None:
        kind = type(self).__name__
        self._name = require_text(kind, "name", name) or kind
        self._capacity = require_capacity(capacity, kind)
        self._overflow: OverflowPolicy = require_policy(overflow, kind)
        holds = 2 if overflow == "latest" else capacity
        head = PushSource(
            self._name,
            cast("Callable[[Downstream[Any]], FlowSubscription]", self._attach),
            holds=holds + 2 * capacity + self._held_besides(),
            checked=True,
            one_by_one=overflow in LOSSY,
            lossy=overflow in LOSSY,
            may_hand_over=_never if self._is_shared else None,
        )
        super().__init__(Chain(head))
        self._emitter: HotEmitter[T] = HotEmitter(
            self._name, capacity, overflow, self._deliver, self._is_full, self._finish
        )
        self._mail: Sized = self._emitter.mailbox.held
        self._waiting: Sized = self._emitter.waiters
        # `LoopHandle.is_running_here` without its call, once there was a subscriber.
        self._thread = 0
        self._is_loop_running: Callable[[], bool] = bool
        self._feed: _UpstreamFeed[T] | None = None
        self._outputs: tuple[OutputBuffer[T], ...] = ()
        """The output buffers of the current subscribers."""
        self._sole: OutputBuffer[T] | None = None
        """That of the only subscriber, if an element may be pushed into it directly."""
        self._is_done = False
        self._failure: Callable[[], BaseException] | None = None
        """Returns the error that it has failed with, as it was when it failed."""
        self._accepted: int = 0
        self._highest: int = 0
        self._dropped: Counter[str] = Counter()
        """How many elements were dropped on the loop's thread, by reason."""
        self._drops: DropCounter = DropCounter(self._name, total=self._dropped)
        """Counts those that belong to no subscriber."""
        self._subscriber_waiters: list[tuple[int, Future[None]]] = []
        if name:
            add_processor(self)

    _is_shared: ClassVar[bool] = True
    """Whether several subscribers receive the same elements."""

    def __repr__(self) -> str:
        state = "done" if self._emitter.is_ended else f"{len(self._outputs)} subscribers"
        return f"<{self._name} {state}>"

    # -- producing --------------------------------------------------------------------------------
    def try_emit(self, element: T) -> Emission:
        """Emit *element* now, on the loop's thread; true if it was accepted."""
        # A way of its own past `HotEmitter`, for one subscriber: without it, `try_emit` takes 26 %
        # longer, and `emit` 48 % (CPython 3.13).
        output, is_loop_running = self._sole, self._is_loop_running
        if (
            output is None
            or element is None
            or self._mail
            or get_ident() != self._thread
            or not is_loop_running()
        ):
            return self._emitter.try_emit(element)
        # One subscriber: if it has requested the element, or others wait, nothing is to be decided.
        queue = output.queue
        if not queue.elements and output.downstream.try_push(element) is not None:
            self._accepted += 1
        elif output.is_ended or not queue.follow(element):
            return self._emitter.try_emit(element)
        else:
            self._accepted += 1
        return _ACCEPTED

    async def emit(self, element: T) -> Emission:
        """Emit *element*; under ``"wait"`` and ``"fail"``, wait while a queue is full."""
        # As in `try_emit`, whose call would cost a quarter of an emission.
        output, emitter, is_loop_running = self._sole, self._emitter, self._is_loop_running
        if (
            output is None
            or element is None
            or self._mail
            or self._waiting
            or emitter.emission_count >= EMISSIONS_PER_CLOCK_READ
            or get_ident() != self._thread
            or not is_loop_running()
        ):
            return await self._emit_or_wait(element)
        queue = output.queue
        if not queue.elements and output.downstream.try_push(element) is not None:
            self._accepted += 1
        elif output.is_ended or not queue.follow(element):
            return await self._emit_or_wait(element)
        else:
            self._accepted += 1
        emitter.emission_count += 1
        return _ACCEPTED

    async def _emit_or_wait(self, element: T) -> Emission:
        outcome = self._emitter.emit(element)
        return outcome if isinstance(outcome, Emission) else await outcome

    def emit_threadsafe(self, element: T) -> Emission:
        """Emit from any thread: the element waits for the loop, or *overflow* decides about it.

        Under ``"wait"`` it is REFUSED when *capacity* elements already wait for the loop. Under
        ``"fail"`` every subscriber fails then, as each would miss the element. A thread
        that is to wait for room has the loop emit, and waits for the outcome::

            asyncio.run_coroutine_threadsafe(processor.emit(element), loop).result()
        """
        return self._emitter.emit_threadsafe(element)

    def complete(self) -> None:
        """Complete every subscriber, after the elements accepted. From any thread."""
        self._emitter.end()

    def fail(self, error: BaseException) -> None:
        """Fail every subscriber, after the elements accepted. From any thread.

        A producer's error keeps its place: what was accepted before it is delivered first, when it
        is requested. To drop those elements and fail at once, as an error of a publisher upstream
        does (rule 4.2), call ``on_error(error)``.

        *error* is an instance, not a class. Anything else raises ``TypeError``, and the processor
        stays as it was.
        """
        self._emitter.fail(error)

    async def wait_for_subscribers(self, count: int = 1) -> None:
        """Wait until there are *count* subscribers, or the processor has ended."""
        if len(self._outputs) < count and not self._emitter.is_ended:
            waiter: Future[None] = self._emitter.loop_handle.create_future()
            pending = count, waiter
            self._subscriber_waiters.append(pending)
            try:
                await waiter
            finally:  # it may be cancelled, and no subscriber may follow
                if pending in self._subscriber_waiters:
                    self._subscriber_waiters.remove(pending)

    # It has more to report than any other flow.
    def stats(self) -> ProcessorStats:  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
        """A snapshot of the counts."""
        outputs, queues = self._outputs, self._queues()
        requested = min((output.requested for output in outputs), default=0)
        return ProcessorStats(
            name=self._name,
            accepted=self._accepted + self._emitter.replaced_count,
            refused=self._emitter.refused_count,
            dropped=self._dropped_by_reason(),
            subscribers=sum(not output.is_closed for output in outputs),
            held=max(map(len, queues), default=0),
            highest=max([self._highest, *(queue.highest for queue in queues)]),
            requested=requested,
            is_done=self._emitter.is_ended,
        )

    def _dropped_by_reason(self) -> dict[str, int]:
        by_threads = dict(self._emitter.mailbox.drops.by_reason)
        by_threads.pop(REFUSED, None)
        return dict(self._dropped + Counter(by_threads))

    # -- the subscriber: signals of the publisher upstream ----------------------------------------
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Subscribe to a publisher upstream; a second one is cancelled (rule 2.5)."""
        self._upstream_feed().inner.on_subscribe(subscription)

    def on_next(self, element: T, /) -> None:
        """Take an element of the publisher, which was requested when there was room for it."""
        self._upstream_feed().inner.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        """Fail every subscriber at once, and drop the elements that none has requested yet.

        Rule 4.2: an error is passed on immediately. The elements are counted as ``"overtaken"``.
        """
        self._upstream_feed().inner.on_error(error)

    def on_complete(self) -> None:
        """Complete with the publisher, after its elements."""
        self._upstream_feed().inner.on_complete()

    def bulk_subscriber(self) -> BulkSubscriber | None:
        feed = self._upstream_feed()
        return feed.inner if feed.loop_handle.is_running_here else None

    def _upstream_feed(self) -> "_UpstreamFeed[T]":
        feed = self._feed
        if feed is None:
            feed = self._feed = _UpstreamFeed(self)
            if self._emitter.is_ended:
                feed.inner.cancel()
            elif any(output.requested for output in self._outputs):
                feed.refill()
        return feed

    def _cancel_upstream(self) -> None:
        """Cancel the publisher upstream, and discard those of its elements that wait for room."""
        if self._feed is not None:
            self._drops.add(DISCARDED, len(self._feed.inner.elements))
            self._feed.inner.cancel()
            self._feed.inner.finish()

    # -- subscribers: one or many -----------------------------------------------------------------
    @abstractmethod
    def _queues(self) -> list[BoundedQueue[T]]:
        """The queues that hold elements for subscribers."""

    @abstractmethod
    def _attach(self, downstream: Downstream[T]) -> FlowSubscription:
        """Accept a subscriber, or refuse it."""

    def _output_buffer(self, downstream: Downstream[T], queue: BoundedQueue[T]) -> OutputBuffer[T]:
        self._emitter.require_loop("subscribe()", "subscribe where its producers run")
        # The processor belongs to the running loop from now on.
        loop_handle = self._emitter.loop_handle
        self._thread, self._is_loop_running = loop_handle.thread, loop_handle.event_loop.is_running
        output = OutputBuffer(
            downstream,
            queue,
            self._name,
            on_room=self._on_room,
            on_cancel=self._leave,
            hub=_Hub(self),
        )
        if repeated := self._repeated():
            output.offer_all(repeated)
        if self._is_done:
            output.end(self._error())
        return output

    def _slowest(self) -> Downstream[Any] | None:
        """The subscriber for which all others wait, for reports."""
        return None

    def _fullest(self) -> Downstream[Any] | None:
        """The subscriber with the least room, for which a publisher waits that has no demand."""
        if self._overflow != "wait" or not self._outputs:
            return None
        return min(self._outputs, key=lambda each: each.room).downstream

    def _new_drops(self) -> DropCounter:
        """Counts what the queue of one subscriber drops: for the named flow that it is part of."""
        return DropCounter(self._name, total=self._dropped)

    def _held_besides(self) -> int:
        """How many elements it holds besides those in queues."""
        return 0

    def _repeated(self) -> list[T]:
        """The elements that a new subscriber receives first."""
        return []

    def _wake_waiters(self) -> None:
        """Wake those that wait for subscribers: there are enough, or there will be no more."""
        present, is_ended = len(self._outputs), self._emitter.is_ended
        for pending in list(self._subscriber_waiters):
            count, waiter = pending
            if is_ended or count <= present:
                self._subscriber_waiters.remove(pending)
                if not waiter.done():
                    waiter.set_result(None)

    def _leave(self, output: OutputBuffer[T]) -> None:
        if self._feed is not None:
            self._feed.discards.of_last = output.downstream.on_discard
        self._on_cancel(output)

    @abstractmethod
    def _on_cancel(self, output: OutputBuffer[T]) -> None:
        """A subscriber has cancelled, or its queue has overflowed."""

    def _on_room(self, output: OutputBuffer[T]) -> None:
        """A subscriber has processed elements, or has requested more."""
        if self._mail or self._waiting:
            self._emitter.on_room()
        if self._feed is not None:
            self._feed.on_room()

    def _ends_without_subscribers(self) -> bool:
        """Whether it ends, and cancels the publisher upstream, when the last subscriber leaves."""
        return True

    def _discard(self, elements: Iterable[object]) -> None:
        """The processor has ended, and *elements* will not be delivered."""

    # -- delivering -------------------------------------------------------------------------------
    @abstractmethod
    def _deliver(self, element: T) -> Emission:
        """Deliver *element* to one subscriber, or to all."""

    @abstractmethod
    def _deliver_all(self, elements: list[T]) -> None:
        """Deliver elements of the publisher upstream, at most `_room` of them."""

    @abstractmethod
    def _room(self) -> int:
        """How many elements of the publisher upstream may be delivered now."""

    @abstractmethod
    def _wanted(self, enough: int) -> int:
        """How many elements the publisher upstream may send now.

        If that is less than *enough*, it is any number below that, and the publisher waits: under
        ``wait`` for room, and otherwise for the next turn of the loop.
        """

    @abstractmethod
    def _is_full(self) -> bool:
        """Whether a producer that can wait should wait."""

    # -- the end ----------------------------------------------------------------------------------
    def _error(self) -> BaseException | None:
        """What it has failed with, for one more subscriber."""
        return None if self._failure is None else self._failure()

    def _finish(self, error: BaseException | None) -> None:
        """End every subscriber after the elements that are held for it."""
        self._is_done = True
        self._failure = None if error is None else restorer(error)
        self._cancel_upstream()
        for output in self._outputs:
            output.end(error)
        self._wake_waiters()

    def _fail_at_once(self, error: BaseException) -> None:
        """The publisher upstream has failed (rule 4.2): drop every element that waits."""
        inner = self._upstream_feed().inner
        waiting = [*self._emitter.shut_down(), *inner.elements]
        self._drops.add(OVERTAKEN, len(waiting))
        inner.elements.clear()
        self._is_done, self._failure = True, restorer(error)
        for output in self._outputs:
            output.fail_at_once(error)
        if not self._outputs:
            for queue in self._queues():
                waiting += queue.discard(OVERTAKEN)
        self._wake_waiters()
        self._discard(waiting)

    def _shut_down(self) -> None:
        """No subscriber is left: accept nothing more, and cancel the publisher upstream."""
        self._is_done = True
        discarded = self._emitter.shut_down()
        self._drops.add(DISCARDED, len(discarded))
        self._discard(discarded)
        self._cancel_upstream()
        self._wake_waiters()


class _Hub(Generic[T]):
    """A processor, as the queue of one of its subscribers sees it."""

    __slots__ = ("_processor",)

    def __init__(self, processor: HotProcessor[T]) -> None:
        self._processor = processor

    def drain(self, output: OutputBuffer[T], /) -> bool:
        processor = self._processor
        feed = processor._feed
        if feed is None or feed.inner.is_done or processor._outputs != (output,):
            return False
        if processor._ends_without_subscribers():
            feed.discards.control.stop()
            return True
        return False

    @property
    def held_back_by(self) -> Downstream[Any] | None:
        return self._processor._slowest()

    @property
    def source(self) -> FlowSubscription | None:
        feed = self._processor._feed
        return None if feed is None else feed.inner.upstream


@dataclass(slots=True, eq=False)
class _Discards(Generic[T]):
    """Hands what the publisher upstream discards to the only subscriber, whose run counts it.

    The publisher has a control of its own, as that of `share` does: it was subscribed to before the
    run began, and other subscribers may follow. (docs/decisions/0010)
    """

    _processor: HotProcessor[T]
    control: RunControl = field(default_factory=RunControl)
    of_last: OnDiscard | None = None
    """That of the subscriber that has left last."""

    @property
    def _receiver(self) -> OnDiscard | None:
        outputs = self._processor._outputs
        if len(outputs) == 1:
            return outputs[0].downstream.on_discard
        return self.of_last if not outputs and self._processor._is_done else None

    def discard(self, element: object, /) -> None:
        discard(self._receiver, (element,))

    def interrupt(self, element: object, /) -> None:
        discard_interrupted(self._receiver, element)

    def interrupt_call(self) -> OnDiscard:
        return interrupt_call(self._receiver)


class _UpstreamFeed(Generic[T]):
    """Delivers a publisher's elements; those for which there is no room wait in `inner`."""

    __slots__ = (
        "_emitter",
        "_is_refill_due",
        "_processor",
        "cleanup",
        "discards",
        "inner",
        "is_passing_on",
        "loop_handle",
        "on_discard",
        "submit",
    )

    def __init__(self, processor: HotProcessor[T]) -> None:
        self._processor = processor
        self._emitter = processor._emitter
        self.is_passing_on = False
        self._is_refill_due = False
        self.loop_handle: LoopHandle = self._emitter.loop_handle
        self.submit: Callable[..., object] = run_now
        self.cleanup = None  # no single consumer awaits the cleanup of the publisher
        self.discards: _Discards[T] = _Discards(processor)
        self.on_discard = RunDiscards(self.discards.control, self.discards)
        self.inner: InnerSubscriber[T] = InnerSubscriber(self)

    def discard(self, elements: Iterable[object], /) -> None:
        self._processor._discard(elements)

    @property
    def held_back_by(self) -> Downstream[Any] | None:
        return self._processor._fullest()

    def pass_on(self, *_: object) -> None:
        """Deliver the elements for which there is room; then end as the publisher did."""
        if self.is_passing_on or self._emitter.is_ended:
            return  # re-entered: a subscriber requests more while it receives an element
        inner, processor = self.inner, self._processor
        self.is_passing_on = True
        try:
            self._emitter.collect()  # these elements were emitted earlier
            while inner.elements and (room := processor._room()) > 0:
                processor._deliver_all(inner.take(room))
        finally:
            self.is_passing_on = False
        if not inner.is_done:
            self.refill()
        elif inner.error is not None:
            processor._fail_at_once(inner.error)
        elif not inner.elements:
            self._emitter.end()
            inner.finish()

    on_arrival = on_inner_complete = pass_on

    def on_inner_error(self, _: object, error: BaseException) -> None:
        if self._emitter.is_ended:
            self.loop_handle.report("an error after the end of a flow", error)
        else:
            self.pass_on()

    def on_room(self) -> None:
        """A subscriber has processed elements, has requested more, or has left."""
        if self.is_passing_on or self._emitter.is_ended:
            return
        if self.inner.elements or self.inner.is_done:
            self.pass_on()
        else:
            self.refill()

    def refill(self) -> None:
        """Request as many elements as are wanted, unless a quarter is still to come."""
        capacity, outstanding = self._processor._capacity, self.inner.outstanding
        if outstanding * 4 <= capacity:
            enough = outstanding + (capacity + 3) // 4
            wanted = self._processor._wanted(enough)
            if wanted >= enough:
                self.inner.request(wanted - outstanding)
            elif (
                self._processor._overflow != "wait"
                and self._processor._outputs
                and not self._is_refill_due
            ):
                self._is_refill_due = True
                entered = self._processor._outputs[0].queue.entered
                self.loop_handle.call_soon(self._refill_now, entered)

    def _refill_now(self, entered: int) -> None:
        """No policy but ``wait`` slows the publisher: request more, although nobody has room.

        Unless elements have *entered* queues since then: the subscribers are keeping up.
        """
        self._is_refill_due = False
        outputs, capacity = self._processor._outputs, self._processor._capacity
        outstanding = self.inner.outstanding
        if self._emitter.is_ended:
            return
        if not outputs or outputs[0].queue.entered != entered:
            self.refill()
        elif outstanding * 4 <= capacity:
            self.inner.request(capacity - outstanding)
