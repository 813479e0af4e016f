"""Retry policies: pure decisions about when to try again and when to give up."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import inf
from typing import Any, Final, cast

from ._core.arguments import (
    Duration,
    are_types,
    refuse_awaitable,
    require_number,
    require_sync_callable,
    to_seconds,
)
from ._core.compiler.error_notes import add_bounded_note, short_text
from ._core.observation.registry import note_retry

__all__ = ("Attempts", "RetryPolicy", "parse_retry_after")

_NOTE: Final = "retry: "
_DECIDE: Final = "decide without awaiting"
_READ: Final = "read the answer of the other side from the error"
_MAX_ATTEMPTS_NOTED: Final = 10
_LEAST_DELAY: Final = 0.05
_MOST_DELAY: Final = 5.0


def parse_retry_after(header: str | None) -> float | None:
    """Return how many seconds an HTTP server asks to wait, from its header ``Retry-After``.

    The header is a number of seconds, or a date. The result is None if there is no header, or if it
    cannot be read. Use it in the function that you give to ``RetryPolicy(retry_after=…)``.
    """
    header = (header or "").strip()
    if header.isascii() and header.isdigit():
        return float(header[:9])
    try:
        date = parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


Errors = type[BaseException] | tuple[type[BaseException], ...]


def require_errors(operator: str, name: str, errors: Any) -> None:
    """Raise unless *errors* are types of exceptions, or a predicate; () stands for none."""
    if errors != () and not are_types(errors):
        if not callable(errors):
            raise TypeError(f"{name} must be exception types or a predicate, not {errors!r}")
        require_sync_callable(operator, name, errors, _DECIDE, takes=1)


def matches(
    operator: str, errors: Errors | Callable[[BaseException], object], error: BaseException
) -> bool:
    """Whether *error* is one of *errors*."""
    if isinstance(errors, (type, tuple)):
        return isinstance(error, errors)
    answer = errors(error)
    refuse_awaitable(operator, errors, answer, _DECIDE)
    return bool(answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often, after which delay and after which errors `retry` subscribes again.

    ::

        RetryPolicy(attempts=5, delay=0.1, factor=2, maximum=10, jitter=0.5, only=OSError)

    makes at most five attempts with delays of 0.1, 0.2, 0.4 and 0.8 seconds, each shortened at
    random by up to a half, and gives up at once when the error is not an `OSError`.

    - attempts: the number of attempts, including the first; None for no limit (then set *within*).
    - delay: the delay before the second attempt.
    - factor: the factor by which each delay exceeds the previous one.
    - maximum: the longest delay.
    - jitter: the part of each delay that is random, from 0 (none) to 1 (all).
    - only: the errors after which to try again: their types, or a predicate.
    - within: the time budget: no attempt starts later than this after the start of the first one.
    - reset: whether an element that arrives resets the attempts and the time budget.
    - retry_after: reads from an error how long the other side asks to wait; the delay is at least
      that.
    """

    attempts: int | None = 3
    delay: Duration = 0.0
    factor: float = 2.0
    maximum: Duration = 60.0
    jitter: float = 0.5
    only: Errors | Callable[[BaseException], object] = Exception
    within: Duration | None = None
    reset: bool = False
    retry_after: Callable[[BaseException], Duration | None] | None = None

    def __post_init__(self) -> None:
        attempts = cast("object", self.attempts)
        if attempts is not None:
            if isinstance(attempts, bool) or not isinstance(attempts, int):
                raise TypeError(f"attempts must be an int or None, not {attempts!r}")
            if attempts < 1:
                raise ValueError(f"attempts must be at least 1 (the first one), not {attempts}")
        if not 1 <= require_number("factor", self.factor) < inf:
            raise ValueError(f"factor must be at least 1, and finite, not {self.factor}")
        if not 0 <= require_number("jitter", self.jitter) <= 1:
            raise ValueError(f"jitter must be between 0 and 1, not {self.jitter}")
        to_seconds(self.delay, "delay", zero=True)
        to_seconds(self.maximum, "maximum", zero=True)
        if self.within is not None:
            to_seconds(self.within, "within")
        require_errors("RetryPolicy", "only", self.only)
        if self.retry_after is not None:
            require_sync_callable("RetryPolicy", "retry_after", self.retry_after, _READ, takes=1)

    def __str__(self) -> str:
        return "unlimited" if self.attempts is None else f"{self.attempts} attempts"

    def covers(self, error: BaseException) -> bool:
        """Whether to try again after *error*."""
        return matches("RetryPolicy", self.only, error)

    def backoff(self, attempt: int, random: float) -> float:
        """The delay after *attempt* (from 1), with *random* in [0, 1)."""
        delay = to_seconds(self.delay, "", zero=True)
        maximum = to_seconds(self.maximum, "", zero=True)
        try:
            wait = min(delay * self.factor ** (attempt - 1), maximum)
        except OverflowError:
            wait = maximum if delay else 0.0
        return wait * (1 - self.jitter * random)

    def decide(
        self, attempt: int, error: BaseException, elapsed: float, random: float
    ) -> float | None:
        """Return the delay before the next attempt, or None to give up.

        *attempt* (from 1) has failed with *error*, *elapsed* seconds after the first one started;
        *random* is a random number in [0, 1).
        """
        if not self.covers(error):
            return None
        return self._wait(attempt, elapsed, random, self._requested_delay(error))

    def decide_completed(self, attempt: int, elapsed: float, random: float) -> float | None:
        """The same for an attempt that has completed, where that is to be followed by another."""
        return self._wait(attempt, elapsed, random, 0.0)

    def _wait(self, attempt: int, elapsed: float, random: float, least: float) -> float | None:
        if self.attempts is not None and attempt >= self.attempts:
            return None
        wait = max(self.backoff(attempt, random), least)
        if self.within is not None and elapsed + wait > to_seconds(self.within, ""):
            return None
        return wait

    def _requested_delay(self, error: BaseException) -> float:
        answer = None if self.retry_after is None else self.retry_after(error)
        refuse_awaitable("RetryPolicy", self.retry_after, answer, _READ)
        return 0.0 if answer is None else to_seconds(answer, "retry_after", zero=True)

    @classmethod
    def of(cls, policy: "RetryPolicy | int") -> "RetryPolicy":
        """Return a policy unchanged; an int is a number of attempts without delays."""
        if isinstance(policy, RetryPolicy):
            return policy
        given = cast("object", policy)
        if isinstance(given, (type, tuple)):
            raise TypeError(
                f"retry: policy must be a RetryPolicy or an int, not {given!r}; to retry only "
                "after some errors: RetryPolicy(only=...)"
            )
        if isinstance(given, bool) or not isinstance(given, int):
            raise TypeError(f"retry: policy must be a RetryPolicy or an int, not {given!r}")
        if policy < 1:
            raise ValueError(f"retry: the first attempt counts, so give at least 1, not {policy}")
        return cls(attempts=policy)


@dataclass(slots=True, eq=False, repr=False)
class Attempts:
    """The attempts of one subscription, or of one call. Pure: the time is given."""

    policy: RetryPolicy
    began: float
    """When the first attempt started."""
    number: int = 1
    """The number of the attempt that runs."""
    retries: int = 0
    """How many attempts were followed by another, since the first of all."""
    last: str = ""
    """How the last attempt has ended, for reports: the type of its error."""
    _failures: deque[str] = field(default_factory=lambda: deque(maxlen=_MAX_ATTEMPTS_NOTED))

    def failed(self, error: BaseException, now: float, random: float) -> float | None:
        """Return the delay before the next attempt; or None, and *error* has a note about all."""
        wait = self.policy.decide(self.number, error, now - self.began, random)
        if wait is None:
            self._note(error, now - self.began)
        else:
            note_retry(error)
            self.last = type(error).__name__
            self._failures.append(f"attempt {self.number}: {short_text(error)}")
            self.number += 1
            self.retries += 1
        return wait

    def once_more(self, error: BaseException, random: float) -> float:
        """Return the delay before an attempt that follows although none is left."""
        self._failures.append(f"attempt {self.number}: {short_text(error)}")
        self.number += 1
        self.retries += 1
        note_retry(error)
        least = min(_LEAST_DELAY * 2.0 ** min(self.number, 9), _MOST_DELAY)
        return max(self.policy.backoff(self.number, random), least)

    def completed(self, now: float, random: float) -> float | None:
        """Return the delay before the next attempt after one that has completed; None for none."""
        wait = self.policy.decide_completed(self.number, now - self.began, random)
        if wait is not None:
            self.last = "its end"
            self._failures.append(f"attempt {self.number}: completed")
            self.number += 1
            self.retries += 1
        return wait

    @property
    def delay_text(self) -> str:
        """What is waited for between two attempts, for reports."""
        return f"the delay before attempt {self.number}, after {self.last}"

    def restart(self, now: float) -> None:
        """Count and measure from here on."""
        self.began, self.number = now, 1
        self._failures.clear()

    def _note(self, error: BaseException, elapsed: float) -> None:
        """Note the attempts in the last error, so that ``except`` and ``only=`` find its type."""
        if self._failures:
            text = f"{_NOTE}attempt {self.number} failed with this error, after {elapsed:.3g} s"
            with suppress(Exception):  # it may be frozen
                add_bounded_note(error, _NOTE, "\n    ".join([text, *self._failures]))
