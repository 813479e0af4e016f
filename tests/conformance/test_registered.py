"""Nothing goes unjudged: what the library has and no case covers fails here."""

import inspect
from importlib import import_module
from typing import Any

import reactive_aio
from reactive_aio.flow import Flow
from tests.cases import covered, offered
from tests.conformance.identities import IDENTITIES, NO_IDENTITY
from tests.conformance.sinks import SINKS

# What no law for a single publisher can judge, and why.
NO_CASE = {
    "never": "it sends nothing; its tests say that it does",
}
# They look at a flow; they return none.
NOT_OPERATORS = {"bound", "explain", "graph", "stats"}


def bound_from(package: str) -> set[str]:
    """Every public method of Flow that a module of *package* defines."""
    return {
        name
        for name, bound in vars(Flow).items()
        if not name.startswith("_")
        and name not in NOT_OPERATORS
        and getattr(bound, "__module__", "").startswith(package)
    }


def operators() -> set[str]:
    return bound_from("reactive_aio._operators")


def combiners() -> set[str]:
    """Operators that are functions: ``merge(a, b)``."""
    return {name for name in functions() if of(name).startswith("reactive_aio._operators")}


def functions() -> set[str]:
    """Every public function of the package that makes a flow out of something else."""
    rooms = ("reactive_aio._sources", "reactive_aio._operators")
    return {name for name in reactive_aio.__all__ if of(name).startswith(rooms)}


def of(name: str) -> str:
    made = getattr(reactive_aio, name)
    return str(made.__module__) if inspect.isfunction(made) else ""


def processors() -> set[str]:
    """Every public processor."""
    module: Any = import_module("reactive_aio.processors")
    return {name for name in module.__all__ if name.endswith("Processor")}


def bare(keys: Any) -> set[str]:
    return {key.partition(":")[0].strip() for key in keys}


def test_every_operator_is_judged_as_a_publisher() -> None:
    assert operators() - covered("operators") - NO_CASE.keys() == set()


def test_every_operator_is_judged_between_strangers() -> None:
    assert (operators() | combiners()) - bare(IDENTITIES) - NO_IDENTITY.keys() == set()
    assert not bare(IDENTITIES) & NO_IDENTITY.keys()


def test_every_sink_is_judged() -> None:
    assert bound_from("reactive_aio._sinks") - bare(SINKS) == set()


def test_every_source_is_judged() -> None:
    found = covered("sources") | covered("operators")
    assert functions() - found - NO_CASE.keys() == set()


def test_every_processor_is_judged() -> None:
    assert processors() - covered("processors") == set()


def test_every_key_names_something_that_exists() -> None:
    """A case under an old name would let its operator go unjudged."""
    known = operators() | functions() | processors()
    assert {str(case) for case in offered() if case.name not in known} == set()
    assert bare(IDENTITIES) - known == {"all at once"}
    assert bare(SINKS) - bound_from("reactive_aio._sinks") == {"async for"}
