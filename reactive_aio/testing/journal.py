"""Journal: what went up and down between a publisher and a subscriber, in order, with times.

Both directions are kept in one list, because the order between them is what most rules are about:
an element is wrong or right by what had been requested before it. Whoever finds an offence marks
it, so that a drawing can point at it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from .safe_repr import safe_repr

__all__ = ("Entry", "Journal", "Kind")

LONGEST: Final = 2_000
"""Entries that are kept."""
NEAR: Final = 10
"""Entries that are shown before an offence, at the beginning, and at the end."""


class Kind(Enum):
    """What an entry is about; ``is_signal`` tells the way down from the way up."""

    SUBSCRIBE = "subscribe"
    ON_SUBSCRIBE = "on_subscribe"
    ON_NEXT = "on_next"
    ON_ERROR = "on_error"
    ON_COMPLETE = "on_complete"
    REQUEST = "request"
    CANCEL = "cancel"
    NOTE = "note"
    """Something else that is worth reading: what a law did, or waited for."""
    OFFENCE = "offence"
    """What was wrong with the entry before."""

    @property
    def is_signal(self) -> bool:
        """Whether it goes down, from the publisher to the subscriber."""
        return self.value.startswith("on_")


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened."""

    at: float
    """Seconds since the journal began."""
    kind: Kind
    value: Any = None
    """The element, the error, the number requested, or words."""

    def __str__(self) -> str:
        match self.kind:
            case Kind.NOTE:
                return str(self.value)
            case Kind.OFFENCE:
                return f"<-- {self.value}"
            case Kind.ON_NEXT | Kind.ON_ERROR | Kind.REQUEST:
                return f"{self.kind.value}({safe_repr(self.value, 80)})"
            case _:
                return f"{self.kind.value}()"


@dataclass
class Journal:
    """What happened between one publisher and one subscriber."""

    name: str = ""
    clock: Callable[[], float] = time.monotonic
    entries: list[Entry] = field(default_factory=list[Entry])
    left_out: int = 0
    """Entries beyond the longest journal: counted, not kept."""

    def __post_init__(self) -> None:
        self._began = self.clock()

    def note(self, kind: Kind, value: Any = None) -> Entry:
        """Write down what happens now."""
        entry = Entry(self.clock() - self._began, kind, value)
        if len(self.entries) >= LONGEST and kind is not Kind.OFFENCE:
            self.left_out += 1
        else:
            self.entries.append(entry)
        return entry

    def blame(self, entry: Entry, words: str) -> None:
        """Write down what is wrong with *entry*, which need not be the last one."""
        places = [at for at, each in enumerate(self.entries) if each is entry]
        offence = Entry(self.clock() - self._began, Kind.OFFENCE, words)
        self.entries.insert(places[0] + 1 if places else len(self.entries), offence)

    @property
    def offended(self) -> bool:
        """Whether an offence is marked in it."""
        return any(entry.kind is Kind.OFFENCE for entry in self.entries)

    def __str__(self) -> str:
        """One line for each entry, with its time in seconds."""
        lines = [f"{entry.at:9.3f}  {entry}" for entry in self.entries]
        if self.left_out:
            lines.append(f"{'…':>9}  {self.left_out} more")
        told = [at for at, entry in enumerate(self.entries) if entry.kind is Kind.OFFENCE]
        return "\n".join(_readable(lines, told))


def _readable(lines: list[str], told: list[int]) -> list[str]:
    """The beginning, the end, and what is around the first offences."""
    wanted = {*range(NEAR), *range(len(lines) - NEAR, len(lines))}
    for at in told[:3]:
        wanted.update(range(at - NEAR, at + 3))
    shown: list[str] = []
    last = -1
    for at in sorted(wanted & set(range(len(lines)))):
        if at - last > 1:
            shown.append(f"{'…':>9}  {at - last - 1} more")
        shown.append(lines[at])
        last = at
    return shown
