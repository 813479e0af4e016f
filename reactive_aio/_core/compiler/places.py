"""Where the user has written an operator, for the note of an error.

A flow notes the place of each of its operators as it is made: the code that runs and the
instruction in it. File, line and text are looked up when an error is described.
"""

import ast
import linecache
import typing
from functools import lru_cache
from itertools import islice
from pathlib import Path
from sys import _getframe  # pyright: ignore[reportPrivateUsage]  # as `logging` finds its caller
from sysconfig import get_path
from types import CodeType, FrameType
from typing import Final, NamedTuple, cast

from ..foreign_text import without_secrets

__all__ = ("Place", "call_place", "describe_place")

Place = tuple[CodeType, int]
"""A code object, and the offset of the instruction that called. (A plain tuple is made faster.)"""

_PACKAGE: Final = str(Path(__file__).parents[2])
_NOT_OF_USER: Final = ("<reactive_aio ", "<frozen ", _PACKAGE)
_PASSED: Final = (_PACKAGE, typing.__file__)  # `UnicastProcessor[int]()` is a call of typing's
_STANDARD: Final = get_path("stdlib")
_MOST_FILES: Final = 4096  # a notebook has one for each cell
_LONGEST_LINE: Final = 120
_BEFORE_MARK: Final = 40
"""Characters that are kept before the marked part of a long line."""


class _PassedFiles(dict[str, bool]):
    """Whether calls in a file are passed over. (A lookup takes a third of a comparison.)"""

    def __missing__(self, file: str) -> bool:
        if len(self) >= _MOST_FILES:
            self.clear()
        self[file] = found = file.startswith(_PASSED)
        return found


_is_passed: Final = _PassedFiles()


def call_place(depth: int) -> Place | None:
    """Where the user calls an operator: the first line outside of the package, at least *depth*
    calls above this one.

    The first *depth* calls are not looked at: a function that attaches a stage is an operator, by
    the user or not, and what counts is where that is called.
    """
    try:
        frame: FrameType | None = _getframe(depth)
    except ValueError:  # called at the top level of a program
        return None
    while frame is not None:
        code = frame.f_code
        if not _is_passed[code.co_filename]:
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def describe_place(place: Place) -> str:
    """The file, the line, and the call marked in it, as in a traceback; "" if not by the user."""
    code, instruction = place
    return _described(code.co_filename, code, instruction)


# Code objects of two files are equal if both say the same, as the cells of two notebooks may.
@lru_cache(maxsize=256)
def _described(file: str, code: CodeType, instruction: int) -> str:
    if file.startswith(_NOT_OF_USER) or (
        file.startswith(_STANDARD) and "site-packages" not in file
    ):
        return ""
    span = _span(code, instruction)
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    call = _called(lines, span)
    shown = f'File "{file}", line {call.line if call else span.line}, in {code.co_qualname}'
    if call is not None:
        text, start, length = _shortened(lines[call.line - 1], call)
        shown += f"\n    {text}\n    {' ' * start}{'^' * length}"
    elif 0 < span.line <= len(lines):
        shown += f"\n    {without_secrets(lines[span.line - 1].strip())}"
    return shown


class _Span(NamedTuple):
    """A part of a source file; columns count bytes from 0."""

    line: int
    end_line: int
    column: int
    end_column: int


def _span(code: CodeType, instruction: int) -> _Span:
    """The text that *instruction* was compiled from; its line alone with ``-X no_debug_ranges``."""
    found = next(islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    line, end_line, column, end_column = found
    line = line or code.co_firstlineno
    return _Span(line, end_line or line, column or 0, end_column or 0)


def _called(lines: list[str], span: _Span) -> _Span | None:
    """The last call of a chain of calls, from its name to the end of that line."""
    rows = [line.encode() for line in lines[span.line - 1 : span.end_line]]
    if len(rows) != span.end_line - span.line + 1:
        return None  # the file has changed, or cannot be read
    rows[-1] = rows[-1][: span.end_column]
    rows[0] = rows[0][span.column :]
    start, row = _name_of_call(b"".join(rows)) or (0, 0)
    text = rows[row].rstrip()
    column = start + (0 if row else span.column)
    end = len(text) + (0 if row else span.column)
    if column >= end:
        return None
    return _Span(span.line + row, span.line + row, column, end)


def _name_of_call(text: bytes) -> tuple[int, int] | None:
    """Column and row of the name of the method in ``value.name(…)``; None for other calls."""
    try:
        node = ast.parse(b"(\n" + text + b"\n)", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    function = node.func
    end_line, end_column = cast("int", function.end_lineno), cast("int", function.end_col_offset)
    return end_column - len(function.attr.encode()), end_line - 2


def _shortened(line: str, call: _Span) -> tuple[str, int, int]:
    """The line without its indentation, and where in it the call begins, and its length."""
    row = line.encode()
    parts = row[: call.column], row[call.column : call.end_column], row[call.end_column :]
    before, marked, after = (without_secrets(part.decode()) for part in parts)
    before = before.lstrip()
    text = before + marked + after.rstrip()
    if len(text) > _LONGEST_LINE:
        cut = max(0, len(before) - _BEFORE_MARK)
        text, before = ("…" if cut else "") + text[cut:], "…" * bool(cut) + before[cut:]
        text = text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 1] + "…"
    return text, len(before), max(1, min(len(marked), len(text) - len(before)))
