"""Functions of the package are short enough to read, and modules have docstrings."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = sorted((ROOT / "reactive_aio").rglob("*.py"))
LONGEST_FUNCTION = 40  # lines of code, without the docstring


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    documented = ast.get_docstring(function) is not None
    start = (first.end_lineno or first.lineno) + 1 if documented else first.lineno
    return (function.end_lineno or start) - start + 1


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_functions_are_short() -> None:
    long = [
        f"{name(path)}: {each.name} has {length(each)} lines"
        for path in PACKAGE
        for each in functions(ast.parse(path.read_text()))
        if length(each) > LONGEST_FUNCTION
    ]
    assert not long, "\n".join(long)


def test_every_module_has_a_docstring() -> None:
    trees = {name(path): ast.parse(path.read_text()) for path in PACKAGE}
    assert not [file for file, tree in trees.items() if not ast.get_docstring(tree)]
