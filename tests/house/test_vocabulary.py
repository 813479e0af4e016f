"""Every operator and source says what it does, and what it says is true."""

import asyncio
import inspect
import math
import operator
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

import reactive_aio
from reactive_aio import Flow, from_iterable
from reactive_aio.coerce import to_flow
from reactive_aio.testing.lanes import ALL
from reactive_aio.testing.marbles import Diagram, Lane, Marbles, diagrams, play

SECTIONS: Final = ("Demand", "Completes", "Fails", "Cancels", "Holds", "Rules")
PACKAGE: Final = Path(reactive_aio.__file__).parent

# Families whose functions are not operators of elements: they end or describe a flow.
NO_SECTIONS: Final = {"introspection"}
# Words that no lane can show, and why.
NO_DIAGRAM: Final[dict[str, str]] = {}
NOT_FOR_USERS: Final = {
    "threaded": "what from_thread and Spark's source are made of",
}


def families(room: str) -> list[ModuleType]:
    """The modules of a room that define vocabulary."""
    names = sorted(path.stem for path in (PACKAGE / room).glob("[a-z]*.py"))
    return [import_module(f"reactive_aio.{room}.{name}") for name in names]


def vocabulary(room: str) -> dict[str, Callable[..., Any]]:
    """The public functions of a room, by their full names."""
    found: dict[str, Callable[..., Any]] = {}
    for family in families(room):
        stem = family.__name__.rpartition(".")[2]
        for name in family.__all__:
            function = getattr(family, name)
            if name in NOT_FOR_USERS or stem in NO_SECTIONS:
                continue
            if inspect.isfunction(function):
                found[f"{stem}.{name}"] = function
    return found


OPERATORS: Final = vocabulary("_operators")
SOURCES: Final = vocabulary("_sources")
WORDS: Final = OPERATORS | SOURCES
BOUND: Final = {
    name: value
    for name, value in vars(Flow).items()
    if inspect.isfunction(value) and value.__module__.startswith("reactive_aio._operators.")
}


# -- everything is where it belongs ----------------------------------------------------------------
@pytest.mark.parametrize("name", BOUND)
def test_a_method_of_flow_is_public_in_its_family(name: str) -> None:
    function = BOUND[name]
    assert function.__name__ == name
    assert name in import_module(function.__module__).__all__


@pytest.mark.parametrize("name", OPERATORS)
def test_a_word_of_a_family_is_bound_in_flow_or_exported(name: str) -> None:
    function = OPERATORS[name]
    word = function.__name__
    assert BOUND.get(word) is function or getattr(reactive_aio, word, None) is function


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_is_exported(name: str) -> None:
    word = SOURCES[name].__name__
    assert getattr(reactive_aio, word, None) is SOURCES[name]
    assert word in reactive_aio.__all__


def test_exceptions_are_still_needed() -> None:
    words = {function.__name__ for function in WORDS.values()}
    assert words >= NO_DIAGRAM.keys()
    assert not any(diagrams(document(WORDS[name])) for name in WORDS if word(name) in NO_DIAGRAM)


# -- docstrings ------------------------------------------------------------------------------------
def word(name: str) -> str:
    return name.partition(".")[2]


def document(function: Callable[..., Any]) -> str:
    return inspect.cleandoc(function.__doc__ or "")


@pytest.mark.parametrize("name", WORDS)
def test_the_first_line_is_an_imperative_sentence(name: str) -> None:
    first, _, rest = document(WORDS[name]).partition("\n")
    assert first.endswith(".")
    assert len(first) <= 96, "it must fit a table"
    assert not first.startswith(("This ", "A ", "The ", "Returns ")), "say what it does"
    assert rest.startswith("\n")


@pytest.mark.parametrize("name", WORDS)
def test_the_sections_are_all_there_and_in_order(name: str) -> None:
    found = re.findall(rf"^({'|'.join(SECTIONS)}): \S", document(WORDS[name]), flags=re.MULTILINE)
    assert tuple(found) == SECTIONS


@pytest.mark.parametrize("name", WORDS)
def test_the_rules_are_rules(name: str) -> None:
    [rules] = re.findall(r"^Rules: (.*)$", document(WORDS[name]), flags=re.MULTILINE)
    assert re.fullmatch(r"none|[1-4]\.\d+(, [1-4]\.\d+)*", rules)


async def upper(text: str) -> str:
    return text.upper()


async def is_vowel(text: str) -> bool:
    return text in "aeiou"


# -- what it holds ---------------------------------------------------------------------------------
class Call:
    """Arguments for an operator, for those that cannot do without."""

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


CALLBACK: Final = Call(ignore)
CALLS: Final[dict[str, list[Call]]] = {
    "buffer": [Call(3), Call(3, step=2)],
    "buffer_timeout": [Call(5, 1)],
    "concat_with": [Call([1]), Call(reactive_aio.never())],
    "default_if_empty": [Call(1)],
    "distinct": [Call(), Call(max_keys=9)],
    "do_finally": [CALLBACK],
    "do_on_cancel": [CALLBACK],
    "do_on_complete": [CALLBACK],
    "do_on_error": [CALLBACK],
    "do_on_next": [CALLBACK],
    "do_on_request": [CALLBACK],
    "filter": [CALLBACK],
    "filter_async": [CALLBACK, Call(is_vowel, concurrency=4)],
    "filter_map": [CALLBACK],
    "flat_map": [CALLBACK, Call(none_of, concurrency=3, prefetch=5)],
    "map": [CALLBACK],
    "map_async": [CALLBACK, Call(upper, concurrency=4)],
    "merge_with": [Call([1]), Call(reactive_aio.never(), prefetch=7)],
    "of_type": [Call(int)],
    "on_backpressure_buffer": [Call(5)],
    "on_error_resume": [Call([1]), Call(reactive_aio.never())],
    "on_error_return": [Call(1)],
    "retry": [Call(2)],
    "scan": [Call(operator.add), Call(operator.add, seed=1)],
    "skip": [Call(2)],
    "skip_last": [Call(2)],
    "skip_while": [CALLBACK],
    "sliding_window": [Call(3)],
    "start_with": [Call(1, 2)],
    "take": [Call(2)],
    "take_last": [Call(2)],
    "take_while": [CALLBACK],
    "then": [Call([1])],
    "timeout": [Call(1)],
    "zip_with": [Call([1]), Call(reactive_aio.never(), prefetch=7)],
}
FIGURE: Final = re.compile(r"(?:up to )?((?:(?:\d+|\*\w+\*|sources) × )*(?:\d+|\*\w+\*)) (?:el|of)")


def figures(text: str, values: dict[str, Any]) -> set[int | None]:
    """What a ``Holds`` line allows for: its figures, which ``;`` parts and ``, and`` adds up."""
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


@pytest.mark.parametrize("feed", ["synchronous", "asynchronous"])
@pytest.mark.parametrize("name", [name for name in OPERATORS if word(name) in BOUND])
def test_what_it_says_it_holds_is_what_bound_says(name: str, feed: str) -> None:
    if word(name) == "transform":
        return  # what its function returns
    function = OPERATORS[name]
    [text] = re.findall(r"^Holds: (.*(?:\n    .*)*)", document(function), flags=re.MULTILINE)
    source = from_iterable("abc") if feed == "synchronous" else reactive_aio.never()
    for call in CALLS.get(word(name), [Call()]):
        bound = call.bind(function, source)
        flow = function(*bound.args, **bound.kwargs)
        allowed = figures(text, bound.arguments | {"sources": 2})
        assert allowed, f"no figure in {text!r}"
        assert flow.bound().total in allowed, text


# -- diagrams --------------------------------------------------------------------------------------
DRAWN: Final = [
    pytest.param(name, diagram, id=f"{name}-{number}")
    for name, function in WORDS.items()
    for number, diagram in enumerate(diagrams(document(function)))
]


@pytest.mark.parametrize("name", WORDS)
def test_it_has_a_diagram(name: str) -> None:
    drawn = bool(diagrams(document(WORDS[name])))
    assert drawn or WORDS[name].__name__ in NO_DIAGRAM


async def first_of(text: str) -> str:
    return text[0]


def filled_with(*elements: object) -> asyncio.Queue[object]:
    queue: asyncio.Queue[object] = asyncio.Queue()
    for element in elements:
        queue.put_nowait(element)
    return queue


def foreign(*elements: str) -> Marbles[str]:
    return Marbles(f"({''.join(elements)}|)")


@contextmanager
def open_something() -> Generator[object, None, None]:
    yield object()


# What the code of a diagram may speak of.
NAMES: Final[dict[str, Any]] = {
    **{name: getattr(reactive_aio, name) for name in reactive_aio.__all__},
    "end": object(),
    "filled_with": filled_with,
    "first_of": first_of,
    "foreign": foreign,
    "is_vowel": is_vowel,
    "open_something": open_something,
    "operator": operator,
    "print": ignore,
    "upper": upper,
}
MORE_TICKS: Final = 8


async def drawn(diagram: Diagram) -> Lane:
    inputs = [to_flow(Marbles[Any](lane)) for lane in diagram.given]
    given = dict(zip(("source", "other", "third"), inputs, strict=False))
    code = f"source{diagram.code}" if diagram.code.startswith(".") else diagram.code

    def make() -> Any:
        return eval(code, NAMES | given)

    ends = 0 if diagram.result.end == "" else MORE_TICKS
    longest = max(lane.length for lane in (*diagram.given, diagram.result))
    played = await play(make, longest + ends, demand=diagram.demand or ALL)
    return played.signals


@pytest.mark.virtual_time
@pytest.mark.parametrize(("name", "diagram"), DRAWN)
async def test_the_diagram_is_true(name: str, diagram: Diagram) -> None:
    lane = await drawn(diagram)
    assert lane.end == diagram.result.end, str(lane)
    if diagram.given:  # when things happen is drawn too
        assert lane.elements == diagram.result.elements, str(lane)
    else:
        expected = [element for _, element in diagram.result.elements]
        assert [element for _, element in lane.elements][: len(expected)] == expected, str(lane)
