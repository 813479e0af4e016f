"""What a suspended coroutine waits for: a line of the user's code, or something of this package."""

from collections.abc import Callable
from inspect import unwrap
from pathlib import Path
from sysconfig import get_path
from types import CodeType
from typing import Any, Final, Literal, NamedTuple, TypeVar

from ..compiler.inline import describe
from ..unwinding import suspended_frames

F = TypeVar("F", bound=Callable[..., Any])
Describe = Callable[[dict[str, Any]], str | None]

_PACKAGE: Final = str(Path(__file__).parents[2])
_STANDARD: Final = get_path("stdlib")
_NO_FILES: Final = ("<reactive_aio", "<frozen")
"""How the names of files begin that nobody has written: generated loops, and Python's own modules.
(``<stdin>`` and ``<string>`` are programs of the user.)"""
_INSTALLED: Final = ("site-packages", "dist-packages")

Kind = Literal["function", "limit", "time", "elements"]

_waits: dict[CodeType, tuple[Describe, Kind]] = {}
_NOTHING: Final[tuple[Describe, Kind]] = (lambda _: None, "function")


class Wait(NamedTuple):
    """What a call or an operator waits for."""

    kind: Kind
    """A function of the user; what keeps work from beginning or from being tried again; the time
    for which an operator was told to hold elements, or the elements of a server that sends none.
    The last two are no stall."""
    text: str


def tells_wait(describe: Describe, kind: Kind = "limit") -> Callable[[F], F]:
    """Declare what a coroutine function of this package waits for when it is suspended.

    *describe* receives its local variables; None means that it is suspended elsewhere.
    """

    def declare(function: F) -> F:
        _waits[function.__code__] = describe, kind
        return function

    return declare


def wait_of(awaited: Any) -> Wait | None:
    """What *awaited*, which is suspended, waits for; None if that is nothing of the user's."""
    frames = list(suspended_frames(awaited))
    line = line_of(reversed(frames))
    for frame in reversed(frames):
        describe, kind = _waits.get(frame.f_code, _NOTHING)
        if (text := describe(frame.f_locals)) is not None:
            is_shown = line is not None and kind != "elements"  # that line would be of the client
            return Wait(kind, f"{text}, in {line}" if is_shown else text)
    return None if line is None else Wait("function", line)


def line_of(frames: "Any") -> str | None:
    """Where *frames*, the innermost first, are in the user's code; None if they are nowhere there.

    It is the innermost line that the user has written; where that calls a library, with the line of
    the library beside it.
    """
    library = ""
    for frame in frames:
        file = frame.f_code.co_filename
        if is_of_package_or_python(file):
            continue
        here = f"{frame.f_code.co_qualname} ({file}:{frame.f_lineno})"
        if not any(each in file for each in _INSTALLED):
            return f"{here}, in {library}" if library else here
        library = library or here
    return library or None


def place_of_function(function: Callable[..., Any]) -> str:
    """Where *function* is defined, as `line_of` has it, or its name if that is not known."""
    code = getattr(unwrap(function), "__code__", None)
    if not isinstance(code, CodeType):
        return describe(function)
    return f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"


def is_of_package(file: str) -> bool:
    """Whether *file* is of this package, or one of its generated loops."""
    return file.startswith((_PACKAGE, _NO_FILES[0]))


def is_of_package_or_python(file: str) -> bool:
    """Whether *file* is of this package, one of its generated loops, or of the standard library."""
    if file.startswith((*_NO_FILES, _PACKAGE)):
        return True
    return file.startswith(_STANDARD) and not any(each in file for each in _INSTALLED)
