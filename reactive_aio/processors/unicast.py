"""UnicastProcessor: a hot flow for one subscriber."""

from collections.abc import Iterable
from typing import TypeVar

from .._core.queues.bounded_queue import BoundedQueue, Emission, OverflowPolicy
from .._core.queues.output_buffer import OutputBuffer
from ..errors import AlreadySubscribed, Overflow
from ..stage import UNBOUNDED, Downstream, FlowSubscription
from .hot_processor import HotProcessor

T = TypeVar("T")


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
    `Overflow`, after the elements held). A publisher upstream can wait: under ``"wait"`` it sends
    no more than there is room for. Under any other policy it never waits.

    A second subscriber fails with `AlreadySubscribed`. When the subscriber cancels, the processor
    ends: waiting elements are discarded, emissions return ``ENDED``, and a publisher upstream is
    cancelled.

    Demand: an element for which there is demand is delivered in the producer's call. Of a publisher
        upstream, as many elements are requested as there is room for, from the first request on.
    Completes: by ``complete()`` or with the publisher, after the elements accepted.
    Fails: by ``fail(error)``, after the elements accepted; with the publisher at once, and the
        elements that are not requested yet are dropped.
    Cancels: ends the processor.
    Holds: *capacity* elements, as many again of other threads, and as many of the publisher.
    Rules: 1.1, 1.11, 2.5, 4.1, 4.2
    """

    __slots__ = ("_has_served", "_output", "_queue")
    _is_shared = False

    def __init__(
        self, capacity: int = 256, *, overflow: OverflowPolicy = "wait", name: str = ""
    ) -> None:
        super().__init__(capacity, overflow=overflow, name=name)
        self._queue: BoundedQueue[T] = BoundedQueue(capacity, overflow, self._drops)
        self._has_served = False
        self._output: OutputBuffer[T] | None = None

    def _queues(self) -> list[BoundedQueue[T]]:
        return [self._queue]

    def _attach(self, downstream: Downstream[T]) -> FlowSubscription:
        if self._has_served:
            raise AlreadySubscribed(
                f"rule 1.11: {self._name} serves one subscriber, and has one or had one; "
                "for several, use MulticastProcessor"
            )
        self._has_served = True
        self._queue.drops = self._new_drops()
        output = self._output_buffer(downstream, self._queue)
        self._output = output
        self._outputs = (output,)
        self._sole = output
        self._wake_waiters()
        return output

    def _on_cancel(self, output: OutputBuffer[T]) -> None:
        self._outputs = ()
        self._sole = None
        self._shut_down()
        self._output = None

    def _discard(self, elements: Iterable[object]) -> None:
        if self._output is not None:
            self._output.discard(elements)

    # -- delivering -------------------------------------------------------------------------------
    def _deliver(self, element: T) -> Emission:
        if self._outputs:
            outcome = self._outputs[0].offer(element).outcome
        else:
            outcome = self._queue.offer(element).outcome
            if outcome is Emission.OVERFLOWED:
                self._emitter.end(Overflow(self._name, self._capacity))
        if outcome is Emission.ACCEPTED:
            self._accepted += 1
        return outcome

    def _deliver_all(self, elements: list[T]) -> None:
        for output in self._outputs:
            self._accepted += output.offer_all(elements)

    def _room(self) -> int:
        return self._queue.room if self._overflow == "wait" else UNBOUNDED

    def _wanted(self, enough: int) -> int:
        if not self._outputs:
            return 0
        return self._capacity if self._overflow == "latest" else self._queue.room

    def _is_full(self) -> bool:
        if self._overflow not in ("wait", "fail"):
            return False
        return self._queue.is_full
