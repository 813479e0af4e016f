"""Durations: seconds as a number, or a timedelta."""

from datetime import timedelta
from math import isfinite
from typing import cast

Duration = float | timedelta


def to_seconds(duration: Duration, name: str, *, zero: bool = False) -> float:
    """Return *duration* in seconds. *name* is its parameter; with *zero*, it may be 0."""
    # Callers without a type checker may pass anything.
    value = cast("object", duration)
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be seconds (a number) or a timedelta, not {value!r}")
    if not isfinite(value) or value < 0 or (value == 0 and not zero):
        least = "0 or more" if zero else "more than 0"
        raise ValueError(f"{name} must be {least} seconds, not {value!r}")
    return float(value)
