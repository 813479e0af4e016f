"""The errors about a wrong keyword of a public function say what the option is called here."""

import contextlib
from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from inspect import Parameter, iscoroutinefunction, signature
from re import compile as pattern
from sys import modules
from types import FunctionType, ModuleType, TracebackType
from typing import Any, Final, cast

from .._core.arguments import note_passes_on
from .._core.option_names import option_here
from .foreign_names import NO_EQUIVALENT

__all__ = ("explain_foreign_options",)

_LEFT_OUT: Final = {"scheduler": NO_EQUIVALENT["publish_on"]}
_OF_AWAITED_CALLS: Final = ("limiter", "on_error", "retry", "timeout")
_UNKNOWN: Final = pattern(r"\(\) got an unexpected keyword argument '(\w+)'").search
_MISSING: Final = pattern(r"\(\) missing \d+ required .*arguments?: (.*)$").search
_TOO_MANY: Final = pattern(r"\(\) takes .* positional arguments? but .* given$").search
_RECEIVERS: Final = frozenset(("self", "source"))
_BY_NAME: Final = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)

_explained: Final[dict[Callable[..., Any], Callable[..., Any]]] = {}


def explain_foreign_options(owner: type | ModuleType, names: Iterable[str]) -> None:
    """Let the functions that *owner* has under *names* say what a wrong keyword is called here.

    Of a class it is the constructor that says so, unless `typing` has made it, as of a protocol.
    """
    for name in names:
        value = vars(owner)[name]
        if isinstance(value, FunctionType):
            setattr(owner, name, _explaining(value))
        elif isinstance(value, type):
            constructor = vars(value).get("__init__")
            if isinstance(constructor, FunctionType) and constructor.__module__ == value.__module__:
                cast("Any", value).__init__ = _explaining(constructor)


def _explaining(function: FunctionType) -> Callable[..., Any]:
    """*function*, whose TypeErrors about its call are explained once they are raised."""
    if function in _explained:
        return _explained[function]

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except TypeError as error:
            _explain(error, function, options)
            raise

    @wraps(function)
    async def call_async(*arguments: Any, **options: Any) -> Any:
        try:
            result: Awaitable[Any] = function(*arguments, **options)
        except TypeError as error:
            _explain(error, function, options)
            raise
        return await result

    explaining: Any = call_async if iscoroutinefunction(function) else call
    _explained[function] = _explained[explaining] = explaining
    note_passes_on(explaining, function)
    # Pickled functions are looked up in their module, and have to be what is found there.
    home = modules[function.__module__]
    if vars(home).get(function.__qualname__) is function:
        setattr(home, function.__qualname__, explaining)
    return cast("Callable[..., Any]", explaining)


def _explain(error: TypeError, function: FunctionType, options: Iterable[str]) -> None:
    """Complete the message of *error* if the call of *function* itself has raised it."""
    if _is_from_inside(error.__traceback__):
        return
    message = str(error)
    if unknown := _UNKNOWN(message):
        given = unknown[1]
        error.args = (f"{message[: unknown.end()]}; {_hint(given, function)}",)
    elif missing := _MISSING(message):  # others were passed on, as options of a client
        own = [name for name in _names(function, *_BY_NAME) if f"'{name}'" in missing[1]]
        hints = [
            f"{each} is called {here} here" for each in options if (here := option_here(each, own))
        ]
        error.args = ("; ".join((message, *hints)),)
    elif _TOO_MANY(message) and (by_name := _names(function, Parameter.KEYWORD_ONLY)):
        error.args = (f"{message}; these are given by name: {', '.join(by_name)}",)


def _is_from_inside(trace: TracebackType | None) -> bool:
    """Whether the function was entered; `asynccontextmanager` calls it in frames of its own."""
    while trace is not None and (trace := trace.tb_next) is not None:
        if trace.tb_frame.f_code.co_filename != contextlib.__file__:
            return True
    return False


def _hint(given: str, function: FunctionType) -> str:
    own = _names(function, *_BY_NAME)
    if found := option_here(given, own):
        return f"here it is called {found}"
    if reason := _LEFT_OUT.get(given):
        return reason
    is_of_calls = given in _OF_AWAITED_CALLS or option_here(given, _OF_AWAITED_CALLS)
    if is_of_calls and function.__name__.startswith("map"):
        return "map_async has it; for a function that blocks: lambda x: asyncio.to_thread(f, x)"
    return f"its parameters are {', '.join(own)}" if own else "it has no options"


def _names(function: FunctionType, *kinds: Any) -> list[str]:
    parameters = signature(function).parameters.values()
    return [each.name for each in parameters if each.kind in kinds and each.name not in _RECEIVERS]
