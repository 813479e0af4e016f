"""The examples: their text, complete with imports, and what they print.

The body of ``async def example_NAME()`` in the test file of a module is the example of the
operator, source or sink of that name. The page shows it with the imports that it needs, and with
what it prints; so an example is complete in itself, takes waits of at most half a second, and
prints the same each time.
"""

import ast
import inspect
import re
import tokenize
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from itertools import pairwise
from pathlib import Path
from symtable import SymbolTable, symtable
from textwrap import dedent
from typing import Final

from publishing.reference.vocabulary import Entry

__all__ = ("REAL_TIME", "forgotten", "names", "printed", "text")

REAL_TIME: Final = frozenset({"map_in_process"})
"""The examples that need real time: processes have no part in virtual time."""
_ROOT: Final = Path(__file__).parents[2]
_PREFIX: Final = "example_"
_HERE: Final = "r"
"""The name of the package in test files."""
_THERE: Final = "rx"
"""Its name on the page."""


def forgotten(entry: Entry) -> str:
    """What to do for an operator without an example; empty if it has one."""
    if entry.name in _functions(entry.test_file):
        return ""
    return (
        f"add an example of {entry.name}: `async def {_PREFIX}{entry.name}() -> None:`, whose body "
        f"prints a result, at the end of {entry.test_file}; then run python -m publishing.reference"
    )


def names(file: str) -> list[str]:
    """The operators of which *file* has an example."""
    return [*_functions(file)]


def text(entry: Entry) -> str:
    """The example of *entry* as a program with ``await`` at top level."""
    if missing := forgotten(entry):
        raise LookupError(missing)
    function = _functions(entry.test_file)[entry.name]
    lines = _source(entry.test_file).splitlines()[function.lineno : function.end_lineno]
    body = _renamed(dedent("\n".join(lines)))
    scopes = symtable(ast.unparse(function), entry.test_file, "exec").get_children()
    [scope] = [each for each in scopes if each.get_name() == function.name]
    imports = _imports(entry.test_file, _globals(scope))
    return "\n".join([*imports, "", *_spaced(body.splitlines())]) + "\n"


async def printed(program: str) -> str:
    """Run *program* on the current loop, and return what it prints."""
    output = StringIO()
    code = compile(program, "example", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with redirect_stdout(output):
        made = eval(code, {"__name__": "__main__"})
        if inspect.isawaitable(made):
            await made
    return output.getvalue()


# -- the body --------------------------------------------------------------------------------------
def _globals(scope: SymbolTable) -> set[str]:
    """The names that *scope* and the functions in it use and do not bind."""
    found = {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global()}
    return found.union(*map(_globals, scope.get_children()))


def _renamed(body: str) -> str:
    """*body* with the name of the package that the page uses."""
    tokens = [*tokenize.generate_tokens(StringIO(body).readline)]
    lines = body.splitlines()
    for token, following in reversed([*pairwise(tokens)]):
        if (token.type, token.string, following.string) == (tokenize.NAME, _HERE, "."):
            row, column = token.start
            line = lines[row - 1]
            lines[row - 1] = line[:column] + _THERE + line[column + len(_HERE) :]
    return "\n".join(lines)


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


# -- the test file ---------------------------------------------------------------------------------
@cache
def _source(file: str) -> str:
    path = _ROOT / file
    return path.read_text("utf-8") if path.exists() else ""


@cache
def _functions(file: str) -> dict[str, ast.AsyncFunctionDef]:
    """The examples in *file*, by the name of the operator."""
    return {
        each.name.removeprefix(_PREFIX): each
        for each in ast.parse(_source(file)).body
        if isinstance(each, ast.AsyncFunctionDef) and each.name.startswith(_PREFIX)
    }


def _imports(file: str, used: set[str]) -> list[str]:
    """The imports of *file* that bind the names in *used*, in groups like those of the file."""
    found: list[str] = []
    is_same_group = True
    last = 0
    for node in ast.parse(_source(file)).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            is_same_group = is_same_group and node.lineno == last + 1
            last = node.end_lineno or node.lineno
            kept = [each for each in node.names if (each.asname or each.name) in used]
            if kept:
                found += [""] if found and not is_same_group else []
                node.names = kept
                found.append(re.sub(rf" as {_HERE}$", f" as {_THERE}", ast.unparse(node)))
                is_same_group = True
    return found
