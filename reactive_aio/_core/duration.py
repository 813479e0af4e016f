"""Durations: seconds as a number, or a timedelta."""

from datetime import timedelta
from math import isfinite

__all__ = ("Duration", "seconds")

Duration = float | timedelta


def seconds(value: Duration, name: str, *, zero: bool = False) -> float:
    """Return *value* in seconds; *name* is its parameter, and *zero* says whether 0 is allowed."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    # What callers without a type checker may give is refused here.
    unchecked: object = value
    if isinstance(unchecked, bool) or not isinstance(unchecked, (int, float)):
        raise TypeError(f"{name} must be seconds (a number) or a timedelta, not {value!r}")
    if not isfinite(value) or value < 0 or (value == 0 and not zero):
        least = "0 or more" if zero else "more than 0"
        raise ValueError(f"{name} must be {least} seconds, not {value!r}")
    return float(value)
