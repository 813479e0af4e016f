"""A change of one place in the package, found in the syntax tree and not in the text.

A place is a function, and what stands there as Python writes it: comments, line breaks and what is
around it may change, and it is found again. ``in_function("")`` is the whole module.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Change(NamedTuple):
    """One place, and what stands there instead."""

    file: str
    function: str
    """Its qualified name, of methods with their class; empty for the module itself."""
    there: str
    instead: str
    number: int = 1
    """Which one, if the same stands in the function more than once."""

    def __str__(self) -> str:
        return f"{self.file}: {self.function or 'the module'}: {self.there} → {self.instead}"


def nodes_with_functions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Each node in the order of the text, with the innermost function that it is in."""
    todo: list[tuple[str, ast.AST]] = [("", tree)]
    while todo:
        function, node = todo.pop()
        yield function, node
        if isinstance(node, Function | ast.ClassDef):
            function = f"{function}.{node.name}".removeprefix(".")
        todo += [(function, child) for child in reversed(list(ast.iter_child_nodes(node)))]


def _node(text: str, *, is_statement: bool = False) -> ast.AST:
    """What *text* is: an expression, if it can be one and does not have to be a statement."""
    if not is_statement and _is_expression(text):
        return ast.parse(text, mode="eval").body
    # `return` and others are no errors here.
    (function,) = ast.parse(f"async def f():\n while 1:\n{indent(text, '  ')}").body
    assert isinstance(function, ast.AsyncFunctionDef)
    (loop,) = function.body
    assert isinstance(loop, ast.While)
    (statement,) = loop.body
    return statement


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


class _Replacer(ast.NodeTransformer):
    def __init__(self, there: ast.AST, instead: ast.AST) -> None:
        self._there = there
        self._instead = instead

    def visit(self, node: ast.AST) -> ast.AST:
        return self._instead if node is self._there else self.generic_visit(node)


def found(change: Change, tree: ast.Module) -> tuple[ast.AST, ast.AST]:
    """The node that *change* replaces, and the other; LookupError if it is not there."""
    instead = _node(change.instead)
    there = _node(change.there, is_statement=isinstance(instead, ast.stmt))
    same = [
        node
        for function, node in nodes_with_functions(tree)
        if function == change.function and _is_same(node, there)
    ]
    if len(same) < change.number:
        raise LookupError(f"this is not there (any more): {change}")
    node = same[change.number - 1]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        assert isinstance(there, ast.Constant)
        assert isinstance(instead, ast.Constant)
        instead = ast.Constant(node.value.replace(str(there.value), str(instead.value)))
    return node, instead


def _is_same(node: ast.AST, there: ast.AST) -> bool:
    """Whether they are written alike; of a string, *there* may be a part."""
    if type(node) is not type(there):
        return False
    if isinstance(there, ast.Constant) and isinstance(there.value, str):
        assert isinstance(node, ast.Constant)
        return isinstance(node.value, str) and there.value in node.value
    return ast.unparse(node) == ast.unparse(there)


def changed(change: Change) -> ast.Module:
    """The module of *change* with it."""
    tree = ast.parse((ROOT / change.file).read_text("utf-8"))
    there, instead = found(change, tree)
    result = _Replacer(there, ast.copy_location(instead, there)).visit(tree)
    assert isinstance(result, ast.Module)
    return ast.fix_missing_locations(result)
