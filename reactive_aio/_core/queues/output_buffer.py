"""OutputBuffer: a bounded queue in front of one island, for sources that emit without demand.

An element for which there is demand passes at once; others wait in the queue, whose policy decides
when it is full. The end follows the elements held. An asynchronous subscriber with unbounded demand
does not turn its island into a second queue: elements that it has not processed count as held.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, Generic, TypeVar

from ...errors import Overflow
from ..compiler.chain import Downstream
from ..demand import Demand
from ..flow_subscription import FlowSubscription
from .bounded_queue import BoundedQueue, Decision, Emission

T = TypeVar("T")

_ENDED: Final[Decision[Any]] = Decision(Emission.ENDED)
_PASSED: Final[Decision[Any]] = Decision(Emission.ACCEPTED)


@dataclass(slots=True, eq=False, repr=False)
class OutputBuffer(FlowSubscription, Generic[T]):
    """The subscription that an island holds, and the end at which a source offers elements.

    *on_room* is called when elements have been processed or requested; *on_cancel* when no more
    elements are accepted: the subscriber has cancelled, or the queue has overflowed.
    """

    downstream: Downstream[T]
    queue: BoundedQueue[T]
    name: str
    _: KW_ONLY
    on_room: Callable[[], object]
    on_cancel: Callable[["OutputBuffer[T]"], object]
    demand: Demand = field(default_factory=Demand, init=False)
    is_ended: bool = field(default=False, init=False)
    """No more elements are accepted; those held may still be delivered."""
    is_closed: bool = field(default=False, init=False)
    """The end was sent to the island, or the island has cancelled."""
    _error: BaseException | None = field(default=None, init=False)

    # -- called by the source ---------------------------------------------------------------------
    def offer(self, element: T) -> Decision[T]:
        """Push *element*, or let the queue decide."""
        if self.is_ended:
            return _ENDED
        if self.demand.outstanding and self.queue.passes():
            self.demand.take(1)
            self.downstream.push([element])
            return _PASSED
        return self.put(element)

    def put(self, element: T) -> Decision[T]:
        """Let the queue decide about *element*; call `flush` afterwards."""
        if self.is_ended:
            return _ENDED
        decision = self.queue.offer(element)
        if decision.outcome is Emission.OVERFLOWED:
            self.end(Overflow(self.name, self.queue.capacity))
            self.on_cancel(self)
        return decision

    def end(self, error: BaseException | None = None) -> None:
        """Accept no more elements; complete or fail after those held."""
        if not self.is_ended:
            self.is_ended = True
            self._error = error
            self._finish()

    def flush(self) -> None:
        """Push the elements for which there is demand."""
        queue, demand = self.queue, self.demand
        if queue and demand.outstanding and not self.is_closed:
            chunk = queue.take(demand.outstanding)
            demand.take(len(chunk))
            self.downstream.push(chunk)
            self._finish()

    def _finish(self) -> None:
        if self.is_ended and not self.is_closed and not self.queue:
            self.is_closed = True
            self.queue.settle()
            if self._error is None:
                self.downstream.complete()
            else:
                self.downstream.fail(self._error)

    # -- the subscription that the island holds ---------------------------------------------------
    def request(self, n: int, /) -> None:
        self.demand.add(n)
        self.processed()

    def processed(self) -> None:
        self.queue.settle()
        self.flush()
        self.on_room()

    def cancel(self) -> None:
        if not self.is_closed:
            self.is_ended = self.is_closed = True
            self.queue.discard()
            self.on_cancel(self)
