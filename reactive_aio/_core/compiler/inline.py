"""Inline stages: the few lines that an operator contributes to its island's loop.

An `InlineStage` is text, not code to call: the compiler writes the lines of a chain into one
loop. The element is ``x``; ``$name`` is an argument or a local of this stage alone. Besides plain
Python, a line may be one of these directives:

``drop``            this element goes no further
``last``            the flow completes once this element (``x``) has been passed on
``done``            the flow completes now
``emit EXPR``       pass EXPR on
``emit each EXPR``  pass on every element of the iterable EXPR, as demand allows

Without an ``emit`` line, ``x`` as the lines leave it is passed on. ``before`` may emit what comes
before the first element from upstream, ``after`` what is left when those have ended; there ``x``
means nothing.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from reprlib import repr as short_repr
from textwrap import dedent
from typing import Any

__all__ = ("DIRECTIVES", "AppliedStage", "InlineStage", "describe")

DIRECTIVES = re.compile(r"^(?P<pad> *)(?P<word>drop|last|done|emit each|emit)\b ?(?P<rest>.*)$")
_NAME = re.compile(r"\$(\w+)")
_TEXTS = ("setup", "before", "each", "after", "demand", "on_end")


@dataclass(frozen=True, slots=True, eq=False)
class InlineStage:
    """One operator's lines. Make it once, at module level: loops are cached by its identity."""

    name: str
    each: str = ""
    params: tuple[str, ...] = ()
    setup: str = ""
    """Makes the stage's locals; it must not raise."""
    before: str = ""
    after: str = ""
    demand: str = ""
    """Turns ``need``, what is wanted of this stage, into what it wants of the stages before it.

    It runs only when elements have run out. Without it, what the stage drops is asked for again."""
    on_end: str = ""
    """Runs once when the flow has ended at this place: ``how`` is ``"completed"``, ``"failed"``
    (with ``error``) or ``"cancelled"``. It sees the parameters, not the stage's locals."""
    uses: tuple[Callable[..., Any], ...] = ()
    """Functions and classes that the lines call by their own names."""
    on_request: str = ""
    """The parameter that is called with each *n* requested of the island."""
    emits_many: bool = field(init=False)
    drops: bool = field(init=False)
    stops: bool = field(init=False)
    awaits: bool = field(init=False)

    def __post_init__(self) -> None:
        for part in _TEXTS:
            object.__setattr__(self, part, dedent(getattr(self, part)).strip("\n"))
        words = {match["word"] for match in self._directives(self.each)}
        object.__setattr__(self, "emits_many", "emit" in words or "emit each" in words)
        object.__setattr__(self, "drops", "drop" in words)
        object.__setattr__(self, "stops", "last" in words or "done" in words)
        text = "\n".join((self.before, self.each, self.after))
        object.__setattr__(self, "awaits", bool(re.search(r"\bawait\b", text)))

    @staticmethod
    def _directives(text: str) -> Iterator[re.Match[str]]:
        return (found for line in text.splitlines() if (found := DIRECTIVES.match(line)))

    def lines(self, part: str, index: int) -> list[str]:
        """The lines of *part* with every ``$name`` made unique to the stage's place."""
        return _NAME.sub(rf"\1_{index}", getattr(self, part)).splitlines()

    def arguments(self, index: int) -> list[str]:
        return [f"{param}_{index}" for param in self.params]


@dataclass(frozen=True, slots=True)
class AppliedStage:
    """An inline stage with its arguments, as it stands in a flow."""

    stage: InlineStage
    arguments: tuple[object, ...] = ()
    holds: int | None = 0
    """How many elements it holds at most; None when nothing limits it."""

    def __str__(self) -> str:
        return f"{self.stage.name}({', '.join(map(describe, self.arguments))})"


def describe(value: object) -> str:
    """A short name for an argument, for trails and plans."""
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return name.rpartition("<locals>.")[2]
    text = short_repr(value)  # looks at a few elements only of a large container
    return text if len(text) <= 24 else f"{text[:20]}…{text[-3:]}"
