"""Nothing goes unjudged: an operator, a source or a processor without a case fails here."""

import inspect
from importlib.util import find_spec
from typing import Any

import pytest

import reactive_aio
from reactive_aio.flow import Flow
from tests.cases import KINDS, cases, covered

# What no law for a single publisher can judge, and why.
NO_CASE = {
    "never": "it sends nothing; its tests say that it does",
}
# They wait for the end or look at a flow; they return none.
NOT_OPERATORS = {"bound", "explain", "graph", "stats"}


def operators() -> set[str]:
    """Every public method of Flow that an operator's module defines."""
    return {
        name
        for name, bound in vars(Flow).items()
        if not name.startswith("_")
        and name not in NOT_OPERATORS
        and getattr(bound, "__module__", "").startswith("reactive_aio._operators")
    }


def sources() -> set[str]:
    """Every public function of the package that makes a flow out of something else."""
    rooms = ("reactive_aio._sources", "reactive_aio._operators")
    return {
        name
        for name in reactive_aio.__all__
        if inspect.isfunction(made := getattr(reactive_aio, name))
        and made.__module__.startswith(rooms)
    }


def processors() -> set[str]:
    """Every public processor."""
    if find_spec("reactive_aio.processors") is None:
        return set()
    from importlib import import_module

    module: Any = import_module("reactive_aio.processors")
    return {name for name in module.__all__ if name.endswith("Processor")}


def test_every_operator_has_a_case() -> None:
    assert operators() - covered("operators") - NO_CASE.keys() == set()


def test_every_source_has_a_case() -> None:
    found = covered("sources") | covered("operators")
    assert sources() - found - NO_CASE.keys() == set()


def test_every_processor_has_a_case() -> None:
    assert processors() - covered("processors") == set()


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_names_something_that_exists(kind: str) -> None:
    """A case under an old name would let its operator go unjudged."""
    known = operators() | sources() | processors() | {"from_dataframe"}
    unknown = {str(case) for case in cases(kind) if case.key.partition(":")[0].strip() not in known}
    assert unknown == set()
