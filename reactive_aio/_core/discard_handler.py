"""discard_handler: the guard of a user's function that receives discarded elements."""

from collections.abc import Callable
from typing import Any

from .arguments import are_types, refuse_awaitable, require_sync_callable
from .compiler.discards import OnDiscard
from .compiler.inline import describe
from .failures import STOPS_PROGRAM
from .loop import report


def discard_handler(
    operator: str, callback: Callable[[Any], object], only: type[Any] | tuple[type[Any], ...]
) -> OnDiscard:
    """A function that calls *callback* with instances of *only*, and reports what it raises."""
    remedy = "pass the element on to a task of your own"
    require_sync_callable(operator, "callback", callback, remedy, takes=1)
    _require_types(operator, only)

    def give(element: object) -> None:
        if not isinstance(element, only):
            return
        try:
            refuse_awaitable(operator, callback, callback(element), remedy)
        except STOPS_PROGRAM:
            raise
        except BaseException as error:  # no subscriber is left to receive it
            report(f"{operator}: a callback raised for a discarded element", error)

    give.__qualname__ = describe(callback)
    return give


def _require_types(operator: str, only: object) -> None:
    if not are_types(only):
        raise TypeError(f"{operator}: only must be a type or a tuple of types, not {only!r}")
