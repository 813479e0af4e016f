"""The cases that the test modules of operators, sources and processors offer to the laws.

A module offers dictionaries; a key is an operator's or source's name, or ``"name: variant"``:

* ``OF_LENGTH``: ``make(n)`` returns a new publisher of exactly n elements;
* ``FAILING``: ``make()`` returns one that fails with an exception, at once or after some elements;
* ``INFINITE``: ``make()`` returns one that never ends;
* ``UNORDERED``, a set of keys: their elements may come in another order each time.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from reactive_aio.spec import Publisher

__all__ = ("KINDS", "ROOMS", "Case", "cases", "covered")

ROOMS: Final = ("operators", "sources", "processors")
KINDS: Final = ("OF_LENGTH", "FAILING", "INFINITE")
_HERE: Final = Path(__file__).parent


class Case(NamedTuple):
    """One publisher to judge."""

    room: str
    module: str
    key: str
    make: Callable[..., Publisher[Any]]
    ordered: bool

    def __str__(self) -> str:
        return f"{self.module}-{self.key}"


@cache
def cases(kind: str) -> tuple[Case, ...]:
    """Every case of *kind*, in the order of the files."""
    return tuple(_collect(kind))


def covered(room: str) -> set[str]:
    """The names that have a case in *room*."""
    found = (case for kind in KINDS for case in cases(kind))
    return {case.key.partition(":")[0].strip() for case in found if case.room == room}


def _collect(kind: str) -> Iterator[Case]:
    for room in ROOMS:
        for path in sorted((_HERE / room).glob("test_*.py")):
            module = _load(path)
            offered: Mapping[str, Callable[..., Publisher[Any]]] = getattr(module, kind, {})
            unordered: set[str] = getattr(module, "UNORDERED", set())
            for key, make in offered.items():
                name = path.stem.removeprefix("test_")
                yield Case(room, name, key, make, key not in unordered)


def _load(path: Path) -> ModuleType:
    """Import a test module as pytest does."""
    return import_module(f"tests.{path.parent.name}.{path.stem}")
