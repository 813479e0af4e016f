"""Where a coroutine is suspended: the line of the user's function that it awaits."""

from pathlib import Path
from sysconfig import get_path
from typing import TYPE_CHECKING, Any, Final

from ..unwinding import suspended_frames

if TYPE_CHECKING:
    from types import FrameType

_PACKAGE: Final = str(Path(__file__).parents[2])
_STANDARD: Final = get_path("stdlib")


def innermost_line(awaited: Any) -> str | None:
    """The innermost function of the user that *awaited* is suspended in, and the line; or None."""
    innermost: FrameType | None = None
    for frame in suspended_frames(awaited):
        if is_of_user(frame.f_code.co_filename):
            innermost = frame
    if innermost is None:
        return None
    code = innermost.f_code
    return f"{code.co_qualname} ({code.co_filename}:{innermost.f_lineno})"


def is_of_user(file: str) -> bool:
    """Whether *file* is neither a generated loop nor of this package or the standard library."""
    if file.startswith(("<", _PACKAGE)):
        return False
    return not file.startswith(_STANDARD) or "site-packages" in file
