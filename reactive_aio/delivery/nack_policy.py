"""NackPolicy: what follows when the work on an element has failed. Pure: it decides.

========================  ==================  ===========================================
policy                    source takes back   what follows
========================  ==================  ===========================================
none                      yes                 it is given back to the source
none                      no                  the flow fails
it failed with others     either              the flow delivers it again; that does not count
attempts are left         either              the flow delivers it again, after a delay
none left, a dead letter  either              the dead letter function, then acknowledged
none left, no such        either              the flow fails, and it is given back
========================  ==================  ===========================================

Where a function of an operator has failed and there is no policy, the operator fails the flow
itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..retry import Attempts, RetryPolicy
from .errors import Unfinished
from .ties import Failure


class Next(Enum):
    """What follows from a nack."""

    GIVE_BACK = "the source takes it back"
    DELIVER = "it is delivered again"
    BURY = "the dead letter function is called with it"
    FAIL = "the flow fails"
    NOTHING = "it stays open until the flow has ended"


@dataclass(frozen=True, slots=True)
class NackPolicy:
    """How often to deliver an element again, and what is called with it after that."""

    retry: RetryPolicy
    dead_letter: Callable[[Any, Exception], object] | None

    def is_exceeded(self, attempt: int) -> bool:
        """Whether the source has delivered an element too often already, to bury it at once.

        None of these deliveries has ended in a nack that was seen: the element may be what stops
        the program each time.
        """
        limit = self.retry.attempts
        return self.dead_letter is not None and limit is not None and attempt > limit


@dataclass(slots=True)
class Decision:
    """What follows, and after how many seconds."""

    next: Next
    wait: float = 0.0


def decide(
    policy: NackPolicy | None,
    attempts: Attempts | None,
    failure: Failure,
    *,
    can_give_back: bool,
    now: float,
    random: float,
) -> Decision:
    """What follows from a nack; with a fatal failure, the flow fails anyway."""
    if policy is None or attempts is None:
        if can_give_back:
            return Decision(Next.GIVE_BACK)
        return Decision(Next.NOTHING if failure.is_fatal else Next.FAIL)
    if isinstance(failure.error, Unfinished):
        return Decision(Next.DELIVER)
    wait = attempts.failed(failure.error, now, random)
    if wait is not None:
        return Decision(Next.DELIVER, wait)
    return Decision(Next.FAIL if policy.dead_letter is None else Next.BURY)
