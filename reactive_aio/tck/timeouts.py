"""How long the kit waits.

A signal that must come is awaited for long, and the wait ends as soon as it arrives; the absence of
a signal is verified over a short quiet period. So a law is quick for a candidate that keeps it, and
a busy machine cannot make it fail.
"""

from dataclasses import dataclass, replace
from typing import Final

REDUCED_STALL: Final = 1.0


@dataclass(frozen=True)
class Timeouts:
    """Timeouts of one check, in seconds of the loop's clock unless noted."""

    response: float = 10.0
    """The longest wait for a signal that must come."""
    reduced_response: float = 1.0
    """The same after one wait has timed out, so that a dead candidate is judged quickly."""
    quiet_turns: int = 25
    """Turns of the loop without a signal that prove its absence."""
    quiet_period: float = 0.005
    """Seconds without a signal, in addition to the turns."""
    max_block: float = 0.5
    """Seconds of wall-clock time that the candidate may block the loop (3.4, 3.5)."""
    stall: float = 5.0
    """Seconds of wall-clock time without a turn of the loop after which a law is stopped."""
    law: float = 60.0
    """Seconds of wall-clock time after which a law is stopped."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
                raise ValueError(f"Timeouts: {name} must be a number from 0, not {value!r}")

    def after_timeout(self) -> "Timeouts":
        """The timeouts once a signal that must come has not come."""
        return replace(self, response=min(self.response, self.reduced_response))

    def after_stall(self) -> "Timeouts":
        """The timeouts once the loop, or the interpreter, has hung."""
        return replace(self, stall=min(self.stall, REDUCED_STALL))
