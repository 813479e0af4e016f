"""Switching: one upstream after another, with the demand carried over from each to the next."""

from abc import abstractmethod
from typing import Any, TypeVar

from ..spec import Publisher
from .coordinator import Arm, Coordinator

__all__ = ("Switching",)

T = TypeVar("T")


class Switching(Coordinator[T]):
    """Has one upstream at a time, and asks it for exactly what downstream still waits for.

    An upstream never holds more than is asked for, so that whatever it has sent is handed on
    before its end is looked at. `next_after` then says what follows.
    """

    active: Arm[T] | None = None

    @abstractmethod
    def begin(self) -> None:
        """Switch to the first upstream."""

    def next_after(self, error: BaseException | None) -> None:
        """The upstream has completed, or failed with *error*: switch, or end."""
        self.end(error)

    def switch(self, publisher: Publisher[T]) -> None:
        """Let *publisher* go on, where the one before ended or is cancelled."""
        if self.active is not None:
            self.drop(self.active)
        self.active = self.arm(publisher, request=self.demand.outstanding)

    def end(self, error: BaseException | None) -> None:
        """End downstream: complete, or fail with *error*."""
        if error is None:
            self.complete()
        else:
            self.fail(error)

    # -- decisions --------------------------------------------------------------------------------
    def started(self) -> None:
        self.begin()

    def demanded(self) -> None:
        arm = self.active
        if arm is not None and (missing := self.demand.outstanding - arm.outstanding) > 0:
            arm.request(missing)

    def arrived(self, arm: Arm[Any]) -> None:
        if arm is self.active:
            self.emit(arm.take(len(arm.elements)))

    def completed(self, arm: Arm[Any]) -> None:
        self.arrived(arm)
        self._next(arm, None)

    def failed(self, arm: Arm[Any], error: BaseException) -> None:
        self.arrived(arm)
        self._next(arm, error)

    def _next(self, arm: Arm[Any], error: BaseException | None) -> None:
        if arm is self.active and not self.closed:
            self.next_after(error)
