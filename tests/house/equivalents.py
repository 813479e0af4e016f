"""Whether the code in a table of docs/migrating/ names things that exist.

Nothing is run. Each name and attribute is looked up, and the arguments of each call are compared
with the signature. ``.map(f)`` is a method of a flow, ``rx`` is the package, ``a`` and ``b`` are
flows, and other single letters stand for whatever the reader has.
"""

import ast
import builtins
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import reactive_aio
from reactive_aio import Flow

__all__ = ("problems",)

MODULES: Final = {
    "asyncio": "asyncio",
    "contextvars": "contextvars",
    "errors": "reactive_aio.errors",
    "functools": "functools",
    "observe": "reactive_aio.observe",
    "operator": "operator",
    "rx": "reactive_aio",
    "statistics": "statistics",
    "testing": "reactive_aio.testing",
}
STANDS_FOR_A_FLOW: Final = {"flow", "other", "a", "b"}
STANDS_FOR_ANYTHING: Final = frozenset(
    ("condition", "element", "elements", "queue", "seconds", "subscriber", "values")
)
METHOD_OF_A_FLOW: Final = "flow"
AS_TREE: Final = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


@dataclass(frozen=True)
class Instance:
    """A value of which only the class is known."""

    kind: type


class Unknown:
    """A value of which nothing is known."""


UNKNOWN: Final = Unknown()


def problems(code: str) -> list[str]:
    """What in *code* does not exist, or is called with arguments that it does not have."""
    tree = parse(code)
    if tree is None:
        return [f"`{code}` is not valid Python"]
    lookup = Lookup(tree)
    for node in ast.iter_child_nodes(tree):
        lookup.evaluate(node)
    return [f"`{code}`: {problem}" for problem in lookup.problems]


def parse(code: str) -> ast.Module | None:
    text = METHOD_OF_A_FLOW + code if code.startswith(".") else code
    for candidate in (text, f"{text}: pass"):
        try:
            tree: ast.Module = compile(candidate, "<cell>", "exec", AS_TREE)
        except SyntaxError:
            continue
        return tree
    return None


class Lookup:
    """Evaluates expressions as far as their names allow, and collects what is wrong."""

    def __init__(self, tree: ast.Module) -> None:
        self.problems: list[str] = []
        self.bound = set(bound_names(tree))

    def evaluate(self, node: ast.AST) -> object:
        match node:
            case ast.Name(id=name):
                return self.name(name)
            case ast.Attribute(value=value, attr=name):
                return self.attribute(self.evaluate(value), name)
            case ast.Call(func=func):
                return self.call(self.evaluate(func), node)
            case _:
                for child in ast.iter_child_nodes(node):
                    self.evaluate(child)
                return UNKNOWN

    def name(self, name: str) -> object:
        if name in self.bound:
            return UNKNOWN
        if name in STANDS_FOR_A_FLOW:
            return Instance(Flow)
        if len(name) == 1 or name in STANDS_FOR_ANYTHING:
            return UNKNOWN
        if name in MODULES:
            return import_module(MODULES[name])
        if hasattr(builtins, name):
            return getattr(builtins, name)
        self.problems.append(f"nothing is called {name!r}")
        return UNKNOWN

    def attribute(self, value: object, name: str) -> object:
        if isinstance(value, Unknown):
            return UNKNOWN
        owner = value.kind if isinstance(value, Instance) else value
        if not hasattr(owner, name):
            self.problems.append(f"{owner!r} has no attribute {name!r}")
            return UNKNOWN
        found = getattr(owner, name)
        return Method(found) if isinstance(value, Instance) else found

    def call(self, function: object, node: ast.Call) -> object:
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            self.evaluate(argument)
        if isinstance(function, Unknown):
            return UNKNOWN
        if problem := misfit(function, node):
            self.problems.append(problem)
        return result(function)


@dataclass(frozen=True)
class Method:
    """A function of a class, called on an instance."""

    function: Any


def bound_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case _:
                pass


def misfit(function: object, node: ast.Call) -> str | None:
    """Why the arguments of *node* are not those of *function*."""
    positional: list[object] = [UNKNOWN for _ in node.args]
    if isinstance(function, Method):
        function, positional = function.function, [UNKNOWN, *positional]
    if any(isinstance(each, ast.Starred) for each in node.args) or not callable(function):
        return None
    try:
        signature = inspect.signature(function)
    except ValueError:  # some builtins have none
        return None
    try:
        signature.bind(*positional, **{each.arg: UNKNOWN for each in node.keywords if each.arg})
    except TypeError as error:
        return str(error)
    return None


def result(function: object) -> object:
    """What a call returns, if it is a flow or the instance of a class of the package."""
    called: Any = function.function if isinstance(function, Method) else function
    if isinstance(called, type):
        return Instance(called)
    module = getattr(called, "__module__", "")
    is_operator = isinstance(function, Method) and module.startswith("reactive_aio._operators.")
    is_source = getattr(reactive_aio, getattr(called, "__name__", ""), None) is called
    if (is_operator or is_source) and called.__name__ != "transform":
        return Instance(Flow)
    return UNKNOWN
