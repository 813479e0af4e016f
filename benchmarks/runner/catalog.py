"""Finds the questions: every `Measurable` in a module of a family is one.

A family is a package beside this one; the first line of its docstring is its heading.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from .question import Measurable

CORE: Final = ("on_next", "async_for", "hot", "subscribing", "memory")
"""The families that need nothing but this package, and take minutes."""
MORE: Final = ("operators", "growth", "asgi", "rsocket", "services", "spark")
FAMILIES: Final = CORE + MORE

ROOT: Final = __name__.rsplit(".", 2)[0]


class NoSuchQuestion(Exception):
    """No family and no module has this name."""


@dataclass(frozen=True)
class Entry:
    """A question and its place."""

    family: str
    module: str
    name: str
    question: Measurable

    @property
    def key(self) -> str:
        """Its name among all questions, such as ``async_for/boundary.small``."""
        return f"{self.family}/{self.module}.{self.name}"


def heading(family: str) -> str:
    """Return the heading of a family."""
    text = import_module(f"{ROOT}.{family}").__doc__ or family
    return text.partition("\n")[0].rstrip(".")


def places() -> list[tuple[str, str]]:
    """Return the family and the name of every module; nothing is imported but the families."""
    return [
        (family, found.name)
        for family in FAMILIES
        for found in iter_modules(import_module(f"{ROOT}.{family}").__path__)
        if not found.ispkg
    ]


def select(names: list[str]) -> list[tuple[str, str]]:
    """Return the modules that *names* select: families, modules, or ``family/module``."""
    found = places()
    selected: dict[tuple[str, str], None] = {}
    for name in names:
        matching = [each for each in found if name == each[0]]
        matching = matching or [each for each in found if name in (each[1], "/".join(each))]
        if not matching:
            raise NoSuchQuestion(
                f"no question is named {name!r}; families: {', '.join(FAMILIES)}; questions: "
                + ", ".join("/".join(each) for each in found)
            )
        selected.update(dict.fromkeys(matching))
    return sorted(selected, key=found.index)


def entries(family: str, module: str) -> Iterator[Entry]:
    """Import a module, and yield its questions in their order."""
    for name, value in vars(import_module(f"{ROOT}.{family}.{module}")).items():
        if isinstance(value, Measurable):
            yield Entry(family, module, name, value)
