"""Hot processors: the base with the producers' side, and the two that differ in subscribers."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from .._core.compiler.chain import Chain, PushSource
from .._core.queues.bounded_queue import DISCARDED, Emission
from .._core.queues.hot_emitter import HotEmitter
from ..errors import AlreadySubscribed, NotAnElement, Overflow
from ..flow import Flow
from ..spec import Subscription
from ..stage import (
    BoundedQueue,
    Downstream,
    FlowSubscription,
    InnerSubscriber,
    OutputBuffer,
    OverflowPolicy,
    require_capacity,
    require_policy,
    run_now,
)

if TYPE_CHECKING:
    from .._core.loop import Future
    from ..stage import LoopHandle

T = TypeVar("T")

NO_SUBSCRIBER: Final = "no_subscriber"
"""The reason counted for elements that were emitted without a subscriber."""


@dataclass(frozen=True, slots=True)
class ProcessorStats:
    """The counts of a processor, and the state of its slowest subscriber."""

    accepted: int
    """Elements that were accepted."""
    refused: int
    """Emissions that were refused because a queue was full."""
    dropped: Mapping[str, int]
    """Elements dropped, by reason; counted once for each subscriber that missed one."""
    subscribers: int
    held: int
    """The most elements held for one subscriber now."""
    highest: int
    """The most elements ever held for one subscriber."""
    requested: int
    """The least outstanding demand of a subscriber; 0 without one."""
    is_done: bool


class HotProcessor(Flow[T], ABC):
    """A hot flow that producers or a publisher emit into; the base of all processors."""

    __slots__ = ("_accepted", "_capacity", "_dropped", "_emitter", "_error", "_feed", "_highest",
                 "_is_done", "_is_emitting", "_name", "_outputs", "_overflow", "_refused",
                 "_subscriber_waiters")  # fmt: skip

    def __init__(
        self, capacity: int = 256, *, overflow: OverflowPolicy = "wait", name: str = ""
    ) -> None:
        kind = type(self).__name__
        self._name = name or kind
        self._capacity = require_capacity(capacity, kind)
        self._overflow: OverflowPolicy = require_policy(overflow, kind)
        latest = overflow == "latest"
        holds = 2 if latest else capacity
        head = PushSource(
            self._name,
            cast("Callable[[Downstream[Any]], FlowSubscription]", self._attach),
            holds=holds + 2 * capacity,
            checked=True,
            window=int(latest),
            one_by_one=latest,
        )
        super().__init__(Chain(head))
        self._emitter: HotEmitter[T] = HotEmitter(
            self._name, capacity, self._deliver, self._is_full, self._finish
        )
        self._feed: _UpstreamFeed[T] | None = None
        self._outputs: tuple[OutputBuffer[T], ...] = ()
        """The output buffers of the current subscribers."""
        self._is_emitting = False  # an element is being delivered to several subscribers
        self._is_done = False
        self._error: BaseException | None = None
        self._accepted = self._refused = self._highest = 0
        self._dropped: Counter[str] = Counter()
        self._subscriber_waiters: list[tuple[int, Future[None]]] = []

    def __repr__(self) -> str:
        state = "done" if self._emitter.is_ended else f"{len(self._outputs)} subscribers"
        return f"<{self._name} {state}>"

    # -- producing --------------------------------------------------------------------------------
    def try_emit(self, element: T) -> Emission:
        """Emit *element* now, on the loop's thread; true if it was accepted."""
        return self._count_refused(self._emitter.try_emit(element))

    async def emit(self, element: T) -> Emission:
        """Emit *element*; under ``"wait"`` and ``"fail"``, wait while a queue is full."""
        return self._count_refused(await self._emitter.emit(element))

    def emit_threadsafe(self, element: T) -> Emission:
        """Emit from any thread: REFUSED when *capacity* elements already wait for the loop.

        A policy that drops is applied later, on the loop.
        """
        return self._emitter.emit_threadsafe(element)

    def complete(self) -> None:
        """Complete every subscriber, after the elements accepted. From any thread."""
        self._emitter.end()

    def fail(self, error: BaseException) -> None:
        """Fail every subscriber, after the elements accepted. From any thread."""
        if cast("object", error) is None:
            raise NotAnElement("fail(None): an exception is needed")
        self._emitter.end(error)

    async def wait_for_subscribers(self, count: int = 1) -> None:
        """Wait until there are *count* subscribers, or the processor has ended."""
        if len(self._outputs) < count and not self._emitter.is_ended:
            waiter: Future[None] = self._emitter.loop_handle.create_future()
            self._subscriber_waiters.append((count, waiter))
            await waiter

    def stats(self) -> ProcessorStats:
        """A snapshot of the counts."""
        outputs, queues = self._outputs, self._queues()
        dropped = sum((queue.dropped for queue in queues), self._dropped)
        dropped[DISCARDED] += self._emitter.lost_count
        return ProcessorStats(
            accepted=self._accepted,
            refused=self._refused,
            dropped={reason: count for reason, count in dropped.items() if count},
            subscribers=sum(not output.is_closed for output in outputs),
            held=max((len(queue) + queue.lent for queue in queues), default=0),
            highest=max([self._highest, *(queue.highest for queue in queues)]),
            requested=min((output.demand.outstanding for output in outputs), default=0),
            is_done=self._emitter.is_ended,
        )

    def _count_refused(self, outcome: Emission) -> Emission:
        if outcome is Emission.REFUSED:
            self._refused += 1
        return outcome

    # -- the subscriber: signals of the publisher upstream ----------------------------------------
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Subscribe to a publisher upstream; a second one is cancelled (rule 2.5)."""
        self._upstream_feed().inner.on_subscribe(subscription)

    def on_next(self, element: T, /) -> None:
        """Take an element of the publisher, which was requested when there was room for it."""
        self._upstream_feed().inner.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        """Fail with the publisher, after its elements (rule 4.2)."""
        self._upstream_feed().inner.on_error(error)

    def on_complete(self) -> None:
        """Complete with the publisher, after its elements."""
        self._upstream_feed().inner.on_complete()

    def _upstream_feed(self) -> "_UpstreamFeed[T]":
        feed = self._feed
        if feed is None:
            feed = self._feed = _UpstreamFeed(self)
            if self._emitter.is_ended:
                feed.inner.cancel()
            if any(output.demand for output in self._outputs):
                self._refill(feed)
        return feed

    def _refill(self, feed: "_UpstreamFeed[T]") -> None:
        """Request as many elements as the slowest subscriber has room for."""
        if feed.inner.outstanding * 4 > self._capacity or not self._outputs:
            return  # a quarter is still to come, or there is no subscriber
        held = max((len(queue) + queue.lent for queue in self._queues()), default=0)
        missing = self._capacity - held - feed.inner.outstanding
        if missing * 4 >= self._capacity:
            feed.inner.request(missing)

    # -- subscribers: one or many -----------------------------------------------------------------
    def _queues(self) -> list[BoundedQueue[T]]:
        return [output.queue for output in self._outputs]

    @abstractmethod
    def _attach(self, downstream: Downstream[T]) -> FlowSubscription:
        """Accept a subscriber, or refuse it."""

    def _output_buffer(self, downstream: Downstream[T], queue: BoundedQueue[T]) -> OutputBuffer[T]:
        self._emitter.require_loop("subscribe()", "subscribe where its producers run")
        _ = self._emitter.loop_handle  # binds the processor to the running loop
        output = OutputBuffer(
            downstream, queue, self._name, on_room=self._on_room, on_cancel=self._on_cancel
        )
        if self._is_done:
            output.end(self._error)
        return output

    def _wake_waiters(self) -> None:
        """Wake those that wait for subscribers: there are enough, or there will be no more."""
        present, is_ended = len(self._outputs), self._emitter.is_ended
        for pending in list(self._subscriber_waiters):
            count, waiter = pending
            if is_ended or count <= present:
                self._subscriber_waiters.remove(pending)
                if not waiter.done():
                    waiter.set_result(None)

    @abstractmethod
    def _on_cancel(self, output: OutputBuffer[T]) -> None:
        """A subscriber has cancelled, or its queue has overflowed."""

    def _on_room(self) -> None:
        """A subscriber has processed elements, or has requested more."""
        self._emitter.on_room()
        if self._feed is not None:
            self._feed.pass_on()

    # -- called by the emitter --------------------------------------------------------------------
    @abstractmethod
    def _deliver(self, element: T) -> Emission:
        """Queue *element* for one subscriber, or for all."""

    def _is_full(self) -> bool:
        """Whether a producer that can wait should wait."""
        can_wait = self._overflow in ("wait", "fail")
        return can_wait and any(queue.full for queue in self._queues())

    def _finish(self, error: BaseException | None) -> None:
        self._is_done, self._error = True, error
        if self._feed is not None:
            self._feed.inner.cancel()
        for output in self._outputs:
            output.end(error)
        self._wake_waiters()


class _UpstreamFeed(Generic[T]):
    """Emits a publisher's elements into a processor; refused elements wait in `inner`."""

    __slots__ = (
        "_emitter",
        "_is_passing_on",
        "_processor",
        "cleanup",
        "inner",
        "loop_handle",
        "submit",
    )

    def __init__(self, processor: HotProcessor[T]) -> None:
        self._processor = processor
        self._emitter = processor._emitter
        self._is_passing_on = False
        self.loop_handle: LoopHandle = self._emitter.loop_handle
        self.submit: Callable[..., object] = run_now
        self.cleanup = None  # no single consumer awaits the cleanup of the publisher
        self.inner: InnerSubscriber[T] = InnerSubscriber(self)

    def pass_on(self, *_: object) -> None:
        """Emit the elements received until one is refused; then end as the publisher did."""
        inner = self.inner
        if self._is_passing_on:
            return  # re-entered: a subscriber requests more while it receives an element
        self._is_passing_on = True
        try:
            while inner.elements:
                if self._emitter.try_emit(inner.elements[0]) is Emission.REFUSED:
                    return
                inner.take(1)
        finally:
            self._is_passing_on = False
        if inner.is_done:
            self._emitter.end(inner.error)
        else:
            self._processor._refill(self)

    on_arrival = on_inner_complete = on_inner_error = pass_on


class UnicastProcessor(HotProcessor[T]):
    """A hot flow for one subscriber; elements emitted before it subscribes wait for it.

    ::

        queue = UnicastProcessor[str](capacity=100)
        queue.try_emit("a")
        queue.complete()
        [x async for x in queue]  # ["a"]

    Up to *capacity* elements wait. When the queue is full, *overflow* decides what happens to an
    element of a producer that cannot wait: ``"wait"`` (the element is refused), ``"drop_newest"``,
    ``"drop_oldest"``, ``"latest"`` (only the latest is held) or ``"fail"`` (the flow fails with
    `Overflow`, after the elements held).

    A second subscriber fails with `AlreadySubscribed`. When the subscriber cancels, the processor
    ends: waiting elements are discarded, emissions return ``ENDED``, and a publisher upstream is
    cancelled.

    Demand: an element for which there is demand is delivered in the producer's call. Of a publisher
        upstream, as many elements are requested as there is room for, from the first request on.
    Completes: by ``complete()`` or with the publisher, after the elements accepted.
    Fails: by ``fail(error)`` or with the publisher, after the elements accepted.
    Cancels: ends the processor.
    Holds: *capacity* elements, as many again of other threads, and as many of the publisher.
    Rules: 1.1, 1.11, 2.5, 4.1, 4.2
    """

    __slots__ = ("_has_served", "_queue")

    def __init__(
        self, capacity: int = 256, *, overflow: OverflowPolicy = "wait", name: str = ""
    ) -> None:
        super().__init__(capacity, overflow=overflow, name=name)
        self._queue: BoundedQueue[T] = BoundedQueue(capacity, overflow)
        self._has_served = False

    def _queues(self) -> list[BoundedQueue[T]]:
        return [self._queue]

    def _attach(self, downstream: Downstream[T]) -> FlowSubscription:
        if self._has_served:
            raise AlreadySubscribed(
                f"rule 1.11: {self._name} serves one subscriber, and has one or had one; "
                "for several, use MulticastProcessor"
            )
        self._has_served = True
        output = self._output_buffer(downstream, self._queue)
        self._outputs = (output,)
        self._wake_waiters()
        return output

    def _on_cancel(self, output: OutputBuffer[T]) -> None:
        self._outputs = ()
        self._is_done = True
        self._emitter.shut_down()
        if self._feed is not None:
            self._feed.inner.cancel()
        self._wake_waiters()

    def _deliver(self, element: T) -> Emission:
        if self._outputs:
            outcome = self._outputs[0].offer(element).outcome
        else:
            outcome = self._queue.offer(element).outcome
            if outcome is Emission.OVERFLOWED:
                self._emitter.end(Overflow(self._name, self._capacity))
        self._accepted += outcome is Emission.ACCEPTED
        return outcome


class MulticastProcessor(HotProcessor[T]):
    """A hot flow for any number of subscribers, each with its own demand.

    ::

        news = MulticastProcessor[str](capacity=100, overflow="drop_oldest")
        news.subscribe(one)
        news.map(str.upper).subscribe(other)
        news.try_emit("a")

    A subscriber receives the elements emitted while it is subscribed; up to *capacity* elements
    wait for each subscriber. When the queue of the slowest one is full, *overflow* decides what
    happens to an element of a producer that cannot wait: ``"wait"`` (the element is refused and no
    subscriber receives it: the slowest holds the others back), ``"drop_newest"``,
    ``"drop_oldest"``, ``"latest"`` (only the slow subscriber misses elements), ``"fail"`` (the slow
    subscriber fails with `Overflow`).

    Without a subscriber, emitted elements are dropped and counted, and nothing is requested of a
    publisher upstream; ``await wait_for_subscribers()`` avoids the loss. Cancelling removes one
    subscriber; after the last one the processor stays open for new subscribers. A subscriber that
    subscribes after the end receives the terminal signal.

    Demand: an element for which there is demand is delivered in the producer's call. Of a publisher
        upstream, as many elements are requested as the slowest subscriber has room for.
    Completes: by ``complete()`` or with the publisher, after the elements accepted.
    Fails: by ``fail(error)`` or with the publisher, after the elements accepted.
    Cancels: removes this subscriber only.
    Holds: *capacity* elements for each subscriber, as many again of other threads, and as many of
        the publisher.
    Rules: 1.1, 1.11, 2.5, 4.1, 4.2
    """

    __slots__ = ()

    def _attach(self, downstream: Downstream[T]) -> FlowSubscription:
        output = self._output_buffer(downstream, BoundedQueue(self._capacity, self._overflow))
        if not self._is_done:
            self._outputs = (*self._outputs, output)
            self._wake_waiters()
        return output

    def _on_cancel(self, output: OutputBuffer[T]) -> None:
        self._outputs = tuple(each for each in self._outputs if each is not output)
        self._dropped += output.queue.dropped
        self._highest = max(self._highest, output.queue.highest)
        if self._outputs:
            self._on_room()  # it may have been the slowest
        else:
            self._emitter.on_room()  # no subscriber holds the producers back now

    def _deliver(self, element: T) -> Emission:
        subscribers = self._outputs
        if not subscribers:
            self._dropped[NO_SUBSCRIBER] += 1
            return Emission.DROPPED
        if self._overflow == "wait" and any(each.queue.full for each in subscribers):
            return Emission.REFUSED
        if self._is_emitting:  # a subscriber emits: deliver the previous element to all first
            for each in subscribers:
                each.flush()
        outcomes = {each.put(element).outcome for each in subscribers}
        outermost, self._is_emitting = not self._is_emitting, True
        try:
            for each in subscribers:
                each.flush()
        finally:
            self._is_emitting = not outermost
        if Emission.ACCEPTED in outcomes:
            self._accepted += 1
            return Emission.ACCEPTED
        return outcomes.pop()
