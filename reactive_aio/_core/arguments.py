"""Checks of operators' arguments: a wrong one raises where the flow is assembled."""

import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from inspect import (
    CO_ASYNC_GENERATOR,
    CO_COROUTINE,
    CO_GENERATOR,
    CO_ITERABLE_COROUTINE,
    CO_VARARGS,
    isasyncgenfunction,
    isawaitable,
    iscoroutine,
    iscoroutinefunction,
    isgeneratorfunction,
)
from math import isfinite, isnan
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType
from typing import Any, Final, cast

from ..errors import NotAnElement
from ..spec import Publisher
from .compiler.inline import describe
from .option_names import option_here

Duration = float | timedelta


class Absent:
    """A default that no user passes; it has a name in signatures."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<{self._name}>"


def is_coroutine_function(value: object) -> bool:
    """Whether a call of *value* returns a coroutine."""
    if _is_plain_function(value, None):
        return False
    return any(map(iscoroutinefunction, _called(value)))


def _called(value: Any) -> tuple[object, object]:
    """*value*, and its ``__call__`` if it is an object of a class that has one."""
    while isinstance(value, partial):
        value = cast("Any", value).func
    return value, getattr(cast("Any", type(value)), "__call__", None)  # noqa: B004 - not that of its instances


def _generator_kind(value: object) -> str:
    """What a call of *value* only makes, if that is a generator."""
    for each in _called(value):
        if isasyncgenfunction(each):
            return "an asynchronous generator"
        # `types.coroutine` marks a generator function whose result can be awaited.
        if isgeneratorfunction(each) and not (
            cast("Any", each).__code__.co_flags & CO_ITERABLE_COROUTINE
        ):
            return "a generator"
    return ""


_SOURCES: Final = frozenset(("create", "from_awaitable", "from_callable", "generate"))
_READ_YIELDED: Final = "use flat_map to read what it yields"
_FOR_GENERATORS: Final = {
    **dict.fromkeys(
        ("map", "filter_map", "map_async", "map_in_thread", "map_in_process"), _READ_YIELDED
    ),
    **dict.fromkeys(
        ("for_each", "running"),
        "leave out its yield, or use flat_map(function) to read what it yields",
    ),
}
"""What to use instead, of operators that have something for it."""


def _refuse_generator(operator: str, parameter: str, value: object) -> None:
    """A call of a generator function runs none of its lines: *operator* would do nothing."""
    kind = _generator_kind(value)
    if not kind:
        return
    remedy = _FOR_GENERATORS.get(operator, "leave out its yield")
    if operator in _SOURCES:
        remedy = "use defer" if kind == "a generator" else "use from_aiter"
    raise TypeError(
        f"{operator}: {parameter} cannot be {kind} function, and {describe(value)} is one: a call "
        f"runs none of its lines; {remedy}"
    )


def require_callable(
    operator: str,
    parameter: str,
    value: Callable[..., Any],
    *,
    takes: int | None = None,
    may_generate: bool = False,
) -> None:
    """*value* must be callable, with *takes* positional arguments unless that is None.

    It is no generator function, unless with *may_generate* its result is read.
    """
    if _is_plain_function(value, takes):
        return
    if not callable(cast("object", value)):
        kind = type(value).__name__
        raise TypeError(
            f"{operator}: {parameter} must be a function, not {describe(value)} ({kind})"
        )
    if not may_generate:
        _refuse_generator(operator, parameter, value)
    if takes is not None and (name := _required_name(value)):
        raise TypeError(
            f"{operator}: {parameter} is called with {_arguments(takes)}, and {describe(value)} "
            f"requires {name}= as well; give it a default, or bind it: functools.partial"
        )
    if takes is not None and (accepted := _other_arity(value, takes)) is not None:
        remedy = "; to unpack a tuple: lambda x: f(*x)" if takes == 1 and accepted > 1 else ""
        raise TypeError(
            f"{operator}: {parameter} is called with {_arguments(takes)}, and {describe(value)} "
            f"takes {accepted or 'none'}{remedy}"
        )


_passed_to: Final[dict[object, FunctionType]] = {}


def note_passes_on(wrapper: Callable[..., Any], function: FunctionType) -> None:
    """*wrapper* takes any arguments, and passes them on to *function* as they are."""
    _passed_to[wrapper] = function


def _other_arity(value: Callable[..., Any], takes: int) -> int | None:
    """How many arguments *value* takes, if that is not *takes*; None for anything not in Python."""
    function: object = value.__func__ if isinstance(value, MethodType) else value
    bound = function is not value
    if not isinstance(function, FunctionType):
        return None
    function = _passed_to.get(function, function)
    code, given = function.__code__, takes + bound
    least = code.co_argcount - len(function.__defaults__ or ())
    if given < least:
        return least - bound
    if given > code.co_argcount and not code.co_flags & CO_VARARGS:
        return code.co_argcount - bound
    return None


def _required_name(value: Callable[..., Any]) -> str | None:
    """A keyword-only parameter of *value* that has no default."""
    function: object = value.__func__ if isinstance(value, MethodType) else value
    if not isinstance(function, FunctionType) or not function.__code__.co_kwonlyargcount:
        return None
    code, defaults = function.__code__, function.__kwdefaults__ or {}
    names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return next((name for name in names if name not in defaults), None)


def _arguments(count: int) -> str:
    return "no argument" if not count else f"{count} argument{'s' if count > 1 else ''}"


_COROUTINE_MARK: Final = "_is_coroutine_mark"
"""The attribute by which ``inspect.markcoroutinefunction`` marks a function, since Python 3.12."""
_NOT_IN_PYTHON: Final = frozenset((BuiltinFunctionType, MethodDescriptorType, type))
_UNUSUAL: Final = CO_COROUTINE | CO_ASYNC_GENERATOR | CO_GENERATOR | CO_VARARGS


def _is_plain_function(value: object, takes: int | None) -> bool:
    """Whether *value* is sure to be a plain function of *takes* arguments, as most of them are.

    How many arguments a function or a class in C takes is not known.
    """
    if type(value) in _NOT_IN_PYTHON:
        return True
    if type(value) is not FunctionType or value.__defaults__ or hasattr(value, _COROUTINE_MARK):
        return False
    code = value.__code__
    is_usual = not (code.co_flags & _UNUSUAL or code.co_kwonlyargcount)
    return is_usual and (takes is None or takes == code.co_argcount)


def require_sync_callable(
    operator: str,
    parameter: str,
    value: Callable[..., Any],
    remedy: str,
    *,
    takes: int | None = None,
    may_generate: bool = False,
) -> None:
    """*value* must not be a coroutine function: its coroutine would become the result.

    Nor a generator function, unless with *may_generate* its result is a source.
    """
    if _is_plain_function(value, takes):
        return
    require_callable(operator, parameter, value, may_generate=may_generate)
    if is_coroutine_function(value):
        raise TypeError(
            f"{operator}: {parameter} must be a plain function, and {describe(value)} is a "
            f"coroutine function; {remedy}"
        )
    require_callable(operator, parameter, value, takes=takes, may_generate=may_generate)


_NOT_AWAITED: Final = re.compile(
    r"object (\S+) can't be used in 'await' expression"  # CPython before 3.14
    r"|'(\S+)' object can't be awaited"
)


def explain_await(
    operator: str, parameter: str, function: Callable[..., Any], error: TypeError, remedy: str = ""
) -> TypeError:
    """Return *error*, or a clearer one if the result of *function* could not be awaited."""
    traceback = error.__traceback__
    found = _NOT_AWAITED.match(str(error))
    if found is None or traceback is None or traceback.tb_next is not None:
        return error  # raised inside the function
    returned = found[1] or found[2]
    if returned.endswith("Flow"):
        remedy = "use flat_map to read the flow"
    plain = operator.replace("from_awaitable", "from_callable").removesuffix("_async")
    result = "None" if returned == "NoneType" else f"an object of type {returned}"
    return TypeError(
        f"{operator}: {parameter} must be a coroutine function or return an awaitable, and "
        f"{describe(function)} returned {result}; "
        + (remedy or f"use {plain} for a plain function")
    )


OWN_TASK: Final = "start a task of your own"
"""The remedy where no element is at hand that `map_async` could await something for."""
_ASYNC_FORMS: Final = {
    "map": "use map_async",
    "map_in_thread": "use map_async in its place",
    "map_in_process": "use map_async in its place",
    "filter": "use filter_async",
    "from_callable": "use from_awaitable",
    "from_thread": "use from_awaitable",
}


_PLAIN_TYPES: Final = frozenset((bool, bytes, dict, float, int, list, str, tuple, type(None)))


def refuse_awaitable(operator: str, function: object, result: object, remedy: str = "") -> None:
    """Raise if *function*, which an operator does not await, returned an awaitable.

    *remedy* says what to do, where to await before the operator cannot help.

    A publisher of another library may be awaitable as well, and is an element like any other.
    """
    if type(result) in _PLAIN_TYPES:
        return
    if isawaitable(result) and not isinstance(result, Publisher):
        if iscoroutine(result):
            result.close()
        remedy = remedy or _ASYNC_FORMS.get(operator, "use map_async before it")
        raise TypeError(
            f"{operator}: {describe(function)} returned {describe(result)} "
            f"({type(result).__name__}), which nothing would await; {remedy}"
        )


def drop_handler(
    operator: str, on_drop: Callable[[Any], object] | None
) -> Callable[[Any], object] | None:
    """A function that calls *on_drop* with an element dropped, and refuses an awaitable result."""
    if on_drop is None:
        return None
    handler = on_drop
    remedy = "pass the element on to a task of your own"
    require_sync_callable(operator, "on_drop", handler, remedy, takes=1)

    def drop(element: object) -> None:
        refuse_awaitable(operator, handler, handler(element), remedy)

    return drop


def require_hashable(operator: str, function: object, key: object) -> None:
    """*key*, which *function* returned for an element, must be hashable, and not awaitable."""
    refuse_awaitable(operator, function, key)
    try:
        hash(key)
    except TypeError as error:
        raise TypeError(
            f"{operator}: {describe(function)} returned {describe(key)}, which cannot be hashed; "
            "return a key such as a tuple"
        ) from error


def are_types(kinds: object) -> bool:
    """Whether *kinds* is a type, or a tuple of types, as `isinstance` takes them."""
    each = cast("tuple[object, ...]", kinds if isinstance(kinds, tuple) else (kinds,))
    return bool(each) and all(isinstance(kind, type) for kind in each)


def require_text(operator: str, parameter: str, text: object) -> str:
    """*text* must be a ``str``."""
    if not isinstance(text, str):
        raise TypeError(f"{operator}: {parameter} must be a str, not {text!r}")
    return text


def require_int(operator: str, parameter: str, value: int, *, least: int = 0) -> int:
    """*value* must be an ``int`` of at least *least*."""
    given = cast("object", value)
    if isinstance(given, bool) or not isinstance(given, int):
        kind = type(given).__name__
        raise TypeError(f"{operator}: {parameter} must be an int, not {describe(given)} ({kind})")
    if value < least:
        raise ValueError(f"{operator}: {parameter} must be at least {least}, not {value}")
    return value


def require_number(name: str, value: object) -> float:
    """*value*, the parameter *name*, must be an ``int`` or ``float``, and not NaN."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, not {describe(value)} ({type(value).__name__})")
    if isnan(value):
        raise ValueError(f"{name} must be a number, not nan")
    return value


def describe_given(value: object) -> str:
    """*value*, which is given in place of an object of some class; a class lacks its arguments."""
    if isinstance(value, type):
        return f"the class {value.__name__}; make one of it: {value.__name__}(...)"
    return f"{describe(value)} ({type(value).__name__})"


def require_error(call: str, error: object) -> None:
    """*error*, given to *call*, must be an exception: an instance, as every subscriber expects.

    ``raise`` takes a class as well. Here that would be an exception without a message, and for
    several subscribers the choice between one exception and one for each.
    """
    if error is None:
        raise NotAnElement(f"{call}: an exception is needed, not None")
    if isinstance(error, BaseException):
        return
    given, remedy = describe(error), ""
    if isinstance(error, str):
        remedy = f"; give it a class: RuntimeError({given})"
    elif isinstance(error, type) and issubclass(error, BaseException):
        remedy = f", which is a class; make an instance: {error.__name__}(...)"
    raise TypeError(f"{call}: an exception is needed, not {given}{remedy}")


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
        seconds = f"{least} seconds" if isfinite(value) else f"a finite number of seconds, {least}"
        raise ValueError(f"{name} must be {seconds}, not {value!r}")
    return float(value)


def require_known_options(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Each name of *given* must be one of *known*, the options of the function *what*."""
    names = list(known)
    unknown = [each for each in given if each not in names]
    if not unknown:
        return
    here = [name for each in unknown if (name := option_here(each, names))]
    hint = f"here it is called {', '.join(here)}" if here else f"known are {', '.join(names)}"
    raise TypeError(f"{what}: unknown {', '.join(unknown)}; {hint}")
