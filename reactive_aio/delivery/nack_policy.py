"""NackPolicy: what follows when the work on an element has failed. Pure: it decides.

========================  ==================  ===========================================
policy                    source takes back   what follows
========================  ==================  ===========================================
none                      yes                 it is given back to the source
none                      no                  the flow fails
it failed with others     either              the flow delivers it again; that does not count
attempts are left         either              the flow delivers it again, after a delay
none left, an outage      either              the same, until it failed while others were done
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

from ..retry import Attempts, Errors, RetryPolicy, matches
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

    outage: Errors | Callable[[BaseException], object] = ()
    """Errors that may be those of a server, which all elements have then."""


@dataclass(slots=True)
class Tries:
    """What is known of an element that fails."""

    attempts: Attempts
    done_before: int
    """How many others were done when it was tried, or has failed, last."""
    failed_alone: int = 0
    """How often it has failed while others were done."""

    def note_failure(self, done: int) -> None:
        """It has failed; *done* others were done up to now."""
        self.failed_alone += done > self.done_before
        self.done_before = done


@dataclass(slots=True)
class Decision:
    """What follows, and after how many seconds."""

    next: Next
    wait: float = 0.0


def decide(
    policy: NackPolicy | None,
    tries: Tries | None,
    failure: Failure,
    *,
    can_give_back: bool,
    done: int,
    now: float,
    random: float,
) -> Decision:
    """What follows from a nack, when *done* elements were done up to now.

    With a fatal failure, the flow fails anyway.
    """
    if policy is None or tries is None:
        if can_give_back:
            return Decision(Next.GIVE_BACK)
        return Decision(Next.NOTHING if failure.is_fatal else Next.FAIL)
    if isinstance(failure.error, Unfinished):
        return Decision(Next.DELIVER)
    attempts = tries.attempts
    tries.note_failure(done)
    wait = attempts.failed(failure.error, now, random)
    if wait is not None:
        return Decision(Next.DELIVER, wait)
    is_outage = matches("nack_on_error", policy.outage, failure.error)
    if is_outage and tries.failed_alone < (policy.retry.attempts or 1):
        return Decision(Next.DELIVER, attempts.once_more(failure.error, random))
    return Decision(Next.FAIL if policy.dead_letter is None else Next.BURY)
