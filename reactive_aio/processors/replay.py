"""ReplayProcessor: a hot flow that repeats its last elements to later subscribers."""

from typing import TypeVar

from .._core.queues.bounded_queue import BoundedQueue, Emission, OverflowPolicy
from .._core.queues.recent import RecentElements
from ..stage import Duration, require_int, to_seconds
from .multicast import MulticastProcessor

T = TypeVar("T")


class ReplayProcessor(MulticastProcessor[T]):
    """A hot flow for any number of subscribers, which receive its last *n* elements first.

    ::

        news = ReplayProcessor[str](2)
        for text in ("a", "b", "c"):
            news.try_emit(text)
        news.subscribe(one)  # receives "b" and "c", and what follows

    With *ttl*, elements older than that are not repeated. Elements are accepted without a
    subscriber as well. After the end, a subscriber receives the last elements, and then the end.
    Everything else is as in `MulticastProcessor`, whose arguments the others are; a publisher
    upstream is kept when the last subscriber leaves.

    Demand: an element for which there is demand is delivered in the producer's call; the last
        elements as they are requested.
    Completes: by ``complete()`` or with the publisher, after the elements accepted.
    Fails: by ``fail(error)``, or with the publisher; a later subscriber receives the last elements
        before the error.
    Cancels: removes this subscriber.
    Holds: *n* elements, and for each subscriber *capacity*, or *n* if that is more; *capacity* of
        other threads, and as many of the publisher.
    Rules: 1.1, 1.11, 2.5, 3.14, 4.1, 4.2
    """

    _retains = True
    __slots__ = ("_history", "_n")

    def __init__(
        self,
        n: int,
        *,
        ttl: Duration | None = None,
        capacity: int = 256,
        overflow: OverflowPolicy = "wait",
        name: str = "",
    ) -> None:
        kind = type(self).__name__
        self._n = require_int(kind, "n", n, least=1)
        seconds = None if ttl is None else to_seconds(ttl, f"{kind}: ttl")
        self._history: RecentElements[T] = RecentElements(n, seconds, self._now)
        super().__init__(capacity, overflow=overflow, auto_cancel=False, name=name)

    def _now(self) -> float:
        return self._emitter.loop_handle.time()

    def _held_besides(self) -> int:
        return self._n + max(0, self._n - self._capacity)

    def _new_queue(self) -> BoundedQueue[T]:
        return BoundedQueue(max(self._capacity, self._n), self._overflow, self._new_drops())

    def _repeated(self) -> list[T]:
        elements = self._history.held()
        return elements[-1:] if self._overflow == "latest" else elements

    def _retain(self, elements: list[T]) -> None:
        self._history.add(elements)

    def _without_subscriber(self, count: int) -> Emission:
        self._accepted += count
        return Emission.ACCEPTED

    def _find_sole(self) -> None:
        """None, so that every element passes through `_deliver`."""
        self._sole = None
