"""Coordinators: operators with several upstreams, a queue or a timer.

A coordinator is the upstream of one island: it is told that island's demand and its cancellation,
and hands elements to its inlet. Each of its own upstreams is an `Arm`, which holds the guards of a
subscriber and a buffer of the elements not yet passed on.
What an operator does is decided in the methods that it overrides; they are called one at a time,
on the loop, in the subscriber's context, through one `SerialExecutor`.
"""

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..spec import Publisher
from .arm import Arm
from .demand import Demand
from .executor import SerialExecutor
from .heads import Inlet
from .loop import Door

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Arm", "Coordinator")

T = TypeVar("T")
R = TypeVar("R")


class Coordinator(Generic[R]):
    """The base of all coordinators; a subclass overrides the methods under "decisions"."""

    def __init__(self, inlet: Inlet[R]) -> None:
        self.inlet = inlet
        self.door = Door()
        self.demand = Demand()
        """Downstream's demand that has not been met yet."""
        self.arms: dict[Arm[Any], None] = {}
        self.serial = SerialExecutor(bound=None, door=self.door, on_error=self._broken)
        self.submit: Callable[..., object] = self.serial.submit
        self.closed = False
        self.handed = 0
        """How many elements were handed over since the beginning."""
        self.settled = 0
        """How many of those have been processed downstream, as far as it has told."""
        self._started = False
        self._leaving: list[Arm[Any]] = []  # whose cleanup may not be over

    # -- decisions: what a subclass says ----------------------------------------------------------
    def started(self) -> None:
        """The first demand has come: subscribe to what must be subscribed to."""

    def demanded(self) -> None:
        """`demand` has grown; all that was handed over has been processed."""

    def consumed(self) -> None:
        """`settled` has grown to all that was handed over, without new demand."""

    def arrived(self, arm: Arm[Any]) -> None:
        """*arm* holds elements."""

    def completed(self, arm: Arm[Any]) -> None:
        """*arm* has completed; it may still hold elements."""

    def failed(self, arm: Arm[Any], error: BaseException) -> None:
        """*arm* has failed. By default so does the whole."""
        self.fail(error)

    def stopped(self) -> None:
        """The whole has ended or was cancelled: let timers and the like go."""

    def noticed(self, arm: Arm[Any]) -> None:
        """*arm* got elements, right now: by default, decide at once.

        One that would rather wait for more of them sets ``arm.told`` and looks at it soon.
        """
        self.submit(self.arrived, arm)

    # -- acts: what a subclass does ---------------------------------------------------------------
    def arm(self, publisher: Publisher[T], *, request: int = 0, tag: Any = None) -> Arm[T]:
        """Subscribe to one more upstream, requesting *request* elements of it."""
        arm: Arm[T] = Arm(self, tag)
        if self.closed:  # by an upstream subscribed to a moment ago
            arm.ended = True
            return arm
        self.arms[arm] = None
        if request:
            arm.request(request)
        return arm.subscribe(publisher)

    def drop(self, arm: Arm[Any]) -> None:
        """Forget an arm, cancelling it unless it has ended."""
        self.arms.pop(arm, None)
        arm.cancel()
        if not arm.clean:
            self._leaving = [*(each for each in self._leaving if not each.clean), arm]

    def emit(self, elements: list[R]) -> None:
        """Hand *elements* over; no more than `demand` allows."""
        if elements and not self.closed:
            self.demand.take(len(elements))
            self.handed += len(elements)
            self.inlet.push(elements)

    def complete(self) -> None:
        """Complete downstream, and cancel every arm."""
        if not self.closed:
            self._close()
            self.inlet.complete()

    def fail(self, error: BaseException) -> None:
        """Fail downstream, and cancel every arm."""
        if self.closed:
            self.door.report("an error after the end of a flow", error)
        else:
            self._close()
            self.inlet.fail(error)

    def finish_after(self, arm: Arm[Any]) -> None:
        """End as *arm* did, if it has ended and holds nothing any more."""
        if arm.ended and not arm.elements and not self.closed:
            if arm.error is None:
                self.complete()
            else:
                self.fail(arm.error)

    # -- the subscription that the island sees ----------------------------------------------------
    def request(self, n: int, /) -> None:
        if not self.closed:
            self.settled = self.handed
            self.demand.add(n)
            self.submit(self._demanded)

    def processed(self) -> None:
        """All that was handed over has been processed; the demand stays as it is."""
        if self.settled < self.handed and not self.closed:
            self.settled = self.handed
            self.submit(self.consumed)

    def _demanded(self) -> None:
        if not self._started:
            self._started = True
            self.started()
        if not self.closed:
            self.demanded()

    def cancel(self) -> None:
        self._close()

    async def aclose(self) -> None:
        """Cancel, and wait until every upstream has cleaned up."""
        self._close()
        while self._leaving:
            await self._leaving.pop().aclose()

    def _close(self) -> None:
        if self.closed:
            return
        self.closed = True
        arms = list(self.arms)
        self.arms.clear()
        self._leaving += arms
        for arm in arms:
            arm.cancel()
        self.stopped()

    def _broken(self, error: Exception) -> None:
        """A decision raised, mostly because a function of the user did: the flow fails (1.4)."""
        self.fail(error)
