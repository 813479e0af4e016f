"""Everything in the library has a case for the laws; a failure names what to add where."""

import inspect
from importlib import import_module
from typing import Any

import reactive_aio
from reactive_aio.flow import Flow
from tests.cases import covered, offered
from tests.conformance.identities import IDENTITIES, NO_IDENTITY
from tests.conformance.sinks import SINKS

NO_CASE = {
    "never": "it sends no signal, which its own tests verify",
}
"""What no law for publishers can judge, and why."""
OPERATOR_TEST = "the test module in tests/operators with the name of the operator's module"
IDENTITY_PLACE = "IDENTITIES in tests/conformance/identities.py, or the reason to NO_IDENTITY"
# They describe a flow and do not return one.
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
    return {name for name in functions() if module_of(name).startswith("reactive_aio._operators")}


def functions() -> set[str]:
    """Every public function of the package that makes a flow out of something else."""
    packages = ("reactive_aio._sources", "reactive_aio._operators")
    return {name for name in reactive_aio.__all__ if module_of(name).startswith(packages)}


def module_of(name: str) -> str:
    made = getattr(reactive_aio, name)
    return str(made.__module__) if inspect.isfunction(made) else ""


def processors() -> set[str]:
    """Every public processor."""
    module: Any = import_module("reactive_aio.processors")
    return {name for name in module.__all__ if name.endswith("Processor")}


def bare(keys: Any) -> set[str]:
    return {key.partition(":")[0].strip() for key in keys}


def require_none(missing: set[str], remedy: str) -> None:
    assert not missing, f"{', '.join(sorted(missing))}: {remedy}"


def test_every_operator_is_judged_as_a_publisher() -> None:
    missing = operators() - covered("operators") - NO_CASE.keys()
    require_none(missing, f"add a case to OF_LENGTH of {OPERATOR_TEST} (see tests/cases.py)")


def test_every_operator_is_judged_as_a_processor() -> None:
    missing = (operators() | combiners()) - bare(IDENTITIES) - NO_IDENTITY.keys()
    require_none(missing, f"add a form that passes its elements on to {IDENTITY_PLACE}")
    require_none(bare(IDENTITIES) & NO_IDENTITY.keys(), "remove it from NO_IDENTITY")


def test_every_sink_is_judged() -> None:
    missing = bound_from("reactive_aio._sinks") - bare(SINKS)
    require_none(missing, "add it to SINKS in tests/conformance/sinks.py")


def test_every_source_is_judged() -> None:
    missing = functions() - covered("sources") - covered("operators") - NO_CASE.keys()
    require_none(missing, "add a case to OF_LENGTH of its module in tests/sources")


def test_every_processor_is_judged() -> None:
    missing = processors() - covered("processors")
    require_none(missing, "add a case to OF_LENGTH of its module in tests/processors")


def test_every_case_names_something_that_exists() -> None:
    """A case under an old name would leave its operator unjudged."""
    known = operators() | functions() | processors()
    require_none(
        {str(case) for case in offered() if case.name not in known},
        "the library has nothing of that name; rename the case",
    )
    require_none(bare(IDENTITIES) - known - {"all at once"}, "rename the key in IDENTITIES")
    sinks = bound_from("reactive_aio._sinks") | {"async for"}
    require_none(bare(SINKS) - sinks, "rename the key in SINKS")
