"""Which lines matter: an arrival before a line that shares nothing with the thread changes nothing.

A thread that arrives before such a line might as well arrive before the next. A line may share
something with a thread if it mentions a name that the thread's code mentions too, or if it looks
into a container, whose name may be another one there.
"""

import dis
from collections.abc import Iterable
from types import CodeType
from typing import Final

from ._schedules_script import Place

__all__ = ("Lines",)

# Looks into, changes or goes through a container without naming it.
_ANYTHING: Final = ("BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR", "BINARY_SLICE",
                    "STORE_SLICE", "CONTAINS_OP", "FOR_ITER", "BINARY_OP", "LOAD_DEREF",
                    "STORE_DEREF")  # fmt: skip


class Lines:
    """What the lines of some code share with the threads."""

    def __init__(self) -> None:
        self._touched: set[str] = set()
        self._visited: set[CodeType] = set()
        self._names: dict[CodeType, dict[int, set[str] | None]] = {}

    def touch(self, code: Iterable[CodeType]) -> None:
        """Threads have run *code*."""
        for each in code:
            if each not in self._visited:
                self._visited.add(each)
                self._touched |= {*each.co_names, *each.co_freevars, *each.co_cellvars}

    def matter(self, place: Place | None) -> bool:
        """Whether it makes a difference to arrive before *place*."""
        if place is None:
            return True
        code, line = place
        names = self._names.get(code)
        if names is None:
            names = self._names[code] = _names_by_line(code)
        mentioned = names.get(line, None)
        return mentioned is None or not mentioned.isdisjoint(self._touched)


def _names_by_line(code: CodeType) -> dict[int, set[str] | None]:
    """The names that each line mentions; None for one that may touch anything."""
    starts: dict[int, int] = {}
    for first, last, line in code.co_lines():
        if line is not None:
            starts.update((offset, line) for offset in range(first, last, 2))
    names: dict[int, set[str] | None] = {line: set() for line in starts.values()}
    for instruction in dis.get_instructions(code):
        line = starts.get(instruction.offset)
        if line is None:
            continue
        mentioned = names[line]
        if instruction.opname in _ANYTHING:
            names[line] = None
        elif mentioned is not None and isinstance(instruction.argval, str):
            mentioned.add(instruction.argval)
    return names
