"""``help()`` says what an option or a figure is: the docstring of its class lists each field."""

import inspect
import re
from collections.abc import Callable, Iterator
from enum import Enum
from importlib import import_module
from typing import Any, Final, is_typeddict

import pytest

from reactive_aio import DrainReport, Emission, Flow, RetryPolicy
from reactive_aio.rsocket import Limits
from reactive_aio.rsocket.requesting.requests import Requests
from reactive_aio.stage import Fluent

PUBLIC: Final = ("reactive_aio.asgi", "reactive_aio.rsocket")
SECTIONS: Final = ("Demand", "Completes", "Fails", "Cancels", "Holds")
READERS: Final[list[Any]] = [
    vars(Flow)["stream"],
    vars(Fluent)["subscribe"],
    vars(Requests)["request_channel"],
    vars(Requests)["request_stream"],
]
"""Methods outside the vocabulary of operators that return a flow or subscribe to one."""


def option_classes() -> Iterator[type]:
    """The typed dicts that the public packages export."""
    for module in map(import_module, PUBLIC):
        exported = (getattr(module, name) for name in module.__all__)
        yield from filter(is_typeddict, exported)


OPTIONS: Final = list(option_classes())
LISTED: Final[list[type]] = [*OPTIONS, DrainReport, Emission, Limits, RetryPolicy]


def fields(kind: type) -> set[str]:
    """The fields of *kind*, without those of the classes that its first line names."""
    first, _, _ = (inspect.getdoc(kind) or "").partition("\n")
    if issubclass(kind, Enum):
        return set(kind.__members__)
    others = [other for other in OPTIONS if f"`{other.__name__}`" in first]
    return kind.__annotations__.keys() - {name for each in others for name in each.__annotations__}


def names_listed(docstring: str) -> list[str]:
    """The names at the start of the items of *docstring*: ``- a, b: what they mean``."""
    items = re.findall(r"^- (\w+(?:, \w+)*): \S", docstring, re.MULTILINE)
    return [name for item in items for name in item.split(", ")]


@pytest.mark.parametrize("kind", LISTED, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_the_docstring_of_a_class_of_options_lists_its_fields(kind: type) -> None:
    listed = names_listed(inspect.getdoc(kind) or "")
    assert sorted(listed) == sorted(fields(kind)), f"list them in the docstring of {kind.__name__}"


@pytest.mark.parametrize("method", READERS, ids=lambda method: method.__qualname__)
def test_a_method_that_reads_a_flow_has_the_sections(method: Callable[..., Any]) -> None:
    found = re.findall(rf"^({'|'.join(SECTIONS)}): \S", inspect.getdoc(method) or "", re.MULTILINE)
    assert tuple(found) == SECTIONS


def test_options_are_found() -> None:
    names = {kind.__name__ for kind in LISTED}
    assert names >= {"ClientOptions", "ResponderOptions", "ResponseOptions", "ServerOptions"}


def test_an_item_may_name_several_fields() -> None:
    assert names_listed("Text.\n\n- a, b: sizes.\n  More: text.\n- c: a time.") == ["a", "b", "c"]
