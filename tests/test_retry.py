"""RetryPolicy: when to try again, and after which delay."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from reactive_aio import RetryPolicy

DELAYS = st.floats(0, 100)
ATTEMPTS = st.integers(1, 10_000)
RANDOM = st.floats(0, 1, exclude_max=True)


def says_try_again(error: BaseException) -> bool:
    return "try again" in str(error)


@given(st.integers(1, 50), ATTEMPTS, RANDOM)
def test_there_are_never_more_attempts_than_allowed(
    attempts: int, attempt: int, random: float
) -> None:
    decision = RetryPolicy(attempts=attempts).decide(attempt, OSError(), 0, random)
    assert (decision is None) == (attempt >= attempts)


@given(DELAYS, st.floats(1, 10), DELAYS, st.floats(0, 1), ATTEMPTS, RANDOM)
def test_a_delay_is_between_the_jitter_and_the_maximum(
    delay: float, factor: float, maximum: float, jitter: float, attempt: int, random: float
) -> None:
    policy = RetryPolicy(attempts=None, delay=delay, factor=factor, maximum=maximum, jitter=jitter)
    wait = policy.decide(attempt, OSError(), 0, random)
    assert wait is not None
    full = policy.backoff(attempt, 0)
    assert full * (1 - jitter) <= wait <= full <= maximum
    assert full >= min(policy.backoff(max(1, attempt - 1), 0), maximum), "waits grow"


@given(st.floats(0.001, 1000), st.floats(0, 2000), DELAYS)
def test_no_attempt_starts_after_the_time_budget(
    within: float, elapsed: float, delay: float
) -> None:
    policy = RetryPolicy(attempts=None, within=within, delay=delay, jitter=0)
    wait = policy.decide(1, OSError(), elapsed, 0)
    assert (wait is None) == (elapsed + min(delay, 60) > within)


def test_delays_grow_by_the_factor() -> None:
    policy = RetryPolicy(attempts=9, delay=timedelta(seconds=1), factor=3, maximum=20, jitter=0)
    waits = [policy.decide(attempt, OSError(), 0, 0) for attempt in range(1, 6)]
    assert waits == [1, 3, 9, 20, 20]


@pytest.mark.parametrize(
    ("only", "error", "covered"),
    [
        (Exception, OSError(), True),
        (Exception, KeyboardInterrupt(), False),
        ((KeyError, OSError), FileNotFoundError(), True),
        (KeyError, OSError(), False),
        (says_try_again, OSError("try again"), True),
        (says_try_again, OSError("no"), False),
    ],
)
def test_only_covered_errors_lead_to_another_attempt(
    only: Any, error: BaseException, covered: bool
) -> None:
    policy = RetryPolicy(only=only)
    assert policy.covers(error) is covered
    assert (policy.decide(1, error, 0, 0) is not None) is covered


@pytest.mark.parametrize(
    "arguments",
    [
        {"attempts": 0},
        {"delay": -1},
        {"factor": 0.5},
        {"factor": float("nan")},
        {"factor": float("inf")},
        {"jitter": 2},
        {"maximum": -1},
        {"within": 0},
    ],
    ids=str,
)
def test_bad_arguments_are_refused_by_name(arguments: dict[str, Any]) -> None:
    (name,) = arguments
    with pytest.raises(ValueError, match=name):
        RetryPolicy(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"attempts": True},
        {"attempts": 1.5},
        {"only": 3},
        {"factor": "2"},
        {"factor": True},
        {"jitter": None},
    ],
    ids=str,
)
def test_arguments_of_another_kind_are_refused_by_name(arguments: dict[str, Any]) -> None:
    (name,) = arguments
    with pytest.raises(TypeError, match=f"{name} must be"):
        RetryPolicy(**arguments)


def test_an_int_is_the_number_of_attempts_without_delays() -> None:
    policy = RetryPolicy.of(5)
    assert (policy.attempts, policy.backoff(4, 0)) == (5, 0)
    assert RetryPolicy.of(policy) is policy


def seconds_in(error: BaseException) -> Any:
    return error.args[0]


def test_the_answer_of_the_other_side_makes_a_delay_longer() -> None:
    policy = RetryPolicy(delay=2, jitter=0, retry_after=seconds_in)
    assert policy.decide(1, OSError(None), 0, 0) == 2
    assert policy.decide(1, OSError(1), 0, 0) == 2
    assert policy.decide(1, OSError(timedelta(minutes=2)), 0, 0) == 120


def test_an_answer_beyond_the_time_budget_gives_up() -> None:
    policy = RetryPolicy(delay=0, within=60, retry_after=seconds_in)
    assert policy.decide(1, OSError(61), 0, 0) is None


@pytest.mark.parametrize("answer", [-1, "soon"])
def test_a_wrong_answer_is_an_error(answer: Any) -> None:
    policy = RetryPolicy(retry_after=seconds_in)
    with pytest.raises((TypeError, ValueError), match="retry_after must be"):
        policy.decide(1, OSError(answer), 0, 0)
