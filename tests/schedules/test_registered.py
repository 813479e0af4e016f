"""Everything that combines or queues is explored: a missing entry fails with what to add where.

An operator or source combines or queues if its function reaches ``from_push`` or ``from_async``:
then an asynchronous source is upstream of an island, such as a coordinator, a thread or a task.
Everything else is one loop in its caller, whose order asyncio does not decide. A processor always
queues.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import reactive_aio
from reactive_aio.flow import Flow
from tests.cases import PUBLIC
from tests.schedules import test_processors
from tests.schedules.parts import PARTS

PACKAGE = Path(reactive_aio.__file__).parent
OPENERS = {"from_push", "from_async"}
NOT_EXPLORED = {
    "never": "it sends no signal, in no order",
    "map_in_thread": "the threads of an executor are not steered; its tasks are those of map_async",
    "map_in_process": "the same",
    "from_process": "a program has no part in a schedule; its transports need a real loop",
}
APART = {"LatestProcessor"}
"""Processors that lose elements: a test of their own explores them."""
ADD_PART = """\
{name} combines or queues, and is not explored. Add it to PARTS in tests/schedules/parts.py:
    "{name}": (lambda _: steps(1, 2, 3).{name}(…), Interleaved([1, 2, 3])),
or, if its order cannot vary, to NOT_EXPLORED in tests/schedules/test_registered.py, with the
reason."""
ADD_PROCESSOR = """\
{name} is not explored. Add it to KINDS in tests/schedules/test_processors.py."""


def called(node: ast.AST) -> set[str]:
    """The names of plain functions that *node* calls or passes on."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def openers_in(module: ast.Module) -> Iterator[str]:
    """The functions of *module* that reach an opener, directly or through one another."""
    functions = {
        node.name: called(node) for node in module.body if isinstance(node, ast.FunctionDef)
    }
    reach = set(OPENERS)
    is_growing = True
    while is_growing:
        more = {name for name, names in functions.items() if names & reach} - reach
        reach |= more
        is_growing = bool(more)
    yield from reach - OPENERS


def queuing() -> set[str]:
    public = {*PUBLIC, *vars(Flow)}
    return {
        name
        for room in ("_operators", "_sources")
        for file in (PACKAGE / room).glob("*.py")
        for name in openers_in(ast.parse(file.read_text("utf-8")))
        if name in public and not name.startswith("_")
    }


def explored() -> set[str]:
    return {key.partition(":")[0] for key in PARTS}


def missing(names: set[str], message: str) -> str:
    return "\n".join(message.format(name=name) for name in sorted(names))


def test_every_operator_and_source_that_combines_or_queues_is_explored() -> None:
    unexplored = queuing() - explored() - NOT_EXPLORED.keys()
    assert not unexplored, missing(unexplored, ADD_PART)


def test_every_processor_is_explored() -> None:
    processors = {name for name in PUBLIC if name.endswith("Processor")}
    (mark,) = [test_processors.KINDS.mark]
    explored_kinds = {base.__name__ for kind in mark.args[1] for base in kind.__mro__}
    unexplored = processors - {"Processor"} - explored_kinds - APART
    assert not unexplored, missing(unexplored, ADD_PROCESSOR)


def test_the_search_finds_operators_and_sources() -> None:
    assert queuing() >= {"boundary", "merge", "map_async", "from_thread", "from_queue", "using"}


def test_a_missing_entry_is_reported_with_what_to_add_where() -> None:
    message = missing({"zip", "merge"}, ADD_PART)
    assert message.startswith("merge combines or queues, and is not explored. Add it to PARTS in")
    assert '"zip": (lambda _: steps(1, 2, 3).zip(…)' in message


def test_every_key_names_something_public() -> None:
    unknown = explored() - {*PUBLIC, *vars(Flow)}
    assert not unknown, f"rename or remove in PARTS of tests/schedules/parts.py: {sorted(unknown)}"
