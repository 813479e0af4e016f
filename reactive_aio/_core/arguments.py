"""Checks of operators' arguments: a wrong one raises where the flow is assembled."""

from collections.abc import Callable
from datetime import timedelta
from inspect import iscoroutinefunction
from math import isfinite
from typing import Any, cast

from ..errors import NotAnElement
from .compiler.inline import describe

Duration = float | timedelta


def is_coroutine_function(value: object) -> bool:
    """Whether a call of *value* returns a coroutine."""
    call = getattr(value, "__call__", None)  # noqa: B004 - an object whose __call__ is async
    return iscoroutinefunction(value) or iscoroutinefunction(call)


def require_callable(operator: str, parameter: str, value: Callable[..., Any]) -> None:
    """*value* must be callable."""
    if not callable(cast("object", value)):
        kind = type(value).__name__
        raise TypeError(
            f"{operator}: {parameter} must be a function, not {describe(value)} ({kind})"
        )


def require_sync_callable(
    operator: str, parameter: str, value: Callable[..., Any], remedy: str
) -> None:
    """*value* must not be a coroutine function: its coroutine would become the result."""
    require_callable(operator, parameter, value)
    if is_coroutine_function(value):
        raise TypeError(
            f"{operator}: {parameter} must be a plain function, and {describe(value)} is a "
            f"coroutine function; {remedy}"
        )


def require_int(operator: str, parameter: str, value: int, *, least: int = 0) -> int:
    """*value* must be an ``int`` of at least *least*."""
    given = cast("object", value)
    if isinstance(given, bool) or not isinstance(given, int):
        kind = type(given).__name__
        raise TypeError(f"{operator}: {parameter} must be an int, not {describe(given)} ({kind})")
    if value < least:
        raise ValueError(f"{operator}: {parameter} must be at least {least}, not {value}")
    return value


def require_element(operator: str, parameter: str, value: object) -> None:
    """*value* must not be None."""
    if value is None:
        raise NotAnElement(f"{operator}: {parameter} is None, which is not an element")


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
