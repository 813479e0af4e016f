"""Tracebacks that show the user's functions, and fold the frames of libraries.

::

    from reactive_aio.observe import tracebacks

    tracebacks.install()                     # for uncaught exceptions, in every thread
    print(tracebacks.format_error(error))    # or for one exception
    handler.setFormatter(tracebacks.LogFormatter("%(levelname)s %(message)s"))

An exception keeps its traceback: folded is the text alone.
"""

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from sysconfig import get_path
from traceback import FrameSummary, StackSummary, TracebackException
from types import TracebackType
from typing import Any, Final

from .._core.foreign_text import printable

__all__ = ("LogFormatter", "format_error", "install")

_LOOPS: Final = "<reactive_aio "
"""How the file names of generated loops begin."""
_PACKAGE: Final = str(Path(__file__).parents[1])
_STANDARD: Final = Path(get_path("stdlib"))
_FOLDED: Final = (
    (_LOOPS, "reactive_aio"),
    (f"{_PACKAGE}{Path('/')}", "reactive_aio"),
    (str(_STANDARD / "asyncio"), "asyncio"),
    (str(_STANDARD / "contextlib.py"), "contextlib"),
    (str(_STANDARD / "concurrent"), "concurrent.futures"),
    (str(_STANDARD / "threading.py"), "threading"),
)
_INSTALLED: Final = {
    str(Path("site-packages") / name): name for name in ("anyio", "IPython", "ipykernel")
}


def format_error(error: BaseException) -> str:
    """The traceback of *error* as Python prints it, with the frames of libraries folded.

    Folded are frames of this package, of its generated loops, of asyncio, anyio and IPython, each
    run of them to one line with their number. The frame that raised is always shown. The same holds
    for causes, contexts and the members of groups. Control characters, which others may have put
    into a message, are shown as escapes. The exception is not changed.
    """
    text = "".join(_folded(TracebackException.from_exception(error)).format())
    return printable(text.rstrip("\n"))


def install() -> Callable[[], None]:
    """Print uncaught exceptions with the frames of libraries folded; return what ends that.

    It sets `sys.excepthook` and `threading.excepthook`. Where another hook was set, as by an error
    tracker, that one is called after it; Python's own is replaced. In IPython and in notebooks, the
    errors of cells are shown like this.
    """
    shell = _running_shell()
    if shell is not None:
        shell.set_custom_exc((Exception,), _show_in_shell)
    before, before_threads = sys.excepthook, threading.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        sys.stderr.write(f"{format_error(error)}\n")
        if before is not sys.__excepthook__:
            before(kind, error, traceback)

    def thread_hook(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is not None and arguments.exc_type is not SystemExit:
            name = arguments.thread.name if arguments.thread is not None else "unknown"
            text = f"Exception in thread {name}:\n{format_error(arguments.exc_value)}"
            sys.stderr.write(f"{printable(text)}\n")
        if before_threads is not threading.__excepthook__:
            before_threads(arguments)

    def uninstall() -> None:
        if sys.excepthook is hook:
            sys.excepthook = before
        if threading.excepthook is thread_hook:
            threading.excepthook = before_threads
        if shell is not None:
            shell.set_custom_exc((), None)

    sys.excepthook, threading.excepthook = hook, thread_hook
    return uninstall


class LogFormatter(logging.Formatter):
    """A formatter of logs that folds the frames of libraries in tracebacks.

    The errors that no subscriber receives are logged by the event loop; this is for the handler
    that writes them, and is used as any ``logging.Formatter``.
    """

    def formatException(self, ei: Any) -> str:
        """The traceback of a record."""
        return format_error(ei[1]) if ei[1] is not None else super().formatException(ei)


def _running_shell() -> Any:
    """The shell of IPython that runs this program; None if there is none."""
    shell = sys.modules.get("IPython")
    return None if shell is None else shell.get_ipython()


def _show_in_shell(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    traceback: TracebackType | None,
    tb_offset: int | None = None,
) -> list[str]:
    """Show *error* in a cell: IPython calls it with these arguments."""
    lines = format_error(error).splitlines()
    shell._showtraceback(kind, error, lines)
    return lines


# -- folding ---------------------------------------------------------------------------------------
def _folded(shown: TracebackException) -> TracebackException:
    """Fold the frames of *shown* and of the exceptions that it shows with it."""
    waiting, seen = [shown], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if each.stack:  # None for a group's missing traceback
            each.stack = _FoldedStack(_fold(each.stack))
        related = (each.__cause__, each.__context__, *(each.exceptions or ()))
        waiting += [other for other in related if other is not None]
    return shown


class _Fold(FrameSummary):
    """Takes the place of some frames of libraries."""

    __slots__ = ("text",)

    def __init__(self, count: int, libraries: list[str]) -> None:
        super().__init__(libraries[0], count, "", lookup_line=False, line="")
        frames = "frame" if count == 1 else "frames"
        self.text = f"  … {count} {frames} of {', '.join(dict.fromkeys(libraries))}\n"


class _FoldedStack(StackSummary):
    """Formats folds as their text."""

    def format_frame_summary(self, frame_summary: FrameSummary, **options: Any) -> str:
        if isinstance(frame_summary, _Fold):
            return frame_summary.text
        return super().format_frame_summary(frame_summary, **options)


def _fold(stack: StackSummary) -> Iterator[FrameSummary]:
    libraries: list[str] = []
    for frame in stack[:-1]:
        library = _library(frame.filename)
        if library is not None:
            libraries.append(library)
            continue
        if libraries:
            yield _Fold(len(libraries), libraries)
            libraries = []
        yield frame
    if libraries:
        yield _Fold(len(libraries), libraries)
    yield stack[-1]


def _library(file: str) -> str | None:
    """The library whose frames are folded that *file* belongs to."""
    for beginning, library in _FOLDED:
        if file.startswith(beginning):
            return library
    return next((name for place, name in _INSTALLED.items() if place in file), None)
