"""The examples: their text, complete with imports, and what they print."""

import ast
import inspect
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from textwrap import dedent
from typing import Final

from tests.reference.vocabulary import Entry

__all__ = ("REAL_TIME", "forgotten", "printed", "text")

REAL_TIME: Final = frozenset({"map_in_process"})
"""The examples that need real time: processes have no part in virtual time."""
_FOLDER: Final = Path(__file__).parent / "examples"


def forgotten(entry: Entry) -> str:
    """What to do for an operator without an example; empty if it has one."""
    if entry.name in _functions(entry.module):
        return ""
    return (
        f"add an example of {entry.name}: `async def {entry.name}() -> None:`, whose body prints a "
        f"result, in tests/reference/examples/{entry.module}.py; then run python -m tests.reference"
    )


def text(entry: Entry) -> str:
    """The example of *entry* as a program with ``await`` at top level."""
    if missing := forgotten(entry):
        raise LookupError(missing)
    function = _functions(entry.module)[entry.name]
    lines = _source(entry.module).splitlines()[function.lineno : function.end_lineno]
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    imports = _imports(entry.module, used)
    return "\n".join([*imports, "", *_spaced(dedent("\n".join(lines)).splitlines())]) + "\n"


async def printed(program: str) -> str:
    """Run *program* on the current loop, and return what it prints."""
    output = StringIO()
    code = compile(program, "example", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with redirect_stdout(output):
        made = eval(code, {"__name__": "__main__"})
        if inspect.isawaitable(made):
            await made
    return output.getvalue()


def _spaced(lines: list[str]) -> Iterator[str]:
    """*lines* with two blank lines around each function, as formatters require."""
    inside = False
    for line in lines:
        begins = not inside and line.startswith(("def ", "async def ", "class ", "@"))
        ends = inside and line and not line.startswith((" ", "def ", "async def "))
        if begins or ends:
            yield ""
        inside = begins or (inside and not ends)
        yield line


@cache
def _source(module: str) -> str:
    path = _FOLDER / f"{module}.py"
    return path.read_text("utf-8") if path.exists() else ""


@cache
def _functions(module: str) -> dict[str, ast.AsyncFunctionDef]:
    body = ast.parse(_source(module)).body
    return {each.name: each for each in body if isinstance(each, ast.AsyncFunctionDef)}


def names(module: str) -> list[str]:
    """The names of the examples in *module*."""
    return [*_functions(module)]


def _imports(module: str, used: set[str]) -> list[str]:
    """The imports of *module* that bind the names in *used*, in groups like those of the module."""
    found: list[str] = []
    last = 0
    for node in ast.parse(_source(module)).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            kept = [each for each in node.names if (each.asname or each.name) in used]
            if kept:
                found += [""] if found and node.lineno > last + 1 else []
                node.names = kept
                found.append(ast.unparse(node))
                last = node.end_lineno or node.lineno
    return found
