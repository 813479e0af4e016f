"""Every operator and source has a complete docstring, and its docstring is true."""

import ast
import builtins
import inspect
import math
import operator
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

import reactive_aio
from publishing.reference.diagram_runs import NAMES, SOURCE_NAMES, is_vowel, run, upper
from reactive_aio import Flow, from_iterable
from reactive_aio.testing.marbles import Diagram, diagrams
from tests.harness.one_run import in_one_run

SECTIONS: Final = ("Demand", "Completes", "Fails", "Cancels", "Holds", "Rules")
PACKAGE: Final = Path(reactive_aio.__file__).parent

# Modules whose functions are not operators on elements: they end or describe a flow.
NO_SECTIONS: Final = {"introspection"}
# Operators that no diagram can show, and why.
NO_DIAGRAM: Final[dict[str, str]] = {
    "from_process": "its program has no part in virtual time",
    "map_in_process": "its processes have no part in virtual time",
    "running": "it runs beside the block of `async with`",
    "stream": "it is iterated inside `async with`",
    "to_dict": "a lane has no sign for a dict",
}
NOT_FOR_USERS: Final = {
    "from_interruptible": "from_thread uses it",
}


def modules(room: str) -> list[ModuleType]:
    """The modules of a folder that define operators or sources."""
    names = sorted(path.stem for path in (PACKAGE / room).glob("[a-z]*.py"))
    return [import_module(f"reactive_aio.{room}.{name}") for name in names]


def vocabulary(room: str) -> dict[str, Callable[..., Any]]:
    """The public functions of a folder, by their full names."""
    found: dict[str, Callable[..., Any]] = {}
    for module in modules(room):
        stem = module.__name__.rpartition(".")[2]
        for name in module.__all__:
            function = getattr(module, name)
            if name in NOT_FOR_USERS or stem in NO_SECTIONS:
                continue
            if inspect.isfunction(function):
                found[f"{stem}.{name}"] = function
    return found


OPERATORS: Final = vocabulary("_operators")
SOURCES: Final = vocabulary("_sources")
VOCABULARY: Final = OPERATORS | SOURCES
SINKS: Final = {
    name: function
    for name, function in vocabulary("_sinks").items()
    if vars(Flow).get(function.__name__) is function
}
IN_DIAGRAMS: Final = VOCABULARY | SINKS
"""What needs a diagram, unless NO_DIAGRAM says why not."""
BOUND: Final = {
    name: value
    for name, value in vars(Flow).items()
    if inspect.isfunction(value) and value.__module__.startswith("reactive_aio._operators.")
}


# -- modules, flow.py and exports ------------------------------------------------------------------
def test_a_method_of_flow_is_public_in_its_module() -> None:
    for name, function in BOUND.items():
        assert function.__name__ == name
        exported = import_module(function.__module__).__all__
        assert name in exported, f'add "{name}" to __all__ of {function.__module__}'


def test_an_operator_is_bound_in_flow_or_exported() -> None:
    for name, function in OPERATORS.items():
        module, _, method = name.partition(".")
        assert BOUND.get(method) is function or getattr(reactive_aio, method, None) is function, (
            f"add '{method}: Final = _{module}.{method}' under '# {module}' in flow.py,"
            " or export it in reactive_aio/__init__.py, or add it to NOT_FOR_USERS here"
        )


def test_a_source_is_exported_and_hides_no_builtin() -> None:
    for name, function in SOURCES.items():
        method = method_name(name)
        assert getattr(reactive_aio, method, None) is function, (
            f"import {method} in reactive_aio/__init__.py, or add it to NOT_FOR_USERS here"
        )
        assert hasattr(builtins, method) or method in reactive_aio.__all__, (
            f'add "{method}" to __all__ of reactive_aio'
        )
    assert not [name for name in reactive_aio.__all__ if hasattr(builtins, name)]


def test_exceptions_are_still_needed() -> None:
    assert {method_name(name) for name in IN_DIAGRAMS} >= NO_DIAGRAM.keys()
    assert not [
        name
        for name, function in IN_DIAGRAMS.items()
        if method_name(name) in NO_DIAGRAM and diagrams(document(function))
    ]


# -- docstrings ------------------------------------------------------------------------------------
def method_name(name: str) -> str:
    return name.partition(".")[2]


def document(function: Callable[..., Any]) -> str:
    return inspect.cleandoc(function.__doc__ or "")


@in_one_run
@pytest.mark.parametrize("name", VOCABULARY)
def test_the_first_line_is_an_imperative_sentence(name: str) -> None:
    first, _, rest = document(VOCABULARY[name]).partition("\n")
    assert first.endswith("."), "the docstring needs a first line that is a sentence"
    assert len(first) <= 96, "it must fit a table"
    assert not first.startswith(("This ", "A ", "The ", "Returns ")), "say what it does"
    assert rest.startswith("\n"), "the docstring needs a blank line after the first line"


@in_one_run
@pytest.mark.parametrize("name", VOCABULARY)
def test_the_sections_are_all_there_and_in_order_and_the_rules_are_rules(name: str) -> None:
    text = document(VOCABULARY[name])
    found = re.findall(rf"^({'|'.join(SECTIONS)}): \S", text, re.MULTILINE)
    assert tuple(found) == SECTIONS, f"the docstring needs, in this order: {', '.join(SECTIONS)}"
    assert re.search(r"^Rules: (none|[1-4]\.\d+(, [1-4]\.\d+)*)$", text, re.MULTILINE), (
        "the docstring needs one line such as 'Rules: 1.1, 3.5' or 'Rules: none'"
    )


# -- bounds ----------------------------------------------------------------------------------------
class Call:
    """Arguments for an operator."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def bind(self, function: Callable[..., Any], source: Flow[Any]) -> inspect.BoundArguments:
        bound = inspect.signature(function).bind(source, *self.args, **self.kwargs)
        bound.apply_defaults()
        return bound


def ignore(*_: object) -> None:
    """A callback."""


def none_of(_: object) -> list[int]:
    return []


def calls_in_diagrams(name: str) -> list[Call]:
    """The calls of an operator in its diagrams."""
    sources = {each: reactive_aio.never() for each in SOURCE_NAMES}
    return [
        Call(
            *(evaluate(each, sources) for each in node.args),
            **{each.arg: evaluate(each.value, sources) for each in node.keywords if each.arg},
        )
        for diagram in diagrams(document(OPERATORS[name]))
        for node in ast.walk(ast.parse(f"source{diagram.code}", mode="eval"))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr == method_name(name)
    ]


def evaluate(node: ast.expr, sources: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "diagram", "eval"), NAMES | sources)


FURTHER_CALLS: Final[dict[str, list[Call]]] = {
    "buffer": [Call(3, step=2)],
    "concat_with": [Call([1]), Call(reactive_aio.never())],
    "distinct": [Call(), Call(max_keys=9)],
    "filter_async": [Call(is_vowel, concurrency=4)],
    "flat_map": [Call(none_of, concurrency=3, prefetch=5)],
    "map_async": [Call(upper, concurrency=4)],
    "map_in_process": [Call(str.upper, concurrency=3)],
    "map_in_thread": [Call(str.upper, concurrency=3)],
    "merge_with": [Call([1]), Call(reactive_aio.never(), prefetch=7)],
    "on_error_resume": [Call([1]), Call(reactive_aio.never())],
    "rate_limit": [Call(limiter=reactive_aio.RateLimit(9))],
    "scan": [Call(operator.add), Call(operator.add, seed=1)],
    "zip_with": [Call([1]), Call(reactive_aio.never(), prefetch=7)],
}
"""Calls besides those in the diagrams, where the bound depends on the arguments."""
FIGURE: Final = re.compile(r"(?:up to )?((?:(?:\d+|\*\w+\*|sources) × )*(?:\d+|\*\w+\*)) (?:el|of)")


def figures(text: str, values: dict[str, Any]) -> set[int | None]:
    """The figures that a ``Holds`` line allows: ``;`` separates them, ``, and`` adds them up."""
    found: set[int | None] = set()
    for clause in text.rstrip(".").split("; "):
        if clause.startswith("nothing"):
            found.add(0)
            continue
        terms = clause.removeprefix("else ").split(", and ")
        products = [match[1] for each in terms if (match := FIGURE.match(each))]
        if products:
            found.add(total(products, values))
    return found


def total(products: list[str], values: dict[str, Any]) -> int | None:
    whole = 0
    for product in products:
        factors = product.replace("*", "").split(" × ")
        numbers = [int(each) if each.isdigit() else values[each] for each in factors]
        if None in numbers:
            return None
        whole += math.prod(numbers)
    return whole


@in_one_run
@pytest.mark.parametrize("feed", ["synchronous", "asynchronous"])
@pytest.mark.parametrize("name", [name for name in OPERATORS if method_name(name) in BOUND])
def test_the_bound_is_that_of_the_holds_section(name: str, feed: str) -> None:
    if method_name(name) == "transform":
        return  # it holds what its function returns
    function = OPERATORS[name]
    [text] = re.findall(r"^Holds: (.*(?:\n    .*)*)", document(function), flags=re.MULTILINE)
    source = from_iterable("abc") if feed == "synchronous" else reactive_aio.never()
    calls = [*calls_in_diagrams(name), *FURTHER_CALLS.get(method_name(name), [])]
    assert calls, f"the docstring of {name} needs a diagram whose code calls it"
    for call in calls:
        bound = call.bind(function, source)
        flow = function(*bound.args, **bound.kwargs)
        allowed = figures(text, bound.arguments | {"sources": 2})
        assert allowed, f"no figure in {text!r}"
        assert flow.bound().total in allowed, text


# -- diagrams --------------------------------------------------------------------------------------
DRAWN: Final = [
    pytest.param(name, diagram, id=f"{name}-{number}")
    for name, function in IN_DIAGRAMS.items()
    for number, diagram in enumerate(diagrams(document(function)))
]


@in_one_run
@pytest.mark.parametrize("name", IN_DIAGRAMS)
def test_it_has_a_diagram(name: str) -> None:
    drawn = bool(diagrams(document(IN_DIAGRAMS[name])))
    assert drawn or IN_DIAGRAMS[name].__name__ in NO_DIAGRAM, (
        "the docstring needs a literal block of lanes and one line of code, as docs/testing.md"
        " describes; or add the operator to NO_DIAGRAM here, with the reason"
    )


@pytest.mark.virtual_time
@pytest.mark.parametrize(("name", "diagram"), DRAWN)
async def test_the_diagram_is_true(name: str, diagram: Diagram) -> None:
    lane = (await run(diagram)).output
    assert lane.end == diagram.result.end, str(lane)
    if diagram.given:  # the diagram shows the times too
        assert lane.elements == diagram.result.elements, str(lane)
    else:
        expected = [element for _, element in diagram.result.elements]
        assert [element for _, element in lane.elements][: len(expected)] == expected, str(lane)
