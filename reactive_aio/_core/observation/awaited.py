"""Where a coroutine is suspended: the line of the user's function that it awaits."""

from pathlib import Path
from sysconfig import get_path
from typing import TYPE_CHECKING, Any, Final

from ..unwinding import suspended_frames

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

_PACKAGE: Final = str(Path(__file__).parents[2])
_STANDARD: Final = get_path("stdlib")
_NO_FILES: Final = ("<reactive_aio", "<frozen")
"""How the names of files begin that nobody has written: generated loops, and Python's own modules.
(``<stdin>`` and ``<string>`` are programs of the user.)"""
_INSTALLED: Final = ("site-packages", "dist-packages")


def innermost_line(awaited: Any) -> str | None:
    """The line of the user that *awaited* is suspended in; or None."""
    return line_of(reversed(list(suspended_frames(awaited))))


def line_of(frames: "Iterable[FrameType]") -> str | None:
    """Where *frames*, the innermost first, are in the user's code; None if they are nowhere there.

    It is the innermost line that the user has written; where that calls a library, with the line of
    the library beside it.
    """
    library = ""
    for frame in frames:
        file = frame.f_code.co_filename
        if not is_of_user(file):
            continue
        here = f"{frame.f_code.co_qualname} ({file}:{frame.f_lineno})"
        if not any(each in file for each in _INSTALLED):
            return f"{here}, in {library}" if library else here
        library = library or here
    return library or None


def is_of_user(file: str) -> bool:
    """Whether *file* is neither a generated loop nor of this package or the standard library."""
    if file.startswith((*_NO_FILES, _PACKAGE)):
        return False
    return not file.startswith(_STANDARD) or any(each in file for each in _INSTALLED)
