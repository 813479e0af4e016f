"""Inline stages: the few lines of text that an operator contributes to its island's loop.

The compiler (`loops`) writes the lines of all stages of a chain into one loop. In them ``x`` is the
element, ``$name`` a parameter or a local variable of this stage alone, and a line may be plain
Python or one of six directives:

``drop``            leave this element out
``emit EXPR``       deliver EXPR
``emit each EXPR``  deliver every element of the iterable EXPR, within demand
``last``            complete the flow after this element (``x``) has been delivered
``done``            complete the flow now
``sync EXPR of F``  refuse EXPR, the result of the user's function F, if it is an awaitable: F is
                    a coroutine function that could not be recognised as one. Only results for the
                    first element that reaches the last such line of the chain are looked at

``return``, ``yield``, ``break`` and ``continue`` would leave the loop that all stages share. They
are refused where the stage is created, unless they belong to a function or a loop in the lines
themselves. So is a ``drop`` in such a loop, of which it would leave out only one turn.

Without an ``emit`` line, the stage delivers ``x``. After one, ``x`` is the element still. In
``before`` (ahead of the first element) and ``after`` (after the last one), ``x`` is undefined; both
may ``emit``.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from reprlib import repr as short_repr
from textwrap import dedent
from typing import Any, Literal

from ..foreign_text import without_secrets
from .places import Place

DIRECTIVES = re.compile(
    r"^(?P<pad> *)(?P<word>drop|last|done|emit each|emit|sync)\b"
    # A word is a directive alone or before an expression; `last = x` assigns to a local.
    r"(?:(?<=drop|last|done) *(?=$|#)|(?<=emit|each|sync) +(?![-+*/%&|^@<>]*=|[,:.]))(?P<rest>.*)$"
)
_NAME = re.compile(r"\$(\w+)")
_CODE = ("setup", "before", "each", "after", "demand", "on_end")
_MAKES_ELEMENT = re.compile(
    r"(?m)^ *emit\b|(?<![\w.$])x\s*(?:,[^=\n]*)?:?=(?!=)|,\s*x\b[^=\n]*=(?!=)|\b(?:as|for)\s+x\b"
)
"""Finds an assignment to ``x``, and what is emitted."""
_READ_AFTER_EMIT = re.compile(
    r"(?ms)(?:\b(?:for|while)\b.*^ *emit\b|^ *emit\b.*\n.*(?<![\w.$])x\b)"
)
"""Finds an ``emit`` in a loop, and one that a line with ``x`` follows."""
_TEXTS = ("setup", "before", "each", "after", "demand", "on_end", "held")


@dataclass(frozen=True, eq=False)
class InlineStage:
    """The lines of one operator. Create it once, at module level: loops are cached by identity."""

    name: str
    each: str = ""
    params: tuple[str, ...] = ()
    """The names of its arguments, which `Fluent.via` takes in this order."""
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
    held: str = ""
    """An expression for the elements that the stage holds and has not delivered."""
    result: Callable[[Any], Iterable[object]] | None = None
    """Of a terminal operator, which emits its result: the elements that this result contains. So
    `do_on_discard` before it is at the end of the flow."""
    uses: tuple[Callable[..., Any], ...] = ()
    """Functions and classes that the lines refer to by name; another stage may use others of the
    same name."""
    role: Literal["", "on_request", "on_discard", "label"] = ""
    """What its first parameter is besides: a function that is called with each *n* requested from
    the island, one that is called with each element that the stages before it discard, or the name
    of the flow."""

    checked: bool = False
    """Whether its lines make sure that it delivers no None. The loop checks the elements that any
    other stage makes, so that an error names this stage, and not the one after it."""

    def __post_init__(self) -> None:
        for what in ("params", "uses"):
            given: object = getattr(self, what)
            if not isinstance(given, tuple):
                raise TypeError(f"{self.name}: {what} must be a tuple, not {describe(given)}")
        if wrong := [each for each in self.params if not each.isidentifier()]:
            raise ValueError(f"{self.name}: {wrong[0]!r} in params is no name; leave out the $")
        for part in _TEXTS:
            object.__setattr__(self, part, dedent(getattr(self, part)).strip("\n"))
        for part in _CODE:
            text = getattr(self, part)
            if found := _stray_line(text):
                line, remedy = found
                raise ValueError(
                    f"{self.name}: {line!r} in {part} would leave the loop that all stages share; "
                    f"{remedy}"
                )
            if joined := _JOINED.search(text):
                raise ValueError(
                    f"{self.name}: {joined[0].strip()!r} in {part}: a directive is on a line of "
                    "its own, indented below the condition"
                )
        if shared := _SHARED.search(self.setup):
            raise ValueError(
                f"{self.name}: {shared[1]!r} in setup would be a variable of all stages of the "
                f"loop; write ${shared[1]}, which is one of this stage in this subscription"
            )
        if both := sorted(self._locals.intersection(each.__name__ for each in self.uses)):
            raise ValueError(f"{self.name}: ${both[0]} has the name of a function that it uses")
        self._require_assigned(
            tuple(part for part in _TEXTS if part != "on_end"),
            "nothing assigns ${0}; assign it in setup, or name it in params if via gives its value",
        )
        self._require_assigned(
            ("on_end",),
            "on_end sees the parameters, and not the state: ${0} is no parameter; name an object "
            "in params, and keep the state in it",
        )

    def _require_assigned(self, parts: tuple[str, ...], problem: str) -> None:
        """Each ``$name`` is a parameter, or something in *parts* assigns it.

        Python would find out at the first element, and call it by a name that nobody has written.
        """
        texts = "\n".join(getattr(self, part) for part in parts)
        left = set(_NAME.findall(texts)).difference(self.params, _ASSIGNED.findall(texts))
        if not left:
            return
        read, assigned = set[str](), set[str]()
        for part in parts:
            _collect_names(getattr(self, part), read, assigned)
        if unknown := sorted(left.intersection(read) - assigned):
            raise ValueError(f"{self.name}: {problem.format(unknown[0])}")

    @cached_property
    def _locals(self) -> set[str]:
        return {name for part in _TEXTS for name in _NAME.findall(getattr(self, part))}

    @cached_property
    def _words(self) -> set[str]:
        found = map(DIRECTIVES.match, self.each.splitlines())
        return {directive["word"] for directive in found if directive is not None}

    @cached_property
    def drops(self) -> bool:
        return "drop" in self._words

    @cached_property
    def emits_many(self) -> bool:
        return not self._words.isdisjoint(("emit", "emit each"))

    @cached_property
    def may_make_none(self) -> bool:
        """Whether the loop has to look if it has made a None."""
        texts = (self.before, self.each, self.after)
        return not self.checked and any(map(_MAKES_ELEMENT.search, texts))

    @cached_property
    def expands(self) -> bool:
        """Whether it delivers the elements of an iterable."""
        return "emit each" in self._words

    @cached_property
    def reads_after_emit(self) -> bool:
        """Whether it may need the element again when the stages that follow have changed ``x``."""
        return bool(_READ_AFTER_EMIT.search(self.each))

    @cached_property
    def stops(self) -> bool:
        return not self._words.isdisjoint(("last", "done"))

    @cached_property
    def lasts(self) -> bool:
        return "last" in self._words

    @cached_property
    def looks(self) -> bool:
        """Whether it looks at the first result of a function."""
        return "sync" in self._words

    @cached_property
    def awaits(self) -> bool:
        return bool(re.search(r"\bawait\b", "\n".join((self.before, self.each, self.after))))

    @cached_property
    def passes_all(self) -> bool:
        """Whether every element passes as it is."""
        return not (self.before or self.each or self.after)

    @cached_property
    def is_only_label(self) -> bool:
        """Whether it does nothing but name the flow."""
        return self.role == "label" and not any(getattr(self, part) for part in _TEXTS)

    @cached_property
    def _own_names(self) -> re.Pattern[str]:
        """Finds ``$name``, and the names of what it uses."""
        names = "|".join(each.__name__ for each in self.uses)
        return re.compile(rf"(?:\$|(?<![\w.$])(?=(?:{names})\b))(\w+)") if names else _NAME

    def lines(self, part: str, index: int) -> list[str]:
        """The lines of *part*, with the stage's position appended to every name of its own."""
        return self._own_names.sub(rf"\1_{index}", getattr(self, part)).splitlines()

    def used(self, index: int) -> dict[str, Callable[..., Any]]:
        """What the lines refer to, by its name in them."""
        return {f"{each.__name__}_{index}": each for each in self.uses}


_JOINED = re.compile(
    r"(?m)^[^#\n]*:[ \t]*(?:(?:drop|last|done)[ \t]*(?:#.*)?$|(?:emit|sync)[ \t]+\w.*$)"
)
"""Finds a directive behind a condition. Python would take it for a name that is not defined."""
_SHARED = re.compile(r"(?m)^[ \t]*([^\W\d]\w*)[ \t]*=(?!=)")
"""Finds state without ``$``: two stages with such a variable in one loop would count in one."""


_ASSIGNED = re.compile(r"\$(\w+)[ \t]*=(?!=)")
"""Finds most assignments, without which every text would have to be parsed."""


# -- names that nothing assigns --------------------------------------------------------------------
_OWN = "_own_"
"""Stands for the ``$`` of a name, so that the lines can be parsed."""
_IN_TEXT = re.compile(rf"{_OWN}(\w+)")


def _collect_names(text: str, read: set[str], assigned: set[str]) -> None:
    """Add the names with ``$`` that *text* reads, and those that it assigns."""
    try:
        parsed = ast.parse("\n".join(map(_as_python, text.splitlines())))
    except SyntaxError:
        return  # the compiler of the loop reports it
    added_to = {id(each.target) for each in ast.walk(parsed) if isinstance(each, ast.AugAssign)}
    for node in ast.walk(parsed):
        found = read
        match node:
            case ast.Name(id=name):
                if isinstance(node.ctx, ast.Store) and id(node) not in added_to:
                    found = assigned
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found = assigned
            case ast.alias(name=name, asname=other):
                name, found = other or name, assigned
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                found = assigned
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                found = assigned
            case ast.Constant(value=str(name)):
                pass  # the name is replaced in a text as well
            case _:
                continue
        found.update(_IN_TEXT.findall(name))


# -- lines that would leave the loop ---------------------------------------------------------------
_SUSPECT = re.compile(r"(?s)\b(?:return|yield|break|continue)\b|\b(?:for|while)\b.*\bdrop\b")
"""Finds what may leave the loop. To parse every text would take longer than to import the rest."""
_DROP = "__drop__"
_REMEDIES: dict[type[ast.AST], str] = {
    ast.Return: "use drop to leave the element out, and done to complete the flow",
    ast.Yield: "use emit to deliver an element",
    ast.YieldFrom: "use emit each to deliver several elements",
    ast.Break: "use done to complete the flow",
    ast.Continue: "use drop to leave the element out",
    ast.Name: "set a variable in the loop, and drop after it",
}
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def _stray_line(text: str) -> tuple[str, str] | None:
    """The first line that would leave the loop of the island, and what to write instead."""
    if not _SUSPECT.search(text):
        return None
    lines = text.splitlines()
    try:
        parsed = ast.parse("\n".join(map(_as_python, lines)))
    except SyntaxError:
        return None  # the compiler of the loop reports it
    strays: list[Any] = sorted(_strays(parsed, False), key=lambda node: node.lineno)
    if not strays:
        return None
    number: int = strays[0].lineno
    return lines[number - 1].strip(), _REMEDIES[type(strays[0])]


def _as_python(line: str) -> str:
    """*line* with a statement in place of a directive and a name in place of a parameter."""
    line = _NAME.sub(rf"{_OWN}\1", line)
    if (found := DIRECTIVES.match(line)) is None:
        return line
    instead = {"drop": _DROP, "last": "pass", "done": "pass"}
    return found["pad"] + instead.get(found["word"], found["rest"].replace(" of ", ", "))


def _strays(node: ast.AST, is_in_loop: bool) -> Iterator[Any]:
    """The nodes that would leave the loop around *node*, which is in a loop of the lines or not."""
    body = node.body if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) else []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Scope):
            continue
        if isinstance(child, (ast.Return, ast.Yield, ast.YieldFrom)):
            yield child
        elif isinstance(child, (ast.Break, ast.Continue)):
            if not is_in_loop and child not in body:
                yield child
        elif isinstance(child, ast.Name) and child.id == _DROP and is_in_loop:
            yield child
        yield from _strays(child, is_in_loop or child in body)


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
    """``repr(value)`` on one line, without the secrets of URLs; its type if that raises."""
    try:
        # A repr is cut in the middle: of a URL, what shows where its password ends may be missing.
        shown = without_secrets(value) if type(value) is str else value
        return without_secrets(repr(shown)).replace("\n", "\\n")
    except Exception as error:
        return f"<{type(value).__name__}, whose repr() raises {type(error).__name__}>"
