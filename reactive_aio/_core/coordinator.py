"""Coordinators: operators with several upstreams, a queue or a timer.

A coordinator is the upstream of one island: it is told that island's demand and its cancellation,
and hands elements to its inlet. Each of its own upstreams is an `Arm`, which holds the guards of a
subscriber (rules 1.1, 1.3, 1.7, 2.5, 2.13) and a buffer of the elements not yet passed on.
What an operator does is decided in the methods that it overrides; they are called one at a time,
on the loop, in the subscriber's context, through one `SerialExecutor`.
"""

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ..errors import NotAnElement, RuleViolation
from ..spec import Publisher, Subscription
from .demand import UNBOUNDED, Demand
from .executor import SerialExecutor
from .heads import Inlet
from .island import Batched
from .loop import Door

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Arm", "Coordinator")

T = TypeVar("T")
R = TypeVar("R")


class Arm(Batched, Generic[T]):
    """One upstream of a coordinator. What it has requested bounds what it holds."""

    __slots__ = ("_owner", "_subscription", "elements", "ended", "error", "fill", "outstanding",
                 "tag", "told")  # fmt: skip

    def __init__(self, owner: "Coordinator[Any]", tag: Any = None) -> None:
        self._owner = owner
        self._subscription: Subscription | None = None
        self.tag = tag
        """The coordinator's own note about this arm."""
        self.told = False
        self.elements: list[T] = []
        self.fill = self.elements.append
        self.outstanding = 0
        """Requested, and not yet taken out of `elements`."""
        self.ended = False
        """No more signals: it completed, failed, or was cancelled."""
        self.error: BaseException | None = None
        """What it failed with."""

    def __repr__(self) -> str:
        state = "ended" if self.ended else f"{self.outstanding} outstanding"
        return f"<Arm {self.tag!r} {state}, holds {len(self.elements)}>"

    # -- for the coordinator --------------------------------------------------------------------
    def subscribe(self, publisher: Publisher[T]) -> "Arm[T]":
        """Subscribe to *publisher*; one that raises there has failed (1.9)."""
        try:
            publisher.subscribe(self)
        except Exception as error:
            self.on_error(error)
        return self

    def request(self, n: int) -> None:
        """Ask for *n* more."""
        if self.ended:
            return
        self.outstanding = min(self.outstanding + n, UNBOUNDED)
        if self._subscription is not None:
            self._subscription.request(n)

    def take(self, at_most: int) -> list[T]:
        """Take up to *at_most* of the elements it holds."""
        taken = self.elements[:at_most]
        del self.elements[:at_most]
        if self.outstanding < UNBOUNDED:
            self.outstanding -= len(taken)
        return taken

    def cancel(self) -> None:
        """Cancel it; what it holds is discarded and nothing more is heard of it."""
        self.elements.clear()
        self.stop()

    def stop(self) -> None:
        """Cancel it, but keep what it has sent."""
        if not self.ended:
            self.ended = True
            if self._subscription is not None:
                self._subscription.cancel()

    async def aclose(self) -> None:
        """Cancel it and wait for its cleanup."""
        self.cancel()
        subscription: Any = self._subscription
        if hasattr(subscription, "aclose"):
            await subscription.aclose()

    # -- the subscriber ---------------------------------------------------------------------------
    def on_subscribe(self, subscription: Subscription) -> None:
        _present(subscription, "on_subscribe(None): a subscription is needed")
        if not self._owner.door.here:
            self._owner.door.soon_threadsafe(self.on_subscribe, subscription)
        elif self._subscription is not None or self.ended:
            subscription.cancel()  # 2.5
        else:
            self._subscription = subscription
            if self.outstanding:
                subscription.request(self.outstanding)

    def on_next(self, element: T) -> None:
        _present(element, "on_next(None): None is not an element")
        if not self._owner.door.here:
            self._owner.door.soon_threadsafe(self.on_next, element)
        elif not self.ended:
            self.elements.append(element)
            if len(self.elements) > self.outstanding:
                self._overrun()
            else:
                self.flush()

    def _overrun(self) -> None:
        self.elements.pop()
        error = RuleViolation("1.1", "the publisher sent more than was requested; it is cancelled")
        if self._subscription is not None:
            self._subscription.cancel()
        self.on_error(error)

    def flush(self) -> None:
        if self.elements and not self.ended and not self.told:
            self._owner.noticed(self)

    def on_error(self, error: BaseException) -> None:
        _present(error, "on_error(None): an exception is needed")
        if not self._owner.door.here:
            self._owner.door.soon_threadsafe(self.on_error, error)
        elif not self.ended:
            if not isinstance(cast("object", error), BaseException):
                error = RuleViolation("2.13", f"on_error({error!r}): an exception is needed")
            self.ended, self.error = True, error
            self._owner.submit(self._owner.failed, self, error)

    def on_complete(self) -> None:
        if not self._owner.door.here:
            self._owner.door.soon_threadsafe(self.on_complete)
        elif not self.ended:
            self.ended = True
            self._owner.submit(self._owner.completed, self)


def _present(argument: object, otherwise: str) -> None:
    if argument is None:
        raise NotAnElement(otherwise)


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
        self._leaving: list[Arm[Any]] = []

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
        self._leaving = arms
        for arm in arms:
            arm.cancel()
        self.stopped()

    def _broken(self, error: Exception) -> None:
        """A decision raised, mostly because a function of the user did: the flow fails (1.4)."""
        self.fail(error)
