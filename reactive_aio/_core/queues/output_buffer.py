"""OutputBuffer: a bounded queue in front of one island, for sources that emit without demand.

An element passes at once to an island that waits for one; others wait in the queue, whose policy
decides when it is full. The end follows the elements held. The island is no second queue: what it
has requested is lent to it, and stays in the queue, where the policy reaches it, until the island
processes it.
"""

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from ...errors import Overflow
from ..compiler.chain import Downstream
from ..compiler.discards import discard
from ..flow_subscription import FlowSubscription
from ..losses import OVERTAKEN
from .age_marks import AgeMarks
from .bounded_queue import LOSSY, BoundedQueue, Decision, Emission

T = TypeVar("T")

_ENDED: Final[Decision[Any]] = Decision(Emission.ENDED)
_PASSED: Final[Decision[Any]] = Decision(Emission.ACCEPTED)
_ACCEPTED: Final = Emission.ACCEPTED  # looking up a member takes as long as a call


class Hub(Protocol):
    """A source that other sources feed, and whose elements may have several readers."""

    def drain(self, output: "OutputBuffer[Any]", /) -> bool:
        """Complete what feeds it, if only *output* can receive that; return whether it does."""
        ...

    @property
    def held_back_by(self) -> Downstream[Any] | None:
        """The subscriber for which all others wait, since it has no room."""
        ...

    @property
    def source(self) -> FlowSubscription | None:
        """What the source itself receives elements from."""
        ...


@dataclass(slots=True, eq=False, repr=False)
class OutputBuffer(FlowSubscription, Generic[T]):
    """The subscription that an island holds, and the end at which a source offers elements.

    *on_room* is called when there is more `room`, or more is requested, than when the source last
    looked. *on_cancel* is called once, when no more elements are accepted: the subscriber has
    cancelled, or the queue has overflowed. Both receive the output buffer.
    """

    downstream: Downstream[T]
    queue: BoundedQueue[T]
    name: str
    _: KW_ONLY
    on_room: Callable[["OutputBuffer[T]"], object]
    on_cancel: Callable[["OutputBuffer[T]"], object]
    hub: "Hub | None" = None
    """The source, if others feed it."""
    keeps_refused: bool = True
    """Whether the producer keeps an element that is refused after the end."""
    is_ended: bool = field(default=False, init=False)
    """No more elements are accepted; those held may still be delivered."""
    is_closed: bool = field(default=False, init=False)
    """The end was sent to the island, or the island has cancelled."""
    _has_left: bool = field(default=False, init=False)
    _error: BaseException | None = field(default=None, init=False)
    _age_marks: AgeMarks | None = field(default=None, init=False)

    # -- called by the source ---------------------------------------------------------------------
    def offer(self, element: T) -> Decision[T]:
        """Have the island process *element* now, if it waits for one; else let the queue decide."""
        queue = self.queue
        if queue.elements:
            if not self.is_ended and queue.follow(element):
                return _PASSED
        # Past the queue and the wake-up, to an island that waits: else `try_emit` to a subscriber
        # takes four times as long, and a multicast 3.5 times (CPython 3.13).
        elif self.downstream.try_push(element) is not None:
            return _PASSED
        if self.is_ended:
            if not self.keeps_refused:
                self.discard((element,))
            return _ENDED
        if not queue.capacity and self.downstream.outstanding:
            queue.enter(element)  # only an element that nobody has requested is dropped
            self.flush()
            return _PASSED
        decision = queue.offer(element)
        outcome = decision.outcome
        if outcome is _ACCEPTED:
            if queue.entered - queue.rest.__length_hint__() >= queue.lent_until:
                self.flush()
        elif outcome is Emission.OVERFLOWED:
            self._stop_accepting(Overflow(self.name, queue.capacity))
            self._finish()
            self._leave()
        return decision

    def offer_all(self, elements: list[T]) -> int:
        """Offer *elements*, for which there is room under ``wait``; count the accepted."""
        queue = self.queue
        if self.is_ended:
            return 0
        if len(elements) <= queue.room:
            queue.enter_all(elements)
            self.flush()
            return len(elements)
        return sum(self.offer(element).outcome is _ACCEPTED for element in elements)

    def end(self, error: BaseException | None = None) -> None:
        """Accept no more elements; complete or fail after those held."""
        if not self.is_ended:
            self._stop_accepting(error)
            self._finish()

    def _stop_accepting(self, error: BaseException | None) -> None:
        self.is_ended, self._error = True, error

    def stop_source(self) -> bool:
        """Leave the source, and complete after the elements held."""
        if self.hub is not None and self.hub.drain(self):
            return True
        self.on_room(self)  # it takes what was emitted before, as far as there is room
        if not self.is_ended:
            self.end()
            self._leave()
        return True

    def fail_at_once(self, error: BaseException) -> None:
        """Drop the elements held that nobody has requested, and fail (rule 4.2)."""
        if not self.is_ended:
            queue = self.queue
            overtaken = queue.discard(OVERTAKEN, but=queue.lent + self.downstream.outstanding)
            self.end(error)
            self.discard(overtaken)

    def discard(self, elements: Iterable[object]) -> None:
        """*elements* will not be delivered: give them back."""
        discard(self.downstream.on_discard, elements)

    def flush(self) -> None:
        """Lend the elements held for which there is demand."""
        if count := self.queue.lend(self.downstream.outstanding):
            self.downstream.lend(self.queue.rest, count)

    def _finish(self) -> None:
        if self.is_ended and not self.is_closed and not len(self.queue):
            self.is_closed = True
            self.send_end(self._error)

    def send_end(self, error: BaseException | None) -> None:
        """End the island: complete it, or fail it with *error*."""
        if error is None:
            self.downstream.complete()
        else:
            self.downstream.fail(error)

    # -- accounts ---------------------------------------------------------------------------------
    @property
    def requested(self) -> int:
        """How many elements would be accepted now, and are requested: pushed or lent at once."""
        if self.is_closed:
            return 0
        queue, outstanding = self.queue, self.downstream.outstanding
        return min(outstanding, queue.room) if queue.capacity else outstanding

    @property
    def room(self) -> int:
        """How many more elements can be held."""
        queue = self.queue
        return queue.capacity - queue.rest.__length_hint__()

    @property
    def held(self) -> int:
        """How many elements are held."""
        return len(self.queue)

    @property
    def is_lossy(self) -> bool:
        return self.queue.policy in LOSSY

    @property
    def held_back_by(self) -> Downstream[Any] | None:
        slowest = None if self.hub is None else self.hub.held_back_by
        return None if slowest is self.downstream else slowest

    @property
    def shared_source(self) -> FlowSubscription | None:
        return None if self.hub is None else self.hub.source

    def oldest(self, now: float, waiting: int) -> float | None:
        following = self.queue.entered
        if self._age_marks is None:
            self._age_marks = AgeMarks()
        return self._age_marks.look(following - len(self.queue), following, now)

    # -- the subscription that the island holds ---------------------------------------------------
    def request(self, n: int, /) -> None:
        self.processed()

    def processed(self) -> None:
        queue = self.queue
        if queue.elements:
            queue.tidy()
            self.flush()
        if self.is_ended:
            self._finish()
        self.on_room(self)

    def cancel(self) -> None:
        if not self.is_closed:
            self._stop_accepting(None)
            self.is_closed = True
            discarded = self.queue.discard()
            self._leave()
            self.discard(discarded)

    def waiting_failure(self) -> BaseException | None:
        return None if self.is_closed else self._error

    def _leave(self) -> None:
        if not self._has_left:
            self._has_left = True
            self.on_cancel(self)
