"""Which lines are relevant: a thread that arrives before any other line changes nothing there.

A thread that arrives before an irrelevant line might as well arrive before the next one. A line is
relevant if it mentions a name that the thread's code mentions too, or if it accesses a container,
whose elements may have other names there.
"""

import dis
from collections.abc import Iterable
from types import CodeType
from typing import Final

from .script import Place

__all__ = ("RelevantLines",)

# These read, change or iterate over a container without naming it.
_ANY_NAME: Final = ("BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR", "BINARY_SLICE",
                    "STORE_SLICE", "CONTAINS_OP", "FOR_ITER", "BINARY_OP", "LOAD_DEREF",
                    "STORE_DEREF")  # fmt: skip


class RelevantLines:
    """The lines that may share state with the code that the threads have run."""

    def __init__(self) -> None:
        self._thread_names: set[str] = set()
        self._thread_code: set[CodeType] = set()
        self._names: dict[CodeType, dict[int, set[str] | None]] = {}

    def add_thread_code(self, code: Iterable[CodeType]) -> None:
        for each in code:
            if each not in self._thread_code:
                self._thread_code.add(each)
                self._thread_names |= {*each.co_names, *each.co_freevars, *each.co_cellvars}

    def includes(self, place: Place | None) -> bool:
        """Whether it makes a difference to arrive before *place*; None is between two steps."""
        if place is None:
            return True
        code, line = place
        names = self._names.get(code)
        if names is None:
            names = self._names[code] = _names_by_line(code)
        mentioned = names.get(line, None)
        return mentioned is None or not mentioned.isdisjoint(self._thread_names)


def _names_by_line(code: CodeType) -> dict[int, set[str] | None]:
    """The names that each line mentions; None for a line that may access any object."""
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
        if instruction.opname in _ANY_NAME:
            names[line] = None
        elif mentioned is not None and isinstance(instruction.argval, str):
            mentioned.add(instruction.argval)
    return names
