"""Everything public is judged by the laws: a missing case fails with what to add where."""

import inspect
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import reactive_aio
from reactive_aio.flow import Flow
from tests.cases import PUBLIC, cases, identities, names, no_identity, sinks

NO_CASE = {
    "never": "it emits no signal, which its own tests check",
    "map_in_process": "each law would start processes; but for them it is map_in_thread",
    "into": "it subscribes what it is given, and receives no signal itself",
}
"""What the laws of one publisher cannot judge, and why."""
NOT_OPERATORS = {"bound", "explain", "graph", "stats"}
"""Methods that describe a flow and return none."""

ADD_CASE = """\
{name} is not judged as a publisher. Register it in tests/{folder}/test_{module}.py:
    OF_LENGTH = {{"{name}": lambda n: … a flow of n elements …}}, and FAILING, INFINITE alike."""
ADD_IDENTITY = """\
{name} is not judged between a foreign publisher and a foreign subscriber. Register a form that
passes elements on unchanged in tests/operators/test_{module}.py:
    IDENTITIES = {{"{name}": lambda up: up.{name}(…)}}
or the reason why there is none in NO_IDENTITY there."""
ADD_SINK = """\
{name} is not judged as a subscriber. Register it in tests/sinks/test_{module}.py:
    SINKS = {{"{name}": lambda flow: flow.{name}(…)}}"""
ADD_PROCESSOR = """\
{name} is not judged. Register it in OF_LENGTH of tests/processors/test_processors.py."""
MOVE = "the case {key!r} is registered in test_{found}.py; move it to test_{module}.py"


def methods(package: str) -> dict[str, str]:
    """The methods of `Flow` that are defined in *package*, and their modules there."""
    return {
        name: module.removeprefix(f"{package}.")
        for name, bound in vars(Flow).items()
        if not name.startswith("_") and name not in NOT_OPERATORS
        if (module := getattr(bound, "__module__", "")).startswith(package)
    }


def functions(package: str) -> dict[str, str]:
    """The public functions of the package that are defined in *package*, and their modules."""
    exported = {name: getattr(reactive_aio, name) for name in PUBLIC}
    return {
        name: value.__module__.removeprefix(f"{package}.")
        for name, value in exported.items()
        if inspect.isfunction(value) and value.__module__.startswith(package)
    }


OPERATORS = methods("reactive_aio._operators") | functions("reactive_aio._operators")
SOURCES = functions("reactive_aio._sources")
SINKS = methods("reactive_aio._sinks")


def processors() -> set[str]:
    """Every public processor."""
    module: Any = import_module("reactive_aio.processors")
    return {name for name in module.__all__ if name.endswith("Processor")}


def missing(
    public: dict[str, str], registered: Iterable[str], message: str, folder: str = ""
) -> str:
    """What to add for each of *public* that is not *registered*."""
    known = {*registered, *NO_CASE}
    return "\n".join(
        message.format(name=name, module=module, folder=folder)
        for name, module in sorted(public.items())
        if name not in known
    )


def test_every_operator_and_source_is_judged_as_a_publisher() -> None:
    registered = {case.name for case in cases()}
    lines = [
        missing(OPERATORS, registered, ADD_CASE, "operators"),
        missing(SOURCES, registered, ADD_CASE, "sources"),
    ]
    assert not any(lines), "\n".join(lines)


def test_every_operator_is_judged_between_foreign_ends() -> None:
    registered = names(identities())
    lines = missing(OPERATORS, registered | no_identity().keys(), ADD_IDENTITY)
    assert not lines, lines
    assert not registered & no_identity().keys()


def test_every_sink_is_judged() -> None:
    lines = missing(SINKS, names(sinks()), ADD_SINK)
    assert not lines, lines


def test_every_processor_is_judged() -> None:
    lines = missing(dict.fromkeys(processors(), ""), {case.name for case in cases()}, ADD_PROCESSOR)
    assert not lines, lines


def test_a_case_is_in_the_test_file_of_its_module() -> None:
    modules = OPERATORS | SOURCES
    lines = [
        MOVE.format(key=case.key, found=case.module, module=modules[case.name])
        for case in cases()
        if modules.get(case.name, case.module) != case.module
    ]
    assert not lines, "\n".join(lines)


def test_every_key_names_something_that_exists() -> None:
    """A case under an old name would leave its operator without one."""
    known = {*OPERATORS, *SOURCES, *processors()}
    assert {str(case) for case in cases() if case.name not in known} == set()
    assert names(identities()) | no_identity().keys() <= known
    assert names(sinks()) - SINKS.keys() == {"async for"}


def test_a_missing_case_is_reported_with_what_to_add_where() -> None:
    message = missing({"map": "transform", "zip": "zip"}, {"zip"}, ADD_CASE, "operators")
    assert message.startswith(
        "map is not judged as a publisher. Register it in tests/operators/test_transform.py:"
    )
    assert "zip" not in message
