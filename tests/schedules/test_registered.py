"""Whatever combines or queues is explored: a part that is missing from the table fails here.

An operator or source does so if its module's function reaches ``from_push`` or ``from_async``: then
something is upstream of an island that pushes when it pleases, a coordinator, a gate, a thread, or
a task of its own. All else is one loop in whoever calls it, whose order asyncio does not decide. A
processor does so by being one.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import reactive_aio
from reactive_aio.flow import Flow
from tests.schedules import test_processors
from tests.schedules.parts import PARTS

PACKAGE = Path(reactive_aio.__file__).parent
OPENERS = {"from_push", "from_async"}
NOT_EXPLORED = {
    "never": "it sends nothing, in no order",
}


def called(node: ast.AST) -> set[str]:
    """The names of plain functions that *node* calls or passes on."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def openers_in(module: ast.Module) -> Iterator[str]:
    """The functions of *module* that reach an opener, directly or through one another."""
    functions = {
        node.name: called(node) for node in module.body if isinstance(node, ast.FunctionDef)
    }
    reach = set(OPENERS)
    growing = True
    while growing:
        more = {name for name, names in functions.items() if names & reach} - reach
        reach |= more
        growing = bool(more)
    yield from reach - OPENERS


def queuing() -> set[str]:
    public = {*reactive_aio.__all__, *vars(Flow)}
    return {
        name
        for room in ("_operators", "_sources")
        for file in (PACKAGE / room).glob("*.py")
        for name in openers_in(ast.parse(file.read_text("utf-8")))
        if name in public and not name.startswith("_")
    }


def explored() -> set[str]:
    return {key.partition(":")[0] for key in PARTS}


def test_every_part_that_combines_or_queues_is_explored() -> None:
    assert queuing() - explored() - NOT_EXPLORED.keys() == set()


def test_the_search_sees_them() -> None:
    assert queuing() >= {"boundary", "merge", "map_async", "from_thread", "from_queue", "using"}


def test_every_processor_is_explored() -> None:
    processors = {name for name in reactive_aio.__all__ if name.endswith("Processor")}
    there = set(vars(test_processors))
    assert processors - {"Processor"} - there == set()
    (mark,) = [test_processors.KINDS.mark]
    assert {kind.__name__ for kind in mark.args[1]} == processors - {"Processor"}


def test_every_key_names_something_public() -> None:
    assert explored() <= {*reactive_aio.__all__, *vars(Flow)}
