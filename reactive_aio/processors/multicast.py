"""A hot flow for any number of subscribers."""

from typing import Final, TypeVar

from .._core.compiler.chain_sources import Downstream
from .._core.queues.bounded_queue import BoundedQueue, Emission, OverflowPolicy
from .._core.queues.output_buffer import OutputBuffer
from ..spec import Subscription
from .hot import Hot

__all__ = ("NOBODY", "MulticastProcessor")

T = TypeVar("T")

NOBODY: Final = "no_subscriber"
"""The reason counted for elements that were emitted while nobody was subscribed."""


class MulticastProcessor(Hot[T]):
    """A hot flow for any number of subscribers, each with its own demand.

    ::

        news = MulticastProcessor[str](bound=100, overflow="drop_oldest")
        news.subscribe(one)
        news.map(str.upper).subscribe(other)
        news.try_emit("a")

    Each subscriber gets what is emitted while it is subscribed; at most *bound* elements wait for
    each. When there is no room for the slowest, *overflow* says what happens to an element of a
    producer that cannot wait: ``"buffer"`` (it is refused, and goes to nobody: the slowest holds
    the others back), ``"drop_newest"``, ``"drop_oldest"``, ``"latest"`` (the slow subscriber misses
    elements, the others do not), ``"fail"`` (the slow subscriber fails with `Overflow`).

    While nobody is subscribed, elements emitted are dropped, and counted; ``await subscribed()``
    avoids that. A publisher that feeds it is not asked for any meanwhile. Cancelling removes one
    subscriber; when the last one has gone the processor goes on, for those that may come. Whoever
    subscribes after the end gets the terminal signal.

    Demand: unmet demand lets elements through at once, in the call of the producer. A publisher
        that feeds it is asked for as many as the slowest subscriber has room for.
    Completes: by ``complete()`` or with the publisher, behind the elements accepted.
    Fails: by ``fail(error)`` or with the publisher, behind the elements accepted.
    Cancels: removes this subscriber only.
    Holds: *bound* elements for each subscriber, and as many again each of other threads and of the
        publisher.
    Rules: 1.1, 1.11, 2.5, 4.1, 4.2
    """

    __slots__ = ("_emitting", "_subscribers")

    def __init__(
        self, bound: int = 256, *, overflow: OverflowPolicy = "buffer", name: str = ""
    ) -> None:
        super().__init__(bound, overflow=overflow, name=name)
        self._subscribers: tuple[OutputBuffer[T], ...] = ()
        self._emitting = False

    def _outlets(self) -> tuple[OutputBuffer[T], ...]:
        return self._subscribers

    def _attach(self, downstream: Downstream[T]) -> Subscription:
        outlet = self._outlet(downstream, BoundedQueue(self._bound, self._overflow))
        if not self._ended:
            self._subscribers = (*self._subscribers, outlet)
            self._joined()
        return outlet

    def _left(self, outlet: OutputBuffer[T]) -> None:
        self._subscribers = tuple(each for each in self._subscribers if each is not outlet)
        self._dropped += outlet.queue.dropped
        self._highest = max(self._highest, outlet.queue.highest)
        if self._subscribers:
            self._room()  # it may have been the slowest
        else:
            self._gate.room()  # nobody holds the producers back any more

    def _deliver(self, element: T) -> Emission:
        subscribers = self._subscribers
        if not subscribers:
            self._dropped[NOBODY] += 1
            return Emission.DROPPED
        if self._overflow == "buffer" and any(each.queue.full for each in subscribers):
            return Emission.REFUSED
        if self._emitting:  # a subscriber emits: first everybody gets what it got
            for each in subscribers:
                each.flush()
        outcomes = {each.put(element).outcome for each in subscribers}
        outermost, self._emitting = not self._emitting, True
        try:
            for each in subscribers:
                each.flush()
        finally:
            self._emitting = not outermost
        if Emission.ACCEPTED in outcomes:
            self._accepted += 1
            return Emission.ACCEPTED
        return outcomes.pop()
