"""OutputBuffer: a bounded queue in front of one island, for sources that emit without demand.

An element for which there is demand passes at once; others wait in the queue, whose policy decides
when it is full. The end follows the elements held. An asynchronous subscriber with unbounded demand
does not turn its island into a second queue: elements that it has not processed count as held.
"""

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, Generic, TypeVar

from ...errors import Overflow
from ..compiler.chain import Downstream
from ..compiler.discards import discard
from ..demand import UNBOUNDED, Demand
from ..flow_subscription import FlowSubscription
from ..losses import OVERTAKEN
from .age_marks import AgeMarks
from .bounded_queue import BoundedQueue, Decision, Emission

T = TypeVar("T")

_ENDED: Final[Decision[Any]] = Decision(Emission.ENDED)
_PASSED: Final[Decision[Any]] = Decision(Emission.ACCEPTED)


@dataclass(slots=True, eq=False, repr=False)
class OutputBuffer(FlowSubscription, Generic[T]):
    """The subscription that an island holds, and the end at which a source offers elements.

    *on_room* is called when there is more `room`, or more is requested, than when the source last
    looked. *on_cancel* is called once, when no more elements are accepted: the subscriber has
    cancelled, or the queue has overflowed. Both receive the output buffer.
    """

    downstream: Downstream[T]
    queue: BoundedQueue[T]
    """Its counts are up to date after `account`."""
    name: str
    _: KW_ONLY
    on_room: Callable[["OutputBuffer[T]"], object]
    on_cancel: Callable[["OutputBuffer[T]"], object]
    keeps_refused: bool = True
    """Whether the producer keeps an element that is refused after the end."""
    credit: int = field(default=0, init=False)
    """How many elements may be pushed before the demand and the queue are consulted again: 0 if the
    queue holds elements, or after the end."""
    is_ended: bool = field(default=False, init=False)
    """No more elements are accepted; those held may still be delivered."""
    is_closed: bool = field(default=False, init=False)
    """The end was sent to the island, or the island has cancelled."""
    _demand: Demand = field(default_factory=Demand, init=False)
    _granted: int = field(default=0, init=False)
    """The credit when it was last renewed: the difference has not been subtracted from `_demand`,
    nor counted in the queue."""
    reported: int = field(default=0, init=False)
    """The credit when the last element was processed: those that passed since then are not."""
    _has_left: bool = field(default=False, init=False)
    _error: BaseException | None = field(default=None, init=False)
    _age_marks: AgeMarks | None = field(default=None, init=False)

    # -- called by the source ---------------------------------------------------------------------
    def offer(self, element: T) -> Decision[T]:
        """Push *element*, or let the queue decide."""
        if self.credit:
            self.credit -= 1
            if self.downstream.push_one(element):
                self.reported = self.credit
            return _PASSED
        return self._consult_queue(element)

    def _consult_queue(self, element: T) -> Decision[T]:
        self.downstream.process()
        if self.is_ended:
            if not self.keeps_refused:
                self.discard((element,))
            return _ENDED
        self.account()
        if self.credit:
            return self.offer(element)
        decision = self.queue.offer(element)
        if decision.outcome is Emission.OVERFLOWED:
            self._overflow()
            self._finish()
            self._leave()
        return decision

    def offer_all(self, elements: list[T]) -> int:
        """Push *elements*, or let the queue decide; return how many were accepted."""
        count = len(elements)
        if count > self.credit:
            self.downstream.process()
            self.account()
        passing = self.credit
        if count > passing:
            return self._consult_queue_about_all(elements, passing)
        self.credit = passing - count
        self.downstream.push(elements)
        return count

    def _consult_queue_about_all(self, elements: list[T], passing: int) -> int:
        if self.is_ended:
            return 0
        self.credit = 0
        self.account()
        # The queue comes first: while the others pass, the subscriber may emit more.
        accepted = passing + self.queue.offer_all(elements[passing:])
        overflows = accepted < len(elements) and self.queue.policy == "fail"
        if overflows:
            self._overflow()
        if passing:
            self.downstream.push(elements[:passing])
        if overflows:
            self._finish()
            self._leave()
        return accepted

    def _overflow(self) -> None:
        self._stop_accepting(Overflow(self.name, self.queue.capacity))

    def end(self, error: BaseException | None = None) -> None:
        """Accept no more elements; complete or fail after those held."""
        if not self.is_ended:
            self._stop_accepting(error)
            self._finish()

    def _stop_accepting(self, error: BaseException | None) -> None:
        self._count_passed()
        self.is_ended, self._error = True, error
        self._renew_credit()

    def stop_source(self) -> bool:
        """Leave the source, and complete after the elements held."""
        self.on_room(self)  # it takes what was emitted before, as far as there is room
        if not self.is_ended:
            self.end()
            self._leave()
        return True

    def fail_at_once(self, error: BaseException) -> None:
        """Drop the elements held, and fail (rule 4.2)."""
        if not self.is_ended:
            self.account()
            overtaken = self.queue.discard(OVERTAKEN)
            self.end(error)
            self.discard(overtaken)

    def discard(self, elements: Iterable[object]) -> None:
        """*elements* will not be delivered: give them back."""
        discard(self.downstream.on_discard, elements)

    def flush(self) -> None:
        """Push the elements held for which there is demand."""
        queue, demand = self.queue, self._demand
        if queue.held and demand.outstanding and not self.is_closed:
            chunk = queue.take(demand.outstanding)
            demand.take(len(chunk))
            self._renew_credit()
            self.downstream.push(chunk)
            self._finish()

    def _finish(self) -> None:
        if self.is_ended and not self.is_closed and not self.queue.held:
            self.is_closed = True
            self.queue.settle()
            if self._error is None:
                self.downstream.complete()
            else:
                self.downstream.fail(self._error)

    # -- accounts ---------------------------------------------------------------------------------
    @property
    def requested(self) -> int:
        """How many elements are requested and not yet pushed."""
        self.account()
        return self._demand.outstanding

    @property
    def room(self) -> int:
        """How many elements would be accepted now."""
        if not self.credit:
            self.downstream.process()
        if self.credit != self._granted:
            self.account()
        queue = self.queue
        return queue.capacity - len(queue.held) - queue.lent

    @property
    def held(self) -> int:
        """How many elements are held, or not processed yet."""
        self.account()
        return len(self.queue.held) + self.queue.lent

    def oldest(self, now: float, waiting: int) -> float | None:
        self.account()
        queue = self.queue
        departed = queue.taken + queue.overtaken - waiting
        if self._age_marks is None:
            self._age_marks = AgeMarks()
        return self._age_marks.look(departed, departed + waiting + len(queue.held), now)

    def account(self) -> None:
        """Count what has passed, and renew the credit."""
        if self.credit != self._granted:
            self._count_passed()
            self._renew_credit()

    def _count_passed(self) -> None:
        """Subtract what has passed from the demand, and count it in the queue."""
        credit = self.credit
        self._demand.take(self._granted - credit)
        self.queue.lend(self._granted - credit, self.reported - credit)
        self._granted = self.reported = credit

    def _renew_credit(self) -> None:
        credit = 0 if self.is_ended else self._passing()
        self.credit = self._granted = self.reported = credit

    def _passing(self) -> int:
        """How many elements may pass the queue now."""
        return self.queue.passing(self._demand.outstanding)

    # -- the subscription that the island holds ---------------------------------------------------
    def request(self, n: int, /) -> None:
        self._count_passed()
        self._demand.add(n)
        self._settle()
        self.on_room(self)

    def processed(self) -> None:
        queue, credit = self.queue, self.credit
        if not credit or queue.lent:
            self._count_passed()
            self._settle()
            self.on_room(self)
            return
        unprocessed = self.reported - credit
        if unprocessed > queue.highest:
            queue.highest = unprocessed
        self.reported = credit  # and there is room, as there was for the source

    def _settle(self) -> None:
        self.queue.settle()
        self._renew_credit()
        if self.queue.held:
            self.flush()

    def cancel(self) -> None:
        if not self.is_closed:
            self._stop_accepting(None)
            self.is_closed = True
            discarded = self.queue.discard()
            self._leave()
            self.discard(discarded)

    def _leave(self) -> None:
        if not self._has_left:
            self._has_left = True
            self.on_cancel(self)


@dataclass(slots=True, eq=False, repr=False)
class SingleOutputBuffer(OutputBuffer[T]):
    """Has one element in delivery at a time: the next one passes when that has been processed.

    So the island requests all that its subscriber does, and an element costs no request of its own.
    What passes is counted at once.
    """

    credit: int = field(default=0, init=False)
    """1 at most."""

    def offer(self, element: T) -> Decision[T]:
        if not self.credit:
            return self._consult_queue(element)
        self.credit = self._granted = 0  # until `processed`, or `request`, which implies it
        queue, demand = self.queue, self._demand
        queue.taken += 1
        if demand.outstanding != UNBOUNDED:
            demand.outstanding -= 1
        if (
            self.downstream.push_one(element)
            and demand.outstanding
            and not queue.held
            and not self.is_ended
        ):
            self.credit = self._granted = 1
        return _PASSED

    def offer_all(self, elements: list[T]) -> int:
        return sum(bool(self.offer(element).outcome) for element in elements)

    def flush(self) -> None:
        if self.queue.held and self._demand.outstanding and not self.is_closed:
            chunk = self.queue.take(1)
            self._demand.take(1)
            self.downstream.push(chunk)
            self._finish()

    def _passing(self) -> int:
        return 1 if self._demand.outstanding and not self.queue.held else 0
