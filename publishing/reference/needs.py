"""Which operator do I need? Plain needs by theme, each with the operators that meet it.

`NEEDS` in the test file of a module states the needs that its operators meet; it may also name
operators of other modules. Here they are merged: the modules of sources first, then the others in
the order of flow.py.
"""

from collections.abc import Iterable
from typing import Final

from publishing.reference.vocabulary import ENTRIES
from reactive_aio import Flow
from tests.cases import Needs, needs

__all__ = ("NEEDS", "THEMES", "merged")

THEMES: Final = (
    "Make a flow",
    "Change each element",
    "Keep some elements",
    "Combine flows",
    "Make a flow of each element",
    "Wait, or work concurrently",
    "Work by time",
    "Batches and windows",
    "Groups",
    "Errors",
    "Backpressure",
    "Share one subscription",
    "Side effects",
    "Repeat",
    "End a flow, get a result",
    "Run a service",
)
"""The themes, in the order of the page."""
_SOURCES: Final = (
    "values",
    "thread",
    "files",
    "process",
    "asynchronous",
    "push",
    "timers",
    "resource",
)
"""The modules of sources, the simplest first; one that is not listed comes last."""
_MODULES: Final = (
    *_SOURCES,
    *dict.fromkeys(ENTRIES[name].module for name in vars(Flow) if name in ENTRIES),
)


def merged(given: Iterable[Needs]) -> dict[str, dict[str, str]]:
    """The operators for each need, by theme; a need that occurs several times is one."""
    found: dict[str, dict[str, str]] = {theme: {} for theme in THEMES}
    for themes in given:
        for theme, stated in themes.items():
            here = found.setdefault(theme, {})
            for need, names in stated.items():
                here[need] = f"{here[need]} {names}" if need in here else names
    return found


def _position(module: str) -> int:
    return _MODULES.index(module) if module in _MODULES else len(_MODULES)


NEEDS: Final = merged(each for _, each in sorted(needs(), key=lambda pair: _position(pair[0])))
"""By theme, the operators for each need; every operator is there at least once."""
