"""Checks of operators' arguments: a wrong one raises where the flow is assembled."""

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any, cast

from ..errors import NotAnElement
from .compiler.inline import describe


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
