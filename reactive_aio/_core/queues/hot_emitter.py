"""HotEmitter: the producers' side of a hot source: emit at once, await room, or from a thread."""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import InitVar, dataclass, field
from typing import Final, Generic, TypeVar

from ...errors import NotAnElement, Overflow, WrongLoop
from ..arguments import require_error
from ..failures import as_failure
from ..loop import Future, LoopHandle, yield_to_loop
from ..losses import REFUSED, DropCounter
from ..time_slice import TimeSlice
from .bounded_queue import Emission, OverflowPolicy, ThreadMailbox

T = TypeVar("T")

EMISSIONS_PER_CLOCK_READ: Final = 64
_THREADSAFE: Final = "from other threads, use emit_threadsafe()"
_LOOP_IS_BEHIND: Final = (
    "threads emit faster than the loop collects; emit less at a time, make the capacity larger, "
    "choose a policy that drops, or have the loop emit: "
    "asyncio.run_coroutine_threadsafe(to.emit(element), loop).result()"
)
# Looking up a member of an enumeration takes as long as a call.
_REFUSED: Final = Emission.REFUSED
_ENDED: Final = Emission.ENDED


@dataclass(slots=True, eq=False, repr=False)
class HotEmitter(Generic[T]):
    """The producers' side of a hot source.

    *deliver* takes one element on the loop's thread and returns the outcome; *is_full* returns
    whether a producer that can wait should wait; *finish* ends the source. *capacity* elements of
    other threads may wait for the loop; beyond that, *policy* decides. When the source has room
    again, it calls `on_room`.
    """

    _name: str
    capacity: InitVar[int]
    policy: InitVar[OverflowPolicy]
    _deliver: Callable[[T], Emission]
    _is_full: Callable[[], bool]
    _finish: Callable[[BaseException | None], object]
    _loop_handle: LoopHandle | None = None
    mailbox: ThreadMailbox[T] = field(init=False)
    """Holds the elements of other threads until the loop collects them."""
    waiters: deque[Future[None]] = field(default_factory=deque[Future[None]])
    """Those of the producers that wait for room, in their order."""
    _error: BaseException | None = None
    _is_finished: bool = False
    emission_count: int = 0
    """Emissions that were awaited since the clock was read: a producer whose emissions never wait
    must not block the loop."""
    _time_slice: TimeSlice = field(default_factory=TimeSlice)
    is_ended: bool = False
    """No more elements are accepted."""
    _refused: DropCounter = field(init=False)
    """Those that were refused on the loop's thread."""

    def __post_init__(self, capacity: int, policy: OverflowPolicy) -> None:
        size = 1 if policy == "latest" else capacity
        self.mailbox = ThreadMailbox(size, policy, DropCounter(self._name))
        self._refused = DropCounter(self._name)

    @property
    def refused_count(self) -> int:
        """How often an emission was refused."""
        return self._refused.by_reason[REFUSED] + self.mailbox.drops.by_reason[REFUSED]

    @property
    def replaced_count(self) -> int:
        """How many elements of threads were accepted, and replaced before the loop came to them."""
        mailbox = self.mailbox
        replaces = mailbox.policy in ("drop_oldest", "latest")
        return mailbox.drops.by_reason[mailbox.policy] if replaces else 0

    @property
    def loop_handle(self) -> LoopHandle:
        """The loop that it belongs to: the one on which it is used first."""
        if self._loop_handle is None:
            self._loop_handle = LoopHandle(self._name)
        return self._loop_handle

    def require_loop(self, call: str, remedy: str) -> None:
        """Raise `WrongLoop` outside the loop that it belongs to, if it belongs to one already."""
        loop_handle = self._loop_handle
        if loop_handle is not None and not loop_handle.is_running_here:
            raise WrongLoop(f"{self._name}.{call}", remedy, is_closed=loop_handle.is_closed)

    # -- emitting ---------------------------------------------------------------------------------
    def try_emit(self, element: T) -> Emission:
        """Emit on the loop's thread, at once; the outcome says whether it was accepted."""
        if element is None:
            raise self._no_element()
        self.require_loop("try_emit()", _THREADSAFE)
        if self.mailbox.held:
            self._collect()  # these elements were emitted earlier
        return self._emit_now(element)

    def _emit_now(self, element: T) -> Emission:
        if self.is_ended:
            return _ENDED
        outcome = self._deliver(element)
        if outcome is _REFUSED:
            self._refused.add(REFUSED)
        return outcome

    def emit(self, element: T) -> Emission | Awaitable[Emission]:
        """Emit on the loop's thread; the outcome, or what to await if there is no room now."""
        if element is None:
            raise self._no_element()
        self.require_loop("emit()", _THREADSAFE)
        if not self.is_ended and (self._has_no_room() or self.waiters):
            return self._wait(element)
        outcome = self._emit_now(element)
        self.emission_count += 1
        if self.emission_count <= EMISSIONS_PER_CLOCK_READ and outcome is not _ENDED:
            return outcome
        self.emission_count = 0
        if outcome is _ENDED or self._time_slice.check_slice():
            return self._yield(outcome)
        return outcome

    async def _yield(self, outcome: Emission) -> Emission:
        await yield_to_loop()
        self._time_slice.start_slice()
        return outcome

    async def _wait(self, element: T) -> Emission:
        waiter = self.loop_handle.create_future()
        self.waiters.append(waiter)
        try:
            await waiter
            while not self.is_ended and self._has_no_room():  # another producer took the room
                waiter = self.waiters[0] = self.loop_handle.create_future()
                await waiter
            outcome = self._emit_now(element)
        finally:
            self.waiters.remove(waiter)
            self._wake_first()
        return outcome

    def _has_no_room(self) -> bool:
        """Whether there is no room, once the earlier elements of other threads are delivered."""
        if self.mailbox.held:
            self._collect()
        return self._is_full()

    def emit_threadsafe(self, element: T) -> Emission:
        """Emit from any thread: leave the element for the loop, or apply the policy."""
        if element is None:
            raise self._no_element()
        loop_handle = self.loop_handle
        outcome, must_wake = self.mailbox.put(element)
        if must_wake:
            loop_handle.call_soon_threadsafe(self._collect)
        elif outcome is Emission.OVERFLOWED:
            # It belongs to no subscriber yet, so that each of them would miss the element.
            self.end(Overflow(self._name, self.mailbox.capacity, _LOOP_IS_BEHIND))
        return outcome

    def _no_element(self) -> NotAnElement:
        return NotAnElement(
            f"{self._name} got None, which is not an element; leave it out, or emit another value"
        )

    # -- ending -----------------------------------------------------------------------------------
    def fail(self, error: BaseException) -> None:
        """End with *error*, which a producer passes. From any thread."""
        require_error(f"{self._name}.fail()", error)
        self.end(as_failure(error))

    def end(self, error: BaseException | None = None) -> None:
        """Accept nothing more, and end after the accepted elements. Only the first end counts.

        From any thread.
        """
        if not self.loop_handle.is_current_thread:
            self.loop_handle.call_soon_threadsafe(self.end, error)
        elif not self.is_ended:
            self.is_ended, self._error = True, error
            self.mailbox.close()
            self._collect()

    def shut_down(self) -> list[T]:
        """Accept nothing more, discard waiting elements and release producers.

        Return the elements of other threads that were discarded; `finish` is not called.
        """
        self.is_ended = True
        discarded: list[T] = []
        if not self._is_finished:
            self._is_finished = True
            discarded = self.mailbox.discard()
        self._wake_all()
        return discarded

    def _wake_all(self) -> None:
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)

    # -- called by the source ---------------------------------------------------------------------
    def collect(self) -> None:
        """Deliver the elements of other threads, which were emitted earlier."""
        if self.mailbox.held:
            self._collect()

    def on_room(self, *_: object) -> None:
        """There is room again."""
        if self.mailbox.held:
            self._collect()
        if self.waiters:
            self._wake_first()

    def _wake_first(self) -> None:
        if self.waiters and not self.waiters[0].done():
            self.waiters[0].set_result(None)

    def _collect(self) -> None:
        """Deliver the elements of other threads; after the last one, end if that is due.

        A subscriber that emits inside on_next calls it again, since its element is the latest.
        """
        mailbox = self.mailbox
        while (element := mailbox.take()) is not None:
            if self._deliver(element) is _REFUSED:
                mailbox.give_back(element)
                break
        if self.is_ended and not mailbox and not self._is_finished:
            self._is_finished = True
            self._wake_all()
            error, self._error = self._error, None
            self._finish(error)
