"""A hot flow for any number of subscribers."""

from typing import Final, TypeVar

from .._core.queues.bounded_queue import Emission
from ..stage import BoundedQueue, Downstream, FlowSubscription, OutputBuffer, OverflowPolicy
from .hot_processor import HotProcessor

__all__ = ("NO_SUBSCRIBER", "MulticastProcessor")

T = TypeVar("T")

NO_SUBSCRIBER: Final = "no_subscriber"
"""The reason counted for elements that were emitted without a subscriber."""


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

    __slots__ = ("_is_emitting",)

    def __init__(
        self, capacity: int = 256, *, overflow: OverflowPolicy = "wait", name: str = ""
    ) -> None:
        super().__init__(capacity, overflow=overflow, name=name)
        self._is_emitting = False

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
