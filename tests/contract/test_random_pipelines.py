"""Conservation over random pipelines of the whole vocabulary.

Each is a program of a source, up to five operators and a sink, drawn from the tables in
`tests.contract.pipelines`. Afterwards: the values delivered are those of the plain-Python model;
each element was delivered, dropped for a reason, or discarded where that is allowed; if the flow
ends with `do_on_discard`, that was called once for each element that was discarded, and the report
of a drain has the same figures; the errors of cleanups were told; the flow held no more than
``bound()``; no rule of demand and signals was broken; no element, task, timer, thread
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
from tests.contract.pipelines.expected import Expected
from tests.contract.pipelines.identities import WITHOUT_ROW, without_row
from tests.contract.pipelines.operators import EXCEPTIONS as NO_OPERATORS, OPERATORS
from tests.contract.pipelines.pipeline import Pipeline, random_pipeline
from tests.contract.pipelines.run import PipelineError
from tests.contract.pipelines.sinks import SINKS
from tests.contract.pipelines.sources import EXCEPTIONS as NO_SOURCES, SOURCES
from tests.harness.effort import Effort, effort
from tests.harness.leftover_checks import LostErrors

COUNTS: Mapping[Effort, int] = {Effort.QUICK: 150, Effort.NORMAL: 600, Effort.THOROUGH: 20_000}
PARTS = 10
"""Tests that share the seeds."""
KEEPING = frozenset({"cache", "replay", "share"})
EXCEPTIONS = NO_OPERATORS | NO_SOURCES
ADD = """\
{name} is in no random pipeline. Add a row to {table} in tests/contract/pipelines/{file}.py,
with its effect on the expected elements, or the reason why there is none to EXCEPTIONS there.
(An operator with a form in IDENTITIES of its test file needs no row.)"""
ADD_ROW = """\
{name} is in this pipeline in the form that IDENTITIES in its test file has. If it is not true that
this form passes each token on unchanged, with the failure and the completion of the flow, add a row
to OPERATORS in tests/contract/pipelines/operators.py, with its effect on the expected elements."""


def seeds(part: int) -> Iterable[int]:
    only = os.environ.get("SEED")
    if only is not None:
        return (int(only),) if part == 0 else ()
    return range(part, COUNTS[effort()], PARTS)


@pytest.mark.timeout(600)  # a thousand pipelines, in `thorough`
@pytest.mark.virtual_time
@pytest.mark.parametrize("part", range(PARTS))
async def test_a_random_pipeline_loses_nothing_and_leaves_nothing(
    part: int, lost_errors: LostErrors
) -> None:
    for seed in seeds(part):
        pipeline = random_pipeline(seed)
        try:
            await check(pipeline.program, pipeline.expected)
            if pipeline.expected.fails and KEEPING.intersection(operators_of(pipeline)):
                forget_failures_of_kept_sources(lost_errors)
            assert not (complaints := [*lost_errors.unexpected()]), "\n".join(complaints)
        except BaseException as error:
            error.add_note(f"SEED={seed}: {' → '.join(pipeline.names)}\n\n{pipeline.script}")
            error.add_note(hints(pipeline.names, WITHOUT_ROW))
            raise


def operators_of(pipeline: Pipeline) -> Iterable[str]:
    """The names without the form, such as the one of ``share: with another subscriber``."""
    return (name.partition(":")[0] for name in pipeline.names)


def forget_failures_of_kept_sources(errors: LostErrors) -> None:
    """A source that an operator of `KEEPING` keeps may fail when no subscriber is left."""
    errors.contexts[:] = [
        each
        for each in errors.contexts
        if each["message"] != "a shared flow failed while it had no subscriber"
        or not isinstance(each["exception"], PipelineError)
    ]


def hints(parts: Iterable[str], without_row: Iterable[str]) -> str:
    """What to add if an operator among *parts* is there *without_row*, and does not fit."""
    return "\n".join(ADD_ROW.format(name=name) for name in sorted({*parts} & {*without_row}))


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
        missing({*PUBLIC_OPERATORS, *processors()}, OPERATORS | WITHOUT_ROW, "OPERATORS"),
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
    assert {*OPERATORS, *WITHOUT_ROW, *SOURCES, *SINKS} - drawn == set()


def test_a_missing_row_is_reported_with_what_to_add_where() -> None:
    message = missing({"map", "zip"}, {"zip: strict"}, "OPERATORS")
    assert message.startswith("map is in no random pipeline. Add a row to OPERATORS in")
    assert "tests/contract/pipelines/operators.py" in message
    assert "zip" not in message


def test_an_operator_without_a_row_joins_in_the_form_of_its_identity() -> None:
    rows = without_row({*OPERATORS} - {"boundary", "map", "map: fails"})
    assert "map" in rows
    assert "boundary" not in rows, "it has another row"
    pipeline = Pipeline(Expected((0, 1, 2)))
    pipeline.begin("range", SOURCES["range"], {"n": 3})
    pipeline.add("map", rows["map"], {})
    pipeline.finish("to_list", SINKS["to_list"], {}, accounts=True)
    assert "FORMS['map'](flow1)" in pipeline.script
    run_script(pipeline.script)


def test_an_operator_without_a_row_may_lose_what_it_holds_when_its_source_fails() -> None:
    rows = without_row(())
    assert rows["delay"].loses_on_failure
    assert not rows["map"].loses_on_failure


def test_a_failure_reports_that_an_operator_without_a_row_may_need_one() -> None:
    message = hints(["just", "map", "zip"], ["map"])
    assert message.startswith("map is in this pipeline in the form that IDENTITIES")
    assert "add a row\nto OPERATORS in tests/contract/pipelines/operators.py" in message
    assert not hints(["just", "zip"], ["map"])


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
