"""Timer: the timer of a coordinator."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..loop import TimerHandle
    from .coordinator import Coordinator


class Timer:
    """Calls *decision* of *owner* once after a time, unless it is stopped or the operator ends.

    It can be started again. The owner stops it in `on_stop`, so that no timer outlives a
    subscription.
    """

    __slots__ = ("_decision", "_handle", "_owner")

    def __init__(self, owner: "Coordinator[Any]", decision: Callable[[], object]) -> None:
        self._owner = owner
        self._decision = decision
        self._handle: TimerHandle | None = None

    @property
    def is_running(self) -> bool:
        return self._handle is not None

    def start(self, seconds: float) -> None:
        """Call the decision in so many seconds, or in the next turn if the time has passed."""
        self.stop()
        owner = self._owner
        self._handle = owner.loop_handle.call_later(max(0.0, seconds), owner.submit, self._fire)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self) -> None:
        self._handle = None
        if not self._owner.is_closed:
            self._decision()
