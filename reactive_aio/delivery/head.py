"""Head: the beginning of a `DeliveryFlow`. It keeps each delivery until that is settled."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import random
from typing import TYPE_CHECKING, Any, Final

from .._core.compiler.error_notes import add_bounded_note
from .._core.observation.awaited import Wait, wait_of
from .._core.upstreams.merging import combine_errors
from ..errors import Interrupted, WrongLoop
from ..retry import Attempts
from ..stage import Coordinator, InnerSubscriber
from .delivery import Delivery
from .errors import Unfinished
from .nack_policy import Decision, NackPolicy, Next, Tries, decide
from .session import Session
from .source_calls import SourceCall, SourceCalls
from .source_sides import Record, SourceSide
from .ties import Failure, Root, Tied

if TYPE_CHECKING:
    from .._core.loop import Future, TimerHandle
    from ..flow import Flow

_NOTE: Final = "deliveries: "
_NO_POLICY: Final = (
    "an element was nacked, and the source takes none back; give nack=, or deliver it again with "
    "nack_on_error(policy)"
)
_NO_DEAD_LETTER: Final = (
    "this was the last attempt that nack_on_error allows; give dead_letter=, a function that keeps "
    "such an element elsewhere, to go on without it"
)
MakeSide = Callable[["Head"], SourceSide]


@dataclass(frozen=True, slots=True)
class HeadOptions:
    """What is fixed when a `DeliveryFlow` is made."""

    name: str
    make_side: MakeSide
    limit: int
    ack_concurrency: int
    ack_timeout: float
    policy: NackPolicy | None = None


@dataclass(eq=False, repr=False)
class Head(Coordinator[Tied[Any]]):
    """Requests deliveries while fewer than *limit* are kept, and emits them with their ties.

    The source's end is passed on when nothing is kept any more. A delivery that is still kept when
    the subscription is over is given back.
    """

    _source: "Flow[Any]"
    _session: Session
    _options: HeadOptions

    def __post_init__(self) -> None:
        super().__post_init__()
        options = self._options
        self._calls = SourceCalls(
            self,
            options.ack_concurrency,
            options.ack_timeout,
            partial(self.submit, self._on_called),
            partial(self.submit, self._on_call_failed),
        )
        self._side = options.make_side(self)
        self._records: dict[Record, None] = {}
        """The deliveries that are neither acknowledged nor given back."""
        self._ready: deque[Record] = deque()
        self._delayed: dict[Record, TimerHandle] = {}
        self._received = 0
        self._done = 0
        """How many were acknowledged as their work was done; not those that were buried."""
        self._settled: deque[tuple[Record, Failure | None]] = deque()
        """The settlements of this turn of the event loop."""
        self._held = 0
        self._calling = 0
        """How many calls have no result yet."""
        self._is_silent = False
        """Whether the source is not called any more, as it has failed after the end."""
        self._buries = True
        """Whether dead letters are written; not after the end, once one has failed there."""
        self._is_advancing = False
        """Whether `_advance` is submitted."""
        self._is_source_done = False
        self._source_error: BaseException | None = None
        self._session.open(self)

    # -- decisions --------------------------------------------------------------------------------
    def on_start(self) -> None:
        # What the source holds when it is cancelled is given back as well.
        source = self._source.do_on_discard(self._discarded, only=Delivery)
        self._inner: InnerSubscriber[Any] = self.subscribe_to(source)

    def on_demand(self) -> None:
        self._advance_soon()

    def on_elements(self, inner: InnerSubscriber[Any]) -> None:
        elements = deque(inner.take(len(inner.elements)))
        try:
            while elements:
                self._admit(elements.popleft())
        finally:
            self.discard(elements)  # if one of them was not a delivery
        self._advance_soon()

    def on_inner_complete(self, inner: InnerSubscriber[Any]) -> None:
        self._is_source_done = True
        self.on_elements(inner)

    def on_inner_error(self, inner: InnerSubscriber[Any], error: BaseException) -> None:
        self._source_error = error
        self.on_inner_complete(inner)

    def on_stop(self) -> None:
        for timer in self._delayed.values():
            timer.cancel()
        super().discard([*self._ready, *self._delayed])
        self._ready.clear()
        self._delayed.clear()
        self._session.end_source()

    def discard(self, elements: Iterable[object]) -> None:
        for element in elements:
            super().discard((element,))
            if not isinstance(element, Tied):  # that one is kept
                self._discarded(element)

    @property
    def tasks(self) -> "Sequence[Future[Any]]":
        return [*super().tasks, *self._calls.tasks]

    # -- what it does, for reports ----------------------------------------------------------------
    @property
    def held(self) -> int:
        return self._held + super().held

    def numbers(self, waiting: int) -> tuple[int, int]:
        """A delivery that is not settled is found although others overtake it."""
        oldest = self._received - self._held
        if self._records:
            oldest = min(oldest, next(iter(self._records)).number)
        return oldest, self._received

    @property
    def calls(self) -> int:
        """Calls of the source and of dead letters: one that hangs holds back all elements."""
        return len(self._calls.tasks)

    def call_waits(self) -> Iterator[Wait]:
        for task in self._calls.tasks:
            if (wait := wait_of(task.get_coro())) is not None:
                yield wait

    @property
    def own_wait(self) -> Wait | None:
        tries = next((record.tries for record in self._delayed), None)
        if tries is None or self.calls:
            return super().own_wait
        return Wait("limit", tries.attempts.delay_text)

    # -- the session ------------------------------------------------------------------------------
    def on_still(self) -> None:
        self._advance_soon()

    def on_over(self) -> None:
        self.submit(self._give_back_rest)

    def check_loop(self, call: str) -> None:
        if not self.loop_handle.is_running_here:
            remedy = "call it there, from a thread with loop.call_soon_threadsafe(delivery.ack)"
            raise WrongLoop(call, remedy, is_closed=self.loop_handle.is_closed)

    def _give_back_rest(self) -> None:
        self._settle_all()
        records, self._records = self._records, {}
        for record in records:
            self._side.give_back(record, record.error or unfinished())
        self._side.flush()

    # -- the source's functions -------------------------------------------------------------------
    def received(self) -> None:
        self._received += 1
        self._held += 1
        if self._control is not None:
            self._control.unacknowledged += 1

    def free(self, count: int) -> None:
        self._held -= count

    def settled(self, count: int) -> None:
        if self._control is not None:
            self._control.unacknowledged -= count

    def call(
        self,
        function: Callable[..., object],
        arguments: tuple[Any, ...],
        then: Callable[[], object],
    ) -> None:
        if not self._is_silent:
            self._submit(SourceCall(function, arguments, then, self._fail))

    def _submit(self, call: SourceCall) -> None:
        self._calling += 1
        if self._calls.submit(call):
            self._calling -= 1
            call.then()

    def _on_called(self, call: SourceCall) -> None:
        self._calling -= 1
        call.then()
        self._advance_soon()

    def _on_call_failed(self, call: SourceCall, error: BaseException) -> None:
        self._calling -= 1
        if self.is_closed:
            if isinstance(error, Interrupted):
                return  # the program ends
            self._drop_like(call, error)
        call.on_error(error)

    def _drop_like(self, call: SourceCall, error: BaseException) -> None:
        """The others would fail as *call* has, one after another, each at its time limit.

        A dead letter says nothing about the source, which takes back what could not be buried.
        """
        dropped = self._calls.drop_like(call)
        self._calling -= len(dropped)
        if call.on_dropped is not None:
            self._buries = False
        else:
            self._is_silent = True
            if dropped:
                what = f"{len(dropped)} more calls are not made; the source delivers again"
                add_bounded_note(error, _NOTE, _NOTE + what)
        for each in dropped:
            if each.on_dropped is not None:
                each.on_dropped()

    # -- acts -------------------------------------------------------------------------------------
    def _admit(self, element: Any) -> None:
        record = self._side.admit(element)
        record.number = self._received
        self.received()
        self._records[record] = None
        policy = self._options.policy
        if policy is not None:
            record.tries = Tries(Attempts(policy.retry, self.loop_handle.time()), self._done)
        self._ready.append(record)

    def _discarded(self, element: Any) -> None:
        """The source has sent *element*, and it is not kept."""
        self.submit(self._side.discard, element, unfinished())

    def _advance_soon(self) -> None:
        """Advance after the settlements that wait: those of a list come together."""
        if not self._is_advancing:
            self._is_advancing = True
            self.submit(self._advance)

    def _advance(self) -> None:
        """Do everything that has become possible."""
        self._is_advancing = False
        self._side.advance()
        while self._ready and (count := min(len(self._ready), self.demand.outstanding)):
            self.emit([self._tied(self._ready.popleft()) for _ in range(count)])
        if not self.is_closed and self._started:
            self._request()
            self._end_if_done()
            self._flush_if_stalled()

    def _tied(self, record: Record) -> Tied[Any]:
        return Tied(record.value, Root(self._session.motion, self._on_settled, record))

    def _request(self) -> None:
        inner = self._inner
        room = self._options.limit - self._held
        missing = min(self.demand.outstanding - len(self._ready), room) - inner.outstanding
        if missing > 0:
            inner.request(missing)

    def _end_if_done(self) -> None:
        if self._is_source_done and not self._records:
            self._side.flush()
            if not self._calling:
                self.end(self._source_error)

    def _flush_if_stalled(self) -> None:
        """Complete the lists that grow, if no other element can arrive before they are done."""
        motion = self._session.motion
        if motion.moving or not motion.resting:
            return
        if self._settled or self._ready or self._delayed:
            return
        is_full = self._held >= self._options.limit
        if not self._calling and (self._is_source_done or is_full):
            self._session.flush_lists()

    def _fail(self, error: BaseException) -> None:
        if self._source_error is not None and not self.is_closed:
            error = combine_errors([self._source_error, error])
        self.fail(error)

    # -- settlements ------------------------------------------------------------------------------
    def _on_settled(self, record: Record, failure: Failure | None) -> None:
        """Acknowledge all of one turn of the event loop together, which costs a third."""
        is_first = not self._settled
        self._settled.append((record, failure))
        if failure is not None:
            self.submit(self._settle_all)  # it may be the end of the flow
        elif is_first:
            self.loop_handle.call_soon(self.submit, self._settle_all)

    def _settle_all(self) -> None:
        """Act on the settlements, in their order."""
        settled = self._settled
        while settled:
            record, failure = settled.popleft()
            if failure is None:
                self._done += 1
                del self._records[record]
                self._side.acked(record)
            else:
                record.error = failure.error
                self._nack(record, failure.error, self._decide(record, failure))
        self._advance_soon()

    def _decide(self, record: Record, failure: Failure) -> Decision:
        return decide(
            None if self.is_closed else self._options.policy,
            record.tries,
            replace(failure, is_fatal=failure.is_fatal or self.is_closed),
            can_give_back=record.nack is not None,
            done=self._done,
            now=self.loop_handle.time(),
            random=random(),
        )

    def _nack(self, record: Record, error: Exception, decision: Decision) -> None:
        match decision.next:
            case Next.GIVE_BACK:
                del self._records[record]
                self._side.give_back(record, error)
            case Next.DELIVER if decision.wait:
                self._delayed[record] = self.loop_handle.call_later(
                    decision.wait, self.submit, self._on_due, record
                )
            case Next.DELIVER:
                self._ready.append(record)
            case Next.BURY:
                self._bury(record, error)
            case Next.FAIL:
                why = _NO_POLICY if self._options.policy is None else _NO_DEAD_LETTER
                add_bounded_note(error, _NOTE, _NOTE + why)
                self._fail(error)
            case Next.NOTHING:
                pass

    def _on_due(self, record: Record) -> None:
        if self._delayed.pop(record, None) is not None:
            self._ready.append(record)
            self._advance_soon()

    def _bury(self, record: Record, error: Exception) -> None:
        policy = self._options.policy
        if policy is not None and (dead_letter := policy.dead_letter) is not None:
            del self._records[record]
            call = SourceCall(
                dead_letter,
                (record.value, error),
                partial(self._side.acked, record),
                partial(self._bury_failed, record),
                partial(self._keep, record),
            )
            if self._buries:
                self._submit(call)
            else:
                self._keep(record)

    def _bury_failed(self, record: Record, error: BaseException) -> None:
        """The dead letter function has failed."""
        if isinstance(error, Exception):
            record.error = error
        self._keep(record)
        self._fail(error)

    def _keep(self, record: Record) -> None:
        """The element could not be buried: it is as it was before."""
        if self._session.motion.is_over:
            self._side.give_back(record, record.error or unfinished())
        else:
            self._records[record] = None


def unfinished() -> Unfinished:
    """The error for what was not done when the subscription ended."""
    return Unfinished("the flow has ended before the work on this element was done")
