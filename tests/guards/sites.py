"""Every decision that can be taken away: each is a change of its own.

- A comparison has the opposite result.
- A condition that returns, raises or goes on with the next element is never met.
- What was awaited is not awaited.
"""

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.guards.changes import ROOT, Change, nodes_with_functions

ROOMS: Final = ("_core", "delivery", "rsocket/protocol")
"""The folders of the package whose every decision has to be noticed."""
UNNOTICED: Final = Path(__file__).with_name("unnoticed.toml")
"""Decisions that change nothing which a test could notice, each with the reason."""
LEAVES: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Site(NamedTuple):
    """A decision, and where it is."""

    change: Change
    kind: str
    lines: range
    """From the statement that it is in: of several lines, Python counts some as reached."""


def taken_away(node: ast.AST) -> tuple[str, ast.expr, str] | None:
    """The kind of the decision that *node* takes, its expression, and what takes its place."""
    if isinstance(node, ast.Compare):
        return "comparison", node, f"not ({ast.unparse(node)})"
    if isinstance(node, ast.Await):
        return "await", node, ast.unparse(node.value)
    if isinstance(node, ast.If) and isinstance(node.body[-1], LEAVES):
        return "way out", node.test, f"({ast.unparse(node.test)}) and False"
    return None


def sites_of(file: str) -> Iterator[Site]:
    """All decisions in the functions of *file*, a path from the root of the repository."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    seen: Counter[tuple[str, type[ast.AST], str]] = Counter()
    numbers: dict[ast.AST, int] = {}
    outer_first = (node for node in ast.walk(tree) if isinstance(node, ast.stmt))
    lines = {node: each.lineno for each in outer_first for node in ast.walk(each)}
    for function, node in nodes_with_functions(tree):
        if isinstance(node, ast.expr):
            key = (function, type(node), ast.unparse(node))
            seen[key] += 1
            numbers[node] = seen[key]
    for function, node in nodes_with_functions(tree):
        found = taken_away(node)
        if found and function:
            kind, there, instead = found
            change = Change(file, function, ast.unparse(there), instead, numbers[there])
            yield Site(change, kind, range(lines[there], there.lineno + 1))


def all_sites() -> list[Site]:
    paths = (path for room in ROOMS for path in (ROOT / "reactive_aio" / room).rglob("*.py"))
    files = sorted(str(path.relative_to(ROOT)) for path in paths)
    unique = {site.change: site for file in files for site in sites_of(file)}
    return list(unique.values())


def reasons() -> dict[tuple[str, str, str], str]:
    """Of the decisions that no test can notice: file, function, expression, and why."""
    rows = tomllib.loads(UNNOTICED.read_text("utf-8")).get("decision", [])
    return {(row["file"], row["function"], row["there"]): row["why"] for row in rows}
