"""Joining: several upstreams at once, into one way down, in the order of arrival."""

from collections.abc import Sequence
from typing import Any, TypeVar

from ..spec import Publisher
from .coordinator import Arm, Coordinator
from .heads import Inlet
from .ledger import Ledger

__all__ = ("Joining", "grouped")

T = TypeVar("T")


def grouped(errors: Sequence[BaseException]) -> BaseException:
    """One error as it is, several as a group."""
    if len(errors) == 1:
        return errors[0]
    return BaseExceptionGroup(f"{len(errors)} sources failed", errors)


class Joining(Coordinator[T]):
    """Lets each upstream be *prefetch* elements ahead of what downstream has processed.

    The first failure stops all upstreams; what they had sent is delivered, then the flow fails.
    """

    def __init__(self, inlet: Inlet[T], prefetch: int) -> None:
        super().__init__(inlet)
        self.prefetch = prefetch
        self.ledger: Ledger[Arm[Any]] = Ledger(prefetch)
        self._fresh: list[Arm[Any]] = []
        self.live = 0
        """How many upstreams have not ended."""
        self.errors: list[BaseException] = []

    # -- acts -------------------------------------------------------------------------------------
    def join(self, publisher: Publisher[Any]) -> None:
        """Take one more upstream in. Its tag counts what the ledger knows of its elements."""
        self.live += 1
        self.arm(publisher, request=self.prefetch, tag=0)

    def account(self, arm: Arm[Any]) -> None:
        """Enter into the ledger what *arm* has sent."""
        if (new := len(arm.elements) - arm.tag) > 0:
            arm.tag += new
            self.ledger.arrived(arm, new)

    def halt(self, error: BaseException) -> None:
        """Something failed: stop all upstreams; `finish` fails behind what they have sent."""
        self.errors.append(error)
        for arm in self.arms:
            if arm.error is not None and arm.error not in self.errors:
                self.errors.append(arm.error)  # it has failed as well, and waits to be heard
            arm.stop()
            self.account(arm)

    def waiting(self, at_most: int) -> list[T]:
        """Take up to *at_most* of the elements that wait."""
        chunk: list[T] = []
        for arm, count in self.ledger.take(at_most):
            arm.tag -= count
            chunk += arm.take(count)
        return chunk

    def send(self) -> None:
        """Hand over what waits, as far as there is demand; end if that was all."""
        self.emit(self.waiting(self.demand.outstanding))
        self.finish()

    def finish(self) -> None:
        """End, if nothing waits and nothing can come."""
        if self.closed or self.ledger.waiting:
            return
        if self.errors:
            self.fail(grouped(self.errors))
        elif not self.live:
            self.complete()

    def settle(self) -> None:
        """Ask those upstreams for more whose elements have been processed."""
        for arm in self.ledger.settle(self.settled):
            if arm.ended:
                self.reap(arm)
            elif refill := self.ledger.refill(arm):
                arm.request(refill)

    def reap(self, arm: Arm[Any]) -> None:
        """Forget an upstream that has ended, once nothing of it is held."""
        # It may have ended without having been heard: then it has elements that are not accounted.
        if not arm.elements and not self.ledger.holds(arm):
            self.ledger.forget(arm)
            self.drop(arm)

    # -- decisions --------------------------------------------------------------------------------
    def demanded(self) -> None:
        self.settle()
        self.send()

    def consumed(self) -> None:
        self.demanded()

    def noticed(self, arm: Arm[Any]) -> None:
        """Wait for the end of this turn of the loop: more may come, also from the others."""
        arm.told = True
        if not self._fresh:
            self.door.soon(self.submit, self._arrived)
        self._fresh.append(arm)

    def _arrived(self) -> None:
        fresh, self._fresh = self._fresh, []
        for arm in fresh:
            arm.told = False
            self.account(arm)
        self.send()

    def completed(self, arm: Arm[Any]) -> None:
        self.live -= 1
        self.account(arm)
        self.reap(arm)
        self.send()

    def failed(self, arm: Arm[Any], error: BaseException) -> None:
        if not self.closed and error not in self.errors:
            self.halt(error)
        self.send()
