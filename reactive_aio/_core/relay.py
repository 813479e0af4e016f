"""Relay: the coordinator with one upstream; demand goes up and elements go down as they are."""

from typing import Any, TypeVar

from ..spec import Publisher
from .coordinator import Arm, Coordinator

__all__ = ("Relay",)

T = TypeVar("T")


class Relay(Coordinator[T]):
    """Stands between a flow and a publisher that is known, or trusted, only at subscription."""

    upstream: Arm[T] | None = None

    def attach(self, publisher: Publisher[T]) -> "Relay[T]":
        """Subscribe to *publisher*, and ask it for what is outstanding."""
        self.upstream = self.arm(publisher)
        self.demanded()
        return self

    def demanded(self) -> None:
        arm = self.upstream
        if arm is not None and (missing := self.demand.outstanding - arm.outstanding) > 0:
            arm.request(missing)

    def arrived(self, arm: Arm[Any]) -> None:
        self.emit(arm.take(self.demand.outstanding))
        self.finish_after(arm)

    def completed(self, arm: Arm[Any]) -> None:
        self.arrived(arm)

    def failed(self, arm: Arm[Any], error: BaseException) -> None:
        self.arrived(arm)
