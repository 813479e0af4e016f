"""Feed: how a publisher feeds a processor, in step with its slowest subscriber."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .._core.arm import Arm
from .._core.gate import Gate
from .._core.queues import Emission

if TYPE_CHECKING:
    from .._core.loop import Door

__all__ = ("Feed",)

T = TypeVar("T")


class Feed(Generic[T]):
    """What a publisher sends a processor; elements that are refused wait in the arm."""

    __slots__ = ("_gate", "_passing", "_refill", "arm", "door", "submit")

    def __init__(self, gate: Gate[T], refill: "Callable[[Feed[T]], object]") -> None:
        self._gate = gate
        self._refill = refill
        self._passing = False
        self.door: Door = gate.door
        self.submit: Callable[..., object] = _at_once
        self.arm: Arm[T] = Arm(self)

    def pass_on(self) -> None:
        """Emit what has come, until it is refused; then end as the publisher did."""
        arm = self.arm
        if self._passing:
            return  # a subscriber that is being served asks for more
        self._passing = True
        try:
            while arm.elements:
                if self._gate.try_emit(arm.elements[0]) is Emission.REFUSED:
                    return
                arm.take(1)
        finally:
            self._passing = False
        if arm.ended:
            self._gate.end(arm.error)
        else:
            self._refill(self)

    def noticed(self, arm: Arm[Any]) -> None:
        self.pass_on()

    def arrived(self, arm: Arm[Any]) -> None:
        self.pass_on()

    def completed(self, arm: Arm[Any]) -> None:
        self.pass_on()

    def failed(self, arm: Arm[Any], error: BaseException) -> None:
        self.pass_on()


def _at_once(decision: Callable[..., object], *args: object) -> None:
    decision(*args)
