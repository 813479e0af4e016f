"""The names that the reference explains: methods of `Flow`, and functions of the package."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import reactive_aio
from reactive_aio import Flow
from tests.cases import PUBLIC

__all__ = ("ENTRIES", "Entry")

SOURCES: Final = "Sources"
OPERATORS: Final = "Operators"
SINKS: Final = "Sinks and reports"
PARTS: Final = (SOURCES, OPERATORS, SINKS)
_PART_OF: Final = {"_sources": SOURCES, "_operators": OPERATORS, "_sinks": SINKS}
_REPORTS: Final = "introspection"


@dataclass(frozen=True)
class Entry:
    """A function of the vocabulary."""

    name: str
    function: Callable[..., Any]

    @property
    def module(self) -> str:
        """The module that defines it, without the package: ``select``."""
        return self.function.__module__.rpartition(".")[2]

    @property
    def test_file(self) -> str:
        """The path of its tests, its example and its needs."""
        return f"tests/{_room(self.function).removeprefix('_')}/test_{self.module}.py"

    @property
    def part(self) -> str:
        """The part of the page that explains it."""
        return SINKS if self.module == _REPORTS else _PART_OF[_room(self.function)]

    @property
    def is_method(self) -> bool:
        return self.name in vars(Flow)


def _room(function: Callable[..., Any]) -> str:
    return function.__module__.split(".")[1]


def _entries() -> dict[str, Entry]:
    given = {name: getattr(reactive_aio, name) for name in PUBLIC} | dict(vars(Flow))
    functions = {
        name: value
        for name, value in given.items()
        if inspect.isfunction(value) and not name.startswith("_") and _room(value) in _PART_OF
    }
    return {name: Entry(name, functions[name]) for name in sorted(functions)}


ENTRIES: Final = _entries()
"""All of them by name, sorted. A method and a function never have the same name."""
