"""A hot flow for one subscriber."""

from typing import TypeVar

from .._core.compiler.chain_sources import Downstream
from .._core.queues.bounded_queue import BoundedQueue, Emission, OverflowPolicy
from .._core.queues.output_buffer import OutputBuffer
from ..errors import AlreadySubscribed, Overflow
from ..spec import Subscription
from .hot import Hot

__all__ = ("UnicastProcessor",)

T = TypeVar("T")


class UnicastProcessor(Hot[T]):
    """A hot flow for one subscriber; what is emitted before it comes waits for it.

    ::

        queue = UnicastProcessor[str](bound=100)
        queue.try_emit("a")
        queue.complete()
        [x async for x in queue]  # ["a"]

    At most *bound* elements wait. When there is no room, *overflow* says what happens to an element
    of a producer that cannot wait: ``"buffer"`` (it is refused), ``"drop_newest"``,
    ``"drop_oldest"``, ``"latest"`` (only the latest is held) or ``"fail"`` (the flow fails with
    `Overflow`, behind the elements held).

    A second subscriber fails with `AlreadySubscribed`. When its subscriber cancels, the processor
    has ended: what waits is discarded, producers are told ENDED, a publisher that feeds it is
    cancelled.

    Demand: unmet demand lets elements through at once, in the call of the producer. A publisher
        that feeds it is asked from the first request on, for as many as there is room for.
    Completes: by ``complete()`` or with the publisher, behind the elements accepted.
    Fails: by ``fail(error)`` or with the publisher, behind the elements accepted.
    Cancels: ends it.
    Holds: *bound* elements, and as many again each of other threads and of the publisher.
    Rules: 1.1, 1.11, 2.5, 4.1, 4.2
    """

    __slots__ = ("_one", "_queue", "_served")

    def __init__(
        self, bound: int = 256, *, overflow: OverflowPolicy = "buffer", name: str = ""
    ) -> None:
        super().__init__(bound, overflow=overflow, name=name)
        self._queue: BoundedQueue[T] = BoundedQueue(bound, overflow)
        self._one: OutputBuffer[T] | None = None
        self._served = False

    def _outlets(self) -> tuple[OutputBuffer[T], ...]:
        return () if self._one is None else (self._one,)

    def _queues(self) -> list[BoundedQueue[T]]:
        return [self._queue]

    def _attach(self, downstream: Downstream[T]) -> Subscription:
        if self._served:
            raise AlreadySubscribed(
                f"rule 1.11: {self._name} serves one subscriber, and has one or had one; "
                "for several, use MulticastProcessor"
            )
        self._served = True
        self._one = outlet = self._outlet(downstream, self._queue)
        self._joined()
        return outlet

    def _left(self, outlet: OutputBuffer[T]) -> None:
        self._one = None
        self._ended = True
        self._gate.shut()
        if self._feed is not None:
            self._feed.inner.cancel()
        self._let_go()

    def _deliver(self, element: T) -> Emission:
        if self._one is not None:
            outcome = self._one.offer(element).outcome
        else:
            outcome = self._queue.offer(element).outcome
            if outcome is Emission.OVERFLOWED:
                self._gate.end(Overflow(self._name, self._bound))
        self._accepted += outcome is Emission.ACCEPTED
        return outcome
