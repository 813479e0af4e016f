"""Journal: the signals and calls between a publisher and a subscriber, in order, with times.

Both directions are in one list, because most rules are about the order between them: whether an
element is legal depends on the requests before it. A check marks the entry that breaks a rule, and
a drawing points at it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from typing import Any, Final

from .safe_repr import safe_repr

UNBOUNDED: Final = 2**63 - 1
"""A request without a bound."""
LONGEST: Final = 2_000
"""Entries that are kept."""
NEAR: Final = 10
"""Entries that are printed before an offence, at the beginning, and at the end."""


class Kind(Enum):
    """The kind of an entry; a signal goes downstream, a request or a cancellation upstream."""

    SUBSCRIBE = "subscribe"
    ON_SUBSCRIBE = "on_subscribe"
    ON_NEXT = "on_next"
    ON_ERROR = "on_error"
    ON_COMPLETE = "on_complete"
    REQUEST = "request"
    CANCEL = "cancel"
    NOTE = "note"
    """A text, such as what a law did or waited for."""
    OFFENCE = "offence"
    """What is wrong with the entry before."""

    @property
    def is_signal(self) -> bool:
        """Whether it goes from the publisher to the subscriber."""
        return self.value.startswith("on_")


@dataclass(frozen=True, slots=True)
class Entry:
    """One signal, call, note or offence."""

    at: float
    """Seconds since the journal began."""
    kind: Kind
    value: Any = None
    """The element, the error, the number requested, or a text."""

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
    """The entries between one publisher and one subscriber."""

    name: str = ""
    clock: Callable[[], float] = time.monotonic
    entries: list[Entry] = field(default_factory=list[Entry])
    left_out: int = 0
    """Entries beyond the longest journal: counted, not kept."""

    def __post_init__(self) -> None:
        self._began = self.clock()

    def note(self, kind: Kind, value: Any = None) -> Entry:
        """Append an entry."""
        entry = Entry(self.clock() - self._began, kind, value)
        if len(self.entries) >= LONGEST and kind is not Kind.OFFENCE:
            self.left_out += 1
        else:
            self.entries.append(entry)
        return entry

    def mark(self, entry: Entry, words: str) -> None:
        """Insert an offence after *entry*, which need not be the last one."""
        places = [at for at, each in enumerate(self.entries) if each is entry]
        offence = Entry(self.clock() - self._began, Kind.OFFENCE, words)
        self.entries.insert(places[0] + 1 if places else len(self.entries), offence)

    @property
    def has_offence(self) -> bool:
        return any(entry.kind is Kind.OFFENCE for entry in self.entries)

    def __str__(self) -> str:
        """One line for each entry, with its time in seconds; the middle of a long one left out."""
        lines = [f"{entry.at:9.3f}  {entry}" for entry in self.entries]
        if self.left_out:
            lines.append(f"{'…':>9}  {self.left_out} more")
        offences = [at for at, entry in enumerate(self.entries) if entry.kind is Kind.OFFENCE]
        kept = {*range(NEAR), *range(len(lines) - NEAR, len(lines))}
        for at in offences[:3]:
            kept.update(range(at - NEAR, at + 3))
        shortened: list[str] = []
        for is_kept, group in groupby(range(len(lines)), kept.__contains__):
            places = list(group)
            left_out = f"{'…':>9}  {len(places)} more"
            shortened += [lines[at] for at in places] if is_kept else [left_out]
        return "\n".join(shortened)
