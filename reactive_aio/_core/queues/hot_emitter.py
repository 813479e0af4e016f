"""Gate: where elements are emitted by hand: at once, awaiting room, or from another thread."""

from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from ...errors import NotAnElement
from ..loop import Future, LoopHandle, yield_to_loop
from ..time_slice import TimeSlice
from .bounded_queue import Emission
from .thread_mailbox import ThreadMailbox

__all__ = ("HotEmitter",)

T = TypeVar("T")

_LOOK: Final = 64  # emissions between two looks at the clock


class HotEmitter(Generic[T]):
    """The producers' side of a hot source.

    *deliver* takes one element on the loop's thread and tells what became of it; *full* tells
    whether who can wait had better do so; *finish* ends the source. *capacity* is how many elements
    from other threads may wait for the loop. Whoever makes room behind the gate calls `room`.
    """

    __slots__ = (
        "_collecting",
        "_deliver",
        "_error",
        "_finish",
        "_finished",
        "_full",
        "_looks",
        "_loop_handle",
        "_mailbox",
        "_name",
        "_time_slice",
        "_waiters",
        "ended",
        "lost",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        capacity: int,
        deliver: Callable[[T], Emission],
        full: Callable[[], bool],
        finish: Callable[[BaseException | None], object],
        loop_handle: LoopHandle | None = None,
    ) -> None:
        self._name = name
        self._deliver = deliver
        self._full = full
        self._finish = finish
        self._loop_handle = loop_handle
        self._mailbox: ThreadMailbox[T] = ThreadMailbox(capacity)
        self._waiters: deque[Future[None]] = deque()
        self._error: BaseException | None = None
        self._collecting = False
        self._finished = False
        self._looks = 0
        self._time_slice = TimeSlice()
        self.ended: bool = False
        self.lost: int = 0
        """Elements from other threads that had been accepted when the source was shut."""

    @property
    def loop_handle(self) -> LoopHandle:
        """The loop it belongs to: the one on which it is used first."""
        if self._loop_handle is None:
            self._loop_handle = LoopHandle(self._name)
        return self._loop_handle

    # -- emitting ---------------------------------------------------------------------------------
    def try_emit(self, element: T) -> Emission:
        """On the loop's thread: emit now, or say why not."""
        self._check(element)
        if self._mailbox:
            self._collect()  # they were here before
        return self._pass(element)

    def _pass(self, element: T) -> Emission:
        return Emission.ENDED if self.ended else self._deliver(element)

    async def emit(self, element: T) -> Emission:
        """The same, but wait while there is no room; first come, first served."""
        self._check(element)
        waits = not self.ended and (self._crowded() or self._waiters)
        outcome = await self._wait(element) if waits else self._pass(element)
        # A producer must not be able to hold the loop up by awaiting what never waits.
        self._looks += 1
        if self._looks >= _LOOK or outcome is Emission.ENDED:
            self._looks = 0
            if outcome is Emission.ENDED or self._time_slice.check_slice():
                await yield_to_loop()
                self._time_slice.start_slice()
        return outcome

    async def _wait(self, element: T) -> Emission:
        waiter = self.loop_handle.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
            while not self.ended and self._crowded():  # somebody else was quicker
                waiter = self._waiters[0] = self.loop_handle.create_future()
                await waiter
            return self._pass(element)
        finally:
            self._waiters.remove(waiter)
            self._wake_first()

    def _crowded(self) -> bool:
        """Whether there is no room, after those of other threads that were here before.

        Who has been told that there is some may use it at once, but not come back here first.
        """
        if self._mailbox:
            self._collect()
        return self._full()

    def emit_threadsafe(self, element: T) -> Emission:
        """From any thread: leave the element for the loop, if fewer than *capacity* wait there."""
        self._check(element)
        loop_handle = self.loop_handle
        outcome, wake = self._mailbox.put(element)
        if wake:
            loop_handle.call_soon_threadsafe(self._collect)
        return outcome

    def _check(self, element: T) -> None:
        if element is None:
            raise NotAnElement(f"{self._name} got None, which is not an element")

    # -- ending: from any thread ------------------------------------------------------------------
    def end(self, error: BaseException | None = None) -> None:
        """Take nothing more in, and end behind what was accepted. The first end counts."""
        if not self.loop_handle.is_current_thread:
            self.loop_handle.call_soon_threadsafe(self.end, error)
        elif not self.ended:
            self.ended, self._error = True, error
            self._mailbox.close()
            self._collect()

    def shut(self) -> None:
        """Nobody wants elements any more: drop those that wait, and let go of who waits."""
        self.ended = True
        if not self._finished:
            self._finished = True
            # The element that is just being delivered is still there, but not lost.
            self.lost += self._mailbox.discard() - self._collecting
        self._release()

    def _over(self) -> None:
        self._finished = True
        self._release()
        error, self._error = self._error, None
        self._finish(error)

    def _release(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    # -- behind the gate --------------------------------------------------------------------------
    def room(self) -> None:
        """There is room again."""
        if self._mailbox:
            self._collect()
        self._wake_first()

    def _wake_first(self) -> None:
        if self._waiters and not self._waiters[0].done():
            self._waiters[0].set_result(None)

    def _collect(self) -> None:
        """Take in what other threads have left; if that was the last, end."""
        if self._collecting:
            return  # a subscriber that is being served emits something itself
        self._collecting = True
        try:
            mailbox = self._mailbox
            while mailbox and self._deliver(mailbox.first()) is not Emission.REFUSED:
                if self._finished:
                    return  # what waited was discarded while the element was delivered
                mailbox.remove_first()
        finally:
            self._collecting = False
        if self.ended and not mailbox and not self._finished:
            self._over()
