"""Inline stages: the few lines of text that an operator contributes to its island's loop.

The compiler writes the lines of all stages of a chain into one loop. The element is ``x``;
``$name`` is a parameter or a local of this stage alone. Besides plain Python, a line may be one of
these directives:

``drop``            discard this element
``keep IN``         append this element to IN, a list or deque, and discard it from here: several
                    at once where possible
``last``            complete the flow after this element (``x``) has been delivered
``done``            complete the flow now
``emit EXPR``       deliver EXPR
``emit each EXPR``  deliver every element of the iterable EXPR, within demand
``emit lists EXPR`` the same for each of the iterables in EXPR, which are lists where possible
``sync EXPR of F``  refuse EXPR, the result of the user's function F, if it is an awaitable: only
                    until an element has passed all such lines of the chain, which then cost nothing
``first LINE``      LINE, only until an element has passed all such lines, as with ``sync``
``full LINE``       LINE, which looks whether the stage is full: not in a batch that fits into its
                    ``room``
``track LINE``      LINE, only in a loop that gives discarded elements back

Without an ``emit`` line, the stage delivers ``x``. In ``before`` (ahead of the first element) and
``after`` (after the last one), ``x`` is undefined; both may ``emit``.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from reprlib import repr as short_repr
from textwrap import dedent
from typing import Any

from .places import Place

DIRECTIVES = re.compile(
    r"^(?P<pad> *)(?P<word>drop|keep|last|done|emit each|emit lists|emit|sync|first|full|track)\b ?"
    r"(?P<rest>.*)$"
)
_NAME = re.compile(r"\$(\w+)")
_TEXTS = ("setup", "before", "each", "after", "demand", "on_end", "held", "room", "pulled")


@dataclass(frozen=True, slots=True, eq=False)
class InlineStage:
    """The lines of one operator. Create it once, at module level: loops are cached by identity."""

    name: str
    each: str = ""
    params: tuple[str, ...] = ()
    setup: str = ""
    """Assigns the locals of the stage; it must not raise."""
    before: str = ""
    after: str = ""
    demand: str = ""
    """Translates ``need``, the demand on this stage, into its demand on the stages before it.

    It runs only when the island has no elements left. Without it, one element is requested for
    each one that the stage drops."""
    on_end: str = ""
    """Runs once when the flow has ended at this stage: ``how`` is ``"completed"``, ``"failed"``
    (with ``error``) or ``"cancelled"``. It sees the parameters, not the locals."""
    uses: tuple[Callable[..., Any], ...] = ()
    """Functions and classes that the lines refer to by name; another stage may use others of the
    same name."""
    on_request: str = ""
    """The parameter that is called with each *n* requested from the island."""
    on_discard: str = ""
    """The parameter that is called with each element that the stages before it discard."""
    label: str = ""
    """The parameter that names the flow, for reports about a running program."""
    held: str = ""
    """An expression for the elements that the stage holds and has not delivered."""
    pulled: str = ""
    """An iterator over the iterator ``src`` that does what ``each`` does, if this is the first
    stage of a loop that pulls."""
    given: str = "x"
    """What the source has given, if ``x`` is of that iterator."""
    room: str = ""
    """An expression for how many elements the stage can take at least, before it is full."""
    drops: bool = field(init=False)
    emits_many: bool = field(init=False)
    expands: bool = field(init=False)
    stops: bool = field(init=False)
    lasts: bool = field(init=False)
    proves: bool = field(init=False)
    awaits: bool = field(init=False)
    _own_names: re.Pattern[str] = field(init=False)
    """Finds ``$name``, and the names of what it uses."""

    def __post_init__(self) -> None:
        for part in _TEXTS:
            object.__setattr__(self, part, dedent(getattr(self, part)).strip("\n"))
        found = map(DIRECTIVES.match, self.each.splitlines())
        words = {directive["word"] for directive in found if directive is not None}
        object.__setattr__(self, "drops", "drop" in words or "keep" in words)
        object.__setattr__(self, "emits_many", any(word.startswith("emit") for word in words))
        object.__setattr__(self, "expands", not words.isdisjoint(("emit each", "emit lists")))
        object.__setattr__(self, "proves", "sync" in words or "first" in words)
        object.__setattr__(self, "lasts", "last" in words)
        object.__setattr__(self, "stops", "last" in words or "done" in words)
        text = "\n".join((self.before, self.each, self.after))
        object.__setattr__(self, "awaits", bool(re.search(r"\bawait\b", text)))
        object.__setattr__(self, "_own_names", self._pattern_of_names())

    def _pattern_of_names(self) -> re.Pattern[str]:
        used = [each.__name__ for each in self.uses]
        locals_ = {name for part in _TEXTS for name in _NAME.findall(getattr(self, part))}
        if both := sorted(locals_.intersection(used)):
            raise ValueError(f"{self.name}: ${both[0]} has the name of a function that it uses")
        names = "|".join(used)
        return re.compile(rf"(?:\$|(?<![\w.$])(?=(?:{names})\b))(\w+)") if used else _NAME

    @property
    def passes_all(self) -> bool:
        """Whether every element passes as it is."""
        return not (self.before or self.each or self.after)

    @property
    def ends_with_last(self) -> bool:
        """Whether its only ``last`` is its last line."""
        words = self.each.split()
        return words.count("last") == 1 and words[-1] == "last"

    @property
    def kept_in(self) -> str:
        """The list or deque that keeps each element, if it does nothing else; else empty."""
        lines = self.each.splitlines()
        return lines[0].removeprefix("keep ") if len(lines) == 1 and "keep " in self.each else ""

    @property
    def is_only_label(self) -> bool:
        """Whether it does nothing but name the flow."""
        return bool(self.label) and not any(getattr(self, part) for part in _TEXTS)

    def lines(self, part: str, index: int) -> list[str]:
        """The lines of *part*, with the stage's position appended to every name of its own."""
        return self._own_names.sub(rf"\1_{index}", getattr(self, part)).splitlines()

    def used(self, index: int) -> dict[str, Callable[..., Any]]:
        """What the lines refer to, by its name in them."""
        return {f"{each.__name__}_{index}": each for each in self.uses}

    def arguments(self, index: int) -> list[str]:
        return [f"{param}_{index}" for param in self.params]


@dataclass(slots=True, eq=False)
class AppliedStage:
    """An inline stage with its arguments, at its position in a flow."""

    stage: InlineStage
    arguments: tuple[object, ...] = ()
    holds: int | None = 0
    """How many elements of those that it receives it holds at most; None if unlimited."""
    contents: int = 1
    """How many of them one element contains that it delivers, as a list does."""
    place: Place | None = None
    """Where it is written."""

    def weight_after(self, weight: int) -> int:
        """The most elements that one delivered element contains, if each received has *weight*."""
        return 1 if self.stage.expands else weight * self.contents

    def __str__(self) -> str:
        return f"{self.stage.name}({', '.join(map(describe, self.arguments))})"


def describe(value: object) -> str:
    """A short name for an argument, for error notes and `explain`."""
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return name.rpartition("<locals>.")[2]
    text = safe_repr(value, short_repr)  # reads only a few elements of a large container
    return text if len(text) <= 24 else f"{text[:20]}…{text[-3:]}"


def safe_repr(value: object, repr: Callable[[object], str]) -> str:
    """``repr(value)`` on one line; its type if that raises."""
    try:
        return repr(value).replace("\n", "\\n")
    except Exception as error:
        return f"<{type(value).__name__}, whose repr() raises {type(error).__name__}>"
