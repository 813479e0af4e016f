"""The candidates that the test modules of operators, sources and processors declare for the laws.

A module declares dictionaries; a key is an operator's or source's name, or ``"name: variant"``:

* ``OF_LENGTH``: ``make(n)`` returns a new publisher of exactly n elements;
* ``FAILING``: ``make()`` returns one that fails with an exception, at once or after some elements;
* ``INFINITE``: ``make()`` returns one that never ends;
* ``CLOSING``: ``make(n, closed)`` returns one that calls *closed* when it ends;
* ``UNORDERED``, a set of keys: the order of their elements may differ each time;
* ``BY_THREADS``, a set of keys: they use threads, so turns of the loop prove nothing.

The same key in several of them is one candidate.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from reactive_aio.tck import Candidate

__all__ = ("PARTS", "ROOMS", "Case", "covered", "offered")

ROOMS: Final = ("operators", "sources", "processors")
PARTS: Final = {
    "OF_LENGTH": "publisher",
    "FAILING": "failing_publisher",
    "INFINITE": "infinite_publisher",
    "CLOSING": "closing_publisher",
}
THREAD_QUIET_PERIOD: Final = 0.02
"""Seconds in which a running thread would send a signal."""
_HERE: Final = Path(__file__).parent


class Case(NamedTuple):
    """One candidate, and where it is declared."""

    room: str
    module: str
    key: str
    candidate: Candidate

    @property
    def name(self) -> str:
        """The operator, source or processor."""
        return self.key.partition(":")[0].strip()

    def __str__(self) -> str:
        return f"{self.module}-{self.key}"


@cache
def offered() -> tuple[Case, ...]:
    """Every case, in the order of the files."""
    return tuple(_collect())


def covered(room: str) -> set[str]:
    """The names that have a case in *room*."""
    return {case.name for case in offered() if case.room == room}


def _collect() -> Iterator[Case]:
    for room in ROOMS:
        for path in sorted((_HERE / room).glob("test_*.py")):
            module = _load(path)
            name = path.stem.removeprefix("test_")
            for key in _keys(module):
                yield Case(room, name, key, _candidate(module, f"{name}-{key}", key))


def _keys(module: ModuleType) -> dict[str, None]:
    return {key: None for kind in PARTS for key in getattr(module, kind, ())}


def _candidate(module: ModuleType, name: str, key: str) -> Candidate:
    parts: dict[str, Any] = {}
    for kind, part in PARTS.items():
        makers: Mapping[str, Callable[..., Any]] = getattr(module, kind, {})
        if key in makers:
            parts[part] = makers[key]
    return Candidate(
        name=name,
        ordered=key not in getattr(module, "UNORDERED", ()),
        quiet_period=THREAD_QUIET_PERIOD if key in getattr(module, "BY_THREADS", ()) else 0.0,
        **parts,
    )


def _load(path: Path) -> ModuleType:
    """Import a test module as pytest does."""
    return import_module(f"tests.{path.parent.name}.{path.stem}")
