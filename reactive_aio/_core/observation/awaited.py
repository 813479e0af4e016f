"""Where a coroutine is suspended: the line of the user's function that it awaits."""

from pathlib import Path
from sysconfig import get_path
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType
from typing import Any, Final

_OF_CLASS: Final[dict[type, tuple[str, str]]] = {
    CoroutineType: ("cr_frame", "cr_await"),
    GeneratorType: ("gi_frame", "gi_yieldfrom"),
    AsyncGeneratorType: ("ag_frame", "ag_await"),
}
_PACKAGE: Final = str(Path(__file__).parents[2])
_STANDARD: Final = get_path("stdlib")


def innermost_line(awaited: Any) -> str | None:
    """The innermost function of the user that *awaited* is suspended in, and the line; or None."""
    innermost: FrameType | None = None
    while awaited is not None and (names := _OF_CLASS.get(awaited.__class__)) is not None:
        frame, inside = (getattr(awaited, name) for name in names)
        if frame is None:
            break
        if is_of_user(frame.f_code.co_filename):
            innermost = frame
        awaited = inside
    if innermost is None:
        return None
    code = innermost.f_code
    return f"{code.co_qualname} ({code.co_filename}:{innermost.f_lineno})"


def is_of_user(file: str) -> bool:
    """Whether *file* is neither a generated loop nor of this package or the standard library."""
    if file.startswith(("<", _PACKAGE)):
        return False
    return not file.startswith(_STANDARD) or "site-packages" in file
