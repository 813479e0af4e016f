"""What the test modules of operators, sources, sinks and processors register for the laws.

A module registers in dictionaries; a key is the name of an operator, source, sink or processor, or
``"name: variant"``:

* ``OF_LENGTH``: ``make(n)`` returns a new publisher of exactly n elements;
* ``FAILING``: ``make()`` returns one that fails with an exception, at once or after some elements;
* ``INFINITE``: ``make()`` returns one that never ends;
* ``CLOSING``: ``make(n, closed)`` returns one that calls *closed* when it has ended;
* ``UNORDERED``, a set of keys: the order of the elements varies;
* ``BY_THREADS``, a set of keys: threads emit, so that turns of the loop prove nothing;
* ``IN_REAL_TIME``, a set of keys: a program or another machine takes part, for which a virtual
  clock would not wait;
* ``IDENTITIES``, of operators: ``apply(flow)`` returns a flow of the same elements;
* ``NO_IDENTITY``, of operators: why there is no such form;
* ``SINKS``, of sinks: ``consume(flow)`` returns an awaitable.

The makers under one key make one `Case`.

At its end a module has what `publishing.reference` shows of its operators, sources or sinks:
``NEEDS``, by theme the plain needs and the names that meet each of them, and an example of each
name, the body of ``async def example_NAME()``.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import reactive_aio
from reactive_aio import Flow
from reactive_aio.tck import Candidate

__all__ = (
    "PUBLIC",
    "Case",
    "Identities",
    "Needs",
    "Sinks",
    "cases",
    "identities",
    "names",
    "needs",
    "no_identity",
    "sinks",
)

PUBLIC: Final = frozenset({*reactive_aio.__all__, "range", "zip"})
"""The names of the package, with those that ``import *`` leaves out: they would hide builtins."""


Identities = Mapping[str, Callable[[Flow[Any]], Flow[Any]]]
Needs = Mapping[str, Mapping[str, str]]
Sinks = Mapping[str, Callable[[Flow[Any]], Awaitable[Any]]]

FOLDERS: Final = ("operators", "sources", "processors")
MAKERS: Final = {
    "OF_LENGTH": "publisher",
    "FAILING": "failing_publisher",
    "INFINITE": "infinite_publisher",
    "CLOSING": "closing_publisher",
}
THREAD_TIME: Final = 0.02
"""Seconds in which a running thread emits all its signals."""
_TESTS: Final = Path(__file__).parent


class Case(NamedTuple):
    """A publisher to which the laws are applied."""

    folder: str
    module: str
    key: str
    candidate: Candidate
    in_real_time: bool

    @property
    def name(self) -> str:
        """The name of the operator, source or processor."""
        return self.key.partition(":")[0].strip()

    def __str__(self) -> str:
        return f"{self.module}-{self.key}"


@cache
def cases() -> tuple[Case, ...]:
    """Every case, in the order of the files."""
    return tuple(
        Case(
            folder,
            name,
            key,
            _candidate(module, f"{name}-{key}", key),
            key in getattr(module, "IN_REAL_TIME", ()),
        )
        for folder in FOLDERS
        for name, module in _modules(folder)
        for key in dict.fromkeys(key for makers in MAKERS for key in getattr(module, makers, ()))
    )


def identities(besides: Iterable[str] = ()) -> dict[str, Callable[[Flow[Any]], Flow[Any]]]:
    """Every operator, *besides* those that have a key there, in a form that passes its elements on.

    In that form it is judged like a processor, between a foreign publisher and a foreign
    subscriber.
    """
    known = names(besides)
    found: Identities = _merged("operators", "IDENTITIES")
    return {key: form for key, form in found.items() if names([key]).isdisjoint(known)}


def no_identity() -> dict[str, str]:
    """The operators without such a form, and why."""
    return _merged("operators", "NO_IDENTITY")


def sinks() -> dict[str, Callable[[Flow[Any]], Awaitable[Any]]]:
    """Every sink, over any publisher; it is judged as a subscriber."""
    return _merged("sinks", "SINKS")


def needs() -> list[tuple[str, Needs]]:
    """Each module, and by theme the needs that its operators, sources or sinks meet."""
    return [
        (name, getattr(module, "NEEDS", {}))
        for folder in ("sources", "operators", "sinks")
        for name, module in _modules(folder)
    ]


def names(keys: Any) -> set[str]:
    """The names in *keys*, without variants."""
    return {key.partition(":")[0].strip() for key in keys}


def _modules(folder: str) -> Iterator[tuple[str, ModuleType]]:
    """The test modules of *folder*, imported as pytest does."""
    for path in sorted((_TESTS / folder).glob("test_*.py")):
        yield path.stem.removeprefix("test_"), import_module(f"tests.{folder}.{path.stem}")


def _merged(folder: str, attribute: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _, module in _modules(folder):
        found |= getattr(module, attribute, {})
    return found


def _candidate(module: ModuleType, name: str, key: str) -> Candidate:
    makers: dict[str, Any] = {
        part: getattr(module, attribute)[key]
        for attribute, part in MAKERS.items()
        if key in getattr(module, attribute, {})
    }
    return Candidate(
        name=name,
        ordered=key not in getattr(module, "UNORDERED", ()),
        quiet_period=THREAD_TIME if key in getattr(module, "BY_THREADS", ()) else 0.0,
        **makers,
    )
