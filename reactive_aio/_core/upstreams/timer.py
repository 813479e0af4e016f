"""Timer: the timer of a coordinator."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ..arguments import require_sync_callable

if TYPE_CHECKING:
    from ..loop import TimerHandle
    from .coordinator import Coordinator

_REMEDY: Final = "let a WorkerPool call what has to be awaited"


class Timer:
    """Calls *decision* of *owner* once after a time, unless it is stopped before.

    When the time has passed, the decision may have to wait for others: one of them may still stop
    the timer, or start it again.

    It can be started again. It belongs to its owner, which stops it when it ends: from then on the
    timer cannot be started any more, so that none outlives a subscription.
    """

    __slots__ = ("_decision", "_handle", "_owner", "_stops")

    def __init__(self, owner: "Coordinator[Any]", decision: Callable[[], object]) -> None:
        require_sync_callable("Timer", "decision", decision, _REMEDY, takes=0)
        self._owner = owner
        self._decision = decision
        self._handle: TimerHandle | None = None
        self._stops = 0
        owner.add_timer(self)

    @property
    def is_running(self) -> bool:
        return self._handle is not None

    def start(self, seconds: float) -> None:
        """Call the decision in so many seconds, or in the next turn if the time has passed."""
        self.stop()
        owner = self._owner
        if not owner.is_closed:  # a decision goes on to its end when an element it emits ends all
            call_later = owner.loop_handle.call_later
            self._handle = call_later(max(0.0, seconds), owner.submit, self._fire, self._stops)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
            self._stops += 1

    def _fire(self, stops: int) -> None:
        if stops == self._stops:
            self._handle = None
            self._decision()
