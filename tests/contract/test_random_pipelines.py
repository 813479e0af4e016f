"""Conservation over random pipelines of the whole vocabulary.

Each is a program of a source, up to five operators and a sink, drawn from the tables in
`tests.contract.pipelines`. Afterwards: the values delivered are those of the plain-Python model;
each element was delivered, dropped for a reason, or discarded where that is allowed; the flow held
no more than ``bound()``; no rule of demand and signals was broken; no element, task, timer, thread
or subscription is alive; and nothing unexpected was logged or reported.

A failure prints its program, and names its seed: ``SEED=7`` runs that one alone.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from tests.cases import names
from tests.conformance.test_registered import (
    OPERATORS as PUBLIC_OPERATORS,
    SINKS as PUBLIC_SINKS,
    SOURCES as PUBLIC_SOURCES,
    processors,
)
from tests.contract.pipelines.check import check
from tests.contract.pipelines.operators import OPERATORS
from tests.contract.pipelines.pipeline import random_pipeline
from tests.contract.pipelines.sinks import SINKS
from tests.contract.pipelines.sources import SOURCES
from tests.harness.effort import Effort, effort
from tests.harness.leftover_checks import LostErrors

COUNTS: Mapping[Effort, int] = {Effort.QUICK: 100, Effort.NORMAL: 300, Effort.THOROUGH: 10_000}
PARTS = 10
"""Tests that share the seeds."""
EXCEPTIONS = {
    "from_process": "its program has no part in virtual time",
    "map_in_process": "it starts processes, and pickles elements; but for them it is map_in_thread",
}
"""What no random pipeline contains, and why."""
ADD = """\
{name} is in no random pipeline. Add a row to {table} in tests/contract/pipelines/{file}.py,
with its effect on the expected elements, or the reason why there is none to EXCEPTIONS in
tests/contract/test_random_pipelines.py."""


def seeds(part: int) -> Iterable[int]:
    only = os.environ.get("SEED")
    if only is not None:
        return (int(only),) if part == 0 else ()
    return range(part, COUNTS[effort()], PARTS)


@pytest.mark.virtual_time
@pytest.mark.parametrize("part", range(PARTS))
async def test_a_random_pipeline_loses_nothing_and_leaves_nothing(
    part: int, lost_errors: LostErrors
) -> None:
    for seed in seeds(part):
        pipeline = random_pipeline(seed)
        try:
            await check(pipeline.program, pipeline.expected)
            assert not (complaints := [*lost_errors.unexpected()]), "\n".join(complaints)
        except BaseException as error:
            error.add_note(f"SEED={seed}: {' → '.join(pipeline.names)}\n\n{pipeline.script}")
            raise


def missing(public: Iterable[str], rows: Iterable[str], table: str) -> str:
    """What to add for each of *public* that has no row."""
    known = names(rows) | EXCEPTIONS.keys()
    return "\n".join(
        ADD.format(name=name, table=table, file=table.lower())
        for name in sorted(public)
        if name not in known
    )


def test_every_operator_source_and_sink_is_in_random_pipelines() -> None:
    lines = [
        missing({*PUBLIC_OPERATORS, *processors()}, OPERATORS, "OPERATORS"),
        missing(PUBLIC_SOURCES, {*SOURCES}, "SOURCES"),
        missing(PUBLIC_SINKS, SINKS, "SINKS"),
    ]
    assert not any(lines), "\n".join(lines)


def test_every_row_names_something_that_exists() -> None:
    """A row under an old name would leave an operator without one."""
    public = {*PUBLIC_OPERATORS, *PUBLIC_SOURCES, *processors()}
    assert names({*OPERATORS, *SOURCES}) <= public
    consumers = {"async for", "subscribe", "cancelled", "timed out"}
    assert names(SINKS) - PUBLIC_SINKS.keys() == consumers
    assert names(EXCEPTIONS) <= public


def test_the_seeds_of_a_normal_run_contain_every_row() -> None:
    drawn = {name for seed in range(COUNTS[Effort.NORMAL]) for name in random_pipeline(seed).names}
    assert {*OPERATORS, *SOURCES, *SINKS} - drawn == set()


def test_a_missing_row_is_reported_with_what_to_add_where() -> None:
    message = missing({"map", "zip"}, {"zip: strict"}, "OPERATORS")
    assert message.startswith("map is in no random pipeline. Add a row to OPERATORS in")
    assert "tests/contract/pipelines/operators.py" in message
    assert "zip" not in message


def test_the_printed_program_reproduces_the_run() -> None:
    pipeline = next(
        pipeline
        for pipeline in map(random_pipeline, range(COUNTS[Effort.NORMAL]))
        if pipeline.expected.is_exact and pipeline.expected.is_whole and pipeline.expected.values
    )
    run_script(pipeline.script)
    shorter = replace(pipeline.expected, values=pipeline.expected.values[:-1])
    with pytest.raises(AssertionError, match="was delivered, and this is expected"):
        run_script(replace(pipeline, expected=shorter).script)


def run_script(text: str) -> None:
    exec(compile(text, "<script>", "exec"), {})
