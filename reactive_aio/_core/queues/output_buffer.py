"""Outlet: a bounded queue in front of one island, for sources that emit when they please.

What has demand goes through at once; the rest waits in the queue, whose policy decides when it is
full. An end waits behind the elements held. An asynchronous subscriber that asks for everything
does not make its island a second queue: what it has not processed counts against the bound.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from ...errors import Overflow
from ..compiler.chain_sources import Downstream
from ..demand import Demand
from ..flow_subscription import FlowSubscription
from .bounded_queue import BoundedQueue, Decision, Emission

__all__ = ("OutputBuffer",)

T = TypeVar("T")

_ENDED: Final[Decision[Any]] = Decision(Emission.ENDED)
_PASSED: Final[Decision[Any]] = Decision(Emission.ACCEPTED)


class OutputBuffer(FlowSubscription, Generic[T]):
    """The subscription that an island sees, and the end at which a source offers elements.

    *room* is called when elements have been processed, or more are wanted; *gone* when nothing is
    wanted any more: the subscriber has cancelled, or the queue has overflowed.
    """

    __slots__ = (
        "_downstream",
        "_error",
        "_gone",
        "_room",
        "closed",
        "demand",
        "ended",
        "name",
        "queue",
    )

    def __init__(
        self,
        downstream: Downstream[T],
        queue: BoundedQueue[T],
        name: str,
        *,
        room: Callable[[], object],
        gone: Callable[["OutputBuffer[T]"], object],
    ) -> None:
        self._downstream = downstream
        self._room = room
        self._gone = gone
        self._error: BaseException | None = None
        self.queue: BoundedQueue[T] = queue
        self.name: str = name
        self.demand: Demand = Demand()
        self.ended: bool = False
        """Nothing more is taken in; what is held may still go out."""
        self.closed: bool = False
        """The island has been told the end, or has cancelled."""

    # -- for the source -------------------------------------------------------------------------
    def offer(self, element: T) -> Decision[T]:
        """Hand *element* over, or let the queue decide."""
        if self.ended:
            return _ENDED
        if self.demand.outstanding and self.queue.passes():
            self.demand.take(1)
            self._downstream.push([element])
            return _PASSED
        return self.put(element)

    def put(self, element: T) -> Decision[T]:
        """Let the queue decide; to be followed by `flush`."""
        if self.ended:
            return _ENDED
        decision = self.queue.offer(element)
        if decision.outcome is Emission.OVERFLOWED:
            self._overflow()
        return decision

    def _overflow(self) -> None:
        self.end(Overflow(self.name, self.queue.capacity))
        self._gone(self)

    def end(self, error: BaseException | None = None) -> None:
        """Take nothing more in; complete or fail behind what is held."""
        if not self.ended:
            self.ended = True
            self._error = error
            self._finish()

    def flush(self) -> None:
        """Hand over what there is demand for."""
        queue, demand = self.queue, self.demand
        if queue and demand.outstanding and not self.closed:
            chunk = queue.take(demand.outstanding)
            demand.take(len(chunk))
            self._downstream.push(chunk)
            self._finish()

    def _finish(self) -> None:
        if self.ended and not self.closed and not self.queue:
            self.closed = True
            self.queue.settle()
            if self._error is None:
                self._downstream.complete()
            else:
                self._downstream.fail(self._error)

    # -- the subscription that the island sees ----------------------------------------------------
    def request(self, n: int, /) -> None:
        self.demand.add(n)
        self.processed()

    def processed(self) -> None:
        """All that was handed over has been processed."""
        self.queue.settle()
        self.flush()
        self._room()

    def cancel(self) -> None:
        if not self.closed:
            self.ended = self.closed = True
            self.queue.discard()
            self._gone(self)
