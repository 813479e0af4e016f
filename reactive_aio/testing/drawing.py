"""Drawing: a journal as a marble diagram, with a lane for the demand above one for the signals.

::

    demand   >---2-----1---x
    signals    >---a-b---c---d-|
                             ^-- 1.8: an element came after cancel()

Every entry has its own column, in the order of time; a longer pause is written out (``~0.5s~``). A
lane begins with its first entry and ends with its last legal one: an entry beyond the end of a line
came too late.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from reprlib import Repr
from typing import Final
from unicodedata import east_asian_width

from .journal import LONGEST, UNBOUNDED, Entry, Journal, Kind
from .safe_repr import safe_repr

NAMES: Final = ("demand   ", "signals  ")
_MARGIN: Final = len(NAMES[0])
_AROUND: Final = 12
"""Columns that are kept at both ends of a long journal, and on each side of an offence."""
_FEW: Final = 6
"""Fewer columns than this are not left out."""
_WIDEST: Final = 16
_NOTES: Final = 20
_SMALL: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_UP: Final = frozenset({Kind.SUBSCRIBE, Kind.REQUEST, Kind.CANCEL})
_LABELS: Final = {Kind.SUBSCRIBE: ">", Kind.ON_SUBSCRIBE: ">", Kind.CANCEL: "x",
                  Kind.ON_COMPLETE: "|", Kind.ON_ERROR: "#"}  # fmt: skip
_LEGEND: Final = {
    ">": "subscribed",
    "a number": "requested",
    "∞": "unbounded demand",
    "x": "cancelled",
}

_short, _long = Repr(), Repr()
_short.maxother = _short.maxstring = _WIDEST
_long.maxother = _long.maxstring = 200


@dataclass(frozen=True)
class _Column:
    """The text of both lanes at one moment, and the fill after it."""

    up: str
    down: str
    gaps: tuple[str, ...]
    marks: list[str] = field(default_factory=list[str])
    """The offences of its entry."""

    @property
    def width(self) -> int:
        return max(_cells(self.up), _cells(self.down))


class _LaneState:
    """The state of both lanes: a lane is a line from its first to its last entry, else blank."""

    def __init__(self) -> None:
        self._fills = [" ", " "]
        self._finished: set[int] = set()
        self.notes: list[str] = []

    def column(self, entry: Entry) -> _Column:
        if entry.kind is Kind.NOTE:
            self.notes.append(str(entry.value))
            return self.both("", str(len(self.notes)).translate(_SMALL))
        lane = 0 if entry.kind in _UP else 1
        text = _label(entry)
        column = self.both("", text) if lane else self.both(text, "")
        if entry.kind in (Kind.CANCEL, Kind.ON_COMPLETE, Kind.ON_ERROR):
            self._finished.add(lane)
        self._fills[lane] = " " if lane in self._finished else "-"
        return replace(column, gaps=tuple(self._fills))

    def both(self, up: str, down: str) -> _Column:
        """A column with its blanks filled."""
        width = max(_cells(up), _cells(down))
        padded = [
            text + fill * (width - _cells(text))
            for text, fill in zip((up, down), self._fills, strict=True)
        ]
        return _Column(padded[0], padded[1], tuple(self._fills))

    def pause(self, seconds: float) -> _Column:
        """A pause, in the lanes that are lines."""
        text = f"~{_duration(seconds)}~"
        is_line = [fill == "-" for fill in self._fills]
        up = text if is_line[0] or not is_line[1] else ""
        return self.both(up, text if is_line[1] else "")


def draw(journal: Journal, *, width: int = 100, pause: float = 0.05) -> str:
    """Draw *journal*, in lines of at most *width* characters.

    A pause of *pause* seconds or more between two entries is written out. The middle of a long
    journal is left out, except near an offence.
    """
    lanes = _LaneState()
    columns = _shortened(_columns(journal, lanes, pause))
    lines = [journal.name] if journal.name else []
    for number, row in enumerate(_rows(columns, max(width - _MARGIN, 20))):
        if number:
            lines.append("")
        lines += _drawn(row, width)
    return "\n".join([*lines, *_footer(journal, lanes.notes, width)])


def _label(entry: Entry) -> str:
    """The text of *entry* in its lane."""
    if entry.kind is Kind.REQUEST and isinstance(entry.value, int) and entry.value >= UNBOUNDED:
        return "∞"
    return _LABELS.get(entry.kind) or _word(entry.value)


def _word(element: object) -> str:
    """An unambiguous word: only an identifier is unquoted."""
    text = _brief(_short, element).replace(", ", ",").replace("\n", " ")
    if type(element) is str and re.fullmatch(r"[^\W\d]\w*", element):
        text = element
    return text if _cells(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _brief(by: Repr, value: object) -> str:
    try:
        return by.repr(value)
    except Exception:  # a false __class__, or an int of too many digits
        return safe_repr(value)


def _duration(seconds: float) -> str:
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g}ms" if seconds < 0.1 else f"{seconds:.2g}s"
    return f"{round(seconds, 2):g}s" if seconds < 1000 else f"{seconds:.0f}s"


def _cells(text: str) -> int:
    """The width of *text* on a screen: some characters take two columns."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


# -- columns ---------------------------------------------------------------------------------------
def _columns(journal: Journal, lanes: _LaneState, pause: float) -> list[_Column]:
    """One for each entry, with the offences that follow it, and one for each pause before it."""
    columns: list[_Column] = []
    last: float | None = None
    for number, entry in enumerate(journal.entries):
        if number == LONGEST and journal.left_out:
            columns.append(lanes.both("…", "…"))
        if entry.kind is Kind.OFFENCE:
            if not columns:  # the offence is that no entry came
                columns.append(lanes.both(" ", " "))
            columns[-1].marks.append(str(entry.value))
            continue
        if last is not None and entry.at - last >= pause:
            columns.append(lanes.pause(entry.at - last))
        last = entry.at
        columns.append(lanes.column(entry))
    if journal.left_out and len(journal.entries) <= LONGEST:
        columns.append(lanes.both("…", "…"))
    return columns


def _shortened(columns: list[_Column]) -> list[_Column]:
    """Without the middle, except near an offence."""
    kept = {*range(_AROUND), *range(len(columns) - _AROUND, len(columns))}
    for at, column in enumerate(columns):
        if column.marks:
            kept.update(range(at - _AROUND, at + _AROUND + 1))
    shortened: list[_Column] = []
    for keep, group in groupby(enumerate(columns), key=lambda each: each[0] in kept):
        members = [column for _, column in group]
        if keep or len(members) < _FEW:
            shortened += members
        else:
            text = f"…{len(members)} more…"
            shortened.append(_Column(text, text, members[-1].gaps))
    return shortened


def _rows(columns: Iterable[_Column], width: int) -> Iterator[list[_Column]]:
    row: list[_Column] = []
    room = width
    for column in columns:
        if row and column.width + 1 > room:
            yield row
            row, room = [], width
        row.append(column)
        room -= column.width + 1
    if row:
        yield row


# -- lines -----------------------------------------------------------------------------------------
def _drawn(row: list[_Column], width: int) -> Iterator[str]:
    """Both lanes of a row, and the offences below them."""
    yield (NAMES[0] + "".join(column.up + column.gaps[0] for column in row)).rstrip()
    yield (NAMES[1] + "".join(column.down + column.gaps[1] for column in row)).rstrip()
    at = _MARGIN
    for column in row:
        for words in column.marks:
            yield from _mark(at, words, width)
        at += column.width + 1


def _mark(at: int, words: str, width: int) -> Iterator[str]:
    """A caret at column *at*, with *words* to its right, to its left, or below it."""
    lines = words.splitlines() or [""]
    right, left = f"{' ' * at}^-- {words}", f"{words} --^"
    if len(lines) == 1 and len(right) <= width:
        yield right
    elif len(lines) == 1 and len(left) + _MARGIN <= at + 1:
        yield left.rjust(at + 1)
    else:
        yield f"{' ' * at}^"
        for line in lines:
            yield from textwrap.wrap(
                line, width, initial_indent=" " * _MARGIN, subsequent_indent=" " * _MARGIN
            )


def _footer(journal: Journal, notes: list[str], width: int) -> Iterator[str]:
    """The errors, the notes, and a legend of the less common signs."""
    for entry in journal.entries:
        if entry.kind is Kind.ON_ERROR:
            yield f"{'#':>{_MARGIN - 2}}  {_brief(_long, entry.value)}"
    for number, note in enumerate(notes, 1):
        if number > _NOTES:
            yield f"{'…':>{_MARGIN - 2}}  {len(notes) - _NOTES} more notes"
            break
        sign = str(number).translate(_SMALL)
        yield from textwrap.wrap(
            note, width, initial_indent=f"{sign:>{_MARGIN - 2}}  ", subsequent_indent=" " * _MARGIN
        )
    if journal.left_out:
        yield f"{'…':>{_MARGIN - 2}}  {journal.left_out} more were not recorded"
    used = {_sign(entry) for entry in journal.entries}
    signs = [f"{sign}: {meaning}" for sign, meaning in _LEGEND.items() if sign in used]
    if signs:
        yield f"{' ' * _MARGIN}({'; '.join(signs)})"


def _sign(entry: Entry) -> str | None:
    """What the legend explains of *entry*."""
    if entry.kind is Kind.REQUEST:
        label = _label(entry)
        return label if label in _LEGEND else "a number"
    return _LABELS.get(entry.kind)
