"""Functions of the package are short enough to read, and modules have docstrings."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = sorted((ROOT / "reactive_aio").rglob("*.py"))
LONGEST_FUNCTION = 40  # lines of code, without the docstring


TREES = {str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8")) for path in PACKAGE}


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    documented = ast.get_docstring(function) is not None
    start = (first.end_lineno or first.lineno) + 1 if documented else first.lineno
    return (function.end_lineno or start) - start + 1


def test_functions_are_short() -> None:
    long = [
        f"{file}: {node.name} has {length(node)} lines"
        for file, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if length(node) > LONGEST_FUNCTION
    ]
    assert not long, "\n".join(long)


def test_every_module_has_a_docstring() -> None:
    assert not [file for file, tree in TREES.items() if not ast.get_docstring(tree)]
