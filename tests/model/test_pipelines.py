"""Random pipelines of the whole vocabulary do what the model says.

Each is a program of a source, up to five operators and a consumer, drawn from the tables.
Afterwards: the values delivered are those of the model; each element was delivered, dropped for a
reason, or discarded where that is allowed; if the flow ends with `do_on_discard`, that was called
once for each element that was discarded, and the report of a drain has the same figures; the errors
of cleanups were told; the flow held no more than ``bound()``; no rule of demand and signals was
broken; no element, task, timer, thread or subscription is alive, and no source, without the garbage
collector; and nothing unexpected was logged or reported.

A failure prints the smallest program that fails as well, and its seed: ``SEED=7`` runs that alone.
"""

import gc
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pytest

from reactive_aio.tck.model.pipeline import Part, Plan, random_plan
from reactive_aio.tck.model.shrink import failure_of, shrunk
from tests.cases import names
from tests.conformance.test_registered import (
    OPERATORS as PUBLIC_OPERATORS,
    SINKS as PUBLIC_SINKS,
    SOURCES as PUBLIC_SOURCES,
    processors,
)
from tests.harness.effort import Effort, effort
from tests.model.operators import EXCEPTIONS as NO_OPERATORS, OPERATORS
from tests.model.sources import EXCEPTIONS as NO_SOURCES, SOURCES
from tests.model.vocabulary import CONSUMERS, VOCABULARY

COUNTS: Mapping[Effort, int] = {Effort.QUICK: 300, Effort.NORMAL: 1200, Effort.THOROUGH: 60_000}
"""How many seeds are the same in each run; half as many again are new, but in CI."""
PARTS = 100 if effort() is Effort.THOROUGH else 10
"""Tests that share the seeds."""
EXCEPTIONS = NO_OPERATORS | NO_SOURCES
ADD = """\
{name} is in no random pipeline. Add a row to {table} in {file}, with what it makes of the expected
elements, or the reason why there is none to EXCEPTIONS in tests/model."""
FILES: Mapping[str, str] = {
    "OPERATORS": "tests/model/operators.py",
    "SOURCES": "tests/model/sources.py",
    "CONSUMERS": "reactive_aio/tck/model/consumers.py",
}
NEW = secrets.randbelow(10**6) * 10**6


def seeds(part: int, counts: Mapping[Effort, int], parts: int) -> Iterator[int]:
    only = os.environ.get("SEED")
    if only is not None:
        yield from (int(only),) if part == 0 else ()
        return
    count = counts[effort()]
    yield from range(part, count, parts)
    if "CI" not in os.environ:
        yield from range(NEW + part, NEW + count // 2, parts)


@pytest.fixture
def without_older_objects() -> Iterator[None]:
    """Nothing of a pipeline is among the objects that exist; so no search looks at them."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.timeout(3600)  # thousands of pipelines, in `thorough`
@pytest.mark.usefixtures("without_older_objects")
@pytest.mark.parametrize("part", range(PARTS))
def test_a_random_pipeline_does_what_the_model_says_and_leaves_nothing(part: int) -> None:
    for seed in seeds(part, COUNTS, PARTS):
        plan = random_plan(VOCABULARY, seed)
        if failure_of(plan) is None:
            continue
        least = shrunk(plan)
        error = failure_of(least) or failure_of(plan)
        text = f"SEED={seed}: {' → '.join(least.names)}\n\n{least.pipeline().script}"
        raise AssertionError(f"{text}\n{error}") from error


def missing(public: Iterable[str], rows: Iterable[str], table: str) -> str:
    """What to add for each of *public* that has no row."""
    known = names(rows) | EXCEPTIONS.keys()
    return "\n".join(
        ADD.format(name=name, table=table, file=FILES[table])
        for name in sorted(public)
        if name not in known
    )


def test_every_operator_source_and_sink_has_a_row() -> None:
    lines = [
        missing({*PUBLIC_OPERATORS, *processors()}, OPERATORS, "OPERATORS"),
        missing(PUBLIC_SOURCES, SOURCES, "SOURCES"),
        missing(PUBLIC_SINKS, CONSUMERS, "CONSUMERS"),
    ]
    assert not any(lines), "\n".join(lines)


def test_every_row_names_something_that_exists() -> None:
    """A row under an old name would leave an operator without one."""
    public = {*PUBLIC_OPERATORS, *PUBLIC_SOURCES, *processors()}
    assert names({*OPERATORS, *SOURCES}) <= public
    consumers = {"async for", "subscribe", "cancelled", "timed out"}
    assert names(CONSUMERS) - PUBLIC_SINKS.keys() == consumers
    assert names(EXCEPTIONS) <= public


def test_the_seeds_of_a_normal_run_contain_every_row() -> None:
    drawn = {
        name
        for seed in range(COUNTS[Effort.NORMAL])
        for name in random_plan(VOCABULARY, seed).names
    }
    assert {*OPERATORS, *SOURCES, *CONSUMERS} - drawn == set()


def test_a_missing_row_is_reported_with_what_to_add_where() -> None:
    message = missing({"map", "zip"}, {"zip: strict"}, "OPERATORS")
    assert message.startswith("map is in no random pipeline. Add a row to OPERATORS in")
    assert "tests/model/operators.py" in message
    assert "zip" not in message


PLAN = Plan(
    VOCABULARY,
    Part("from_aiter", {"n": 7}),
    tuple(Part(name, {"n": 3, "m": 2, "k": 4, "v": 10_000}) for name in ("map", "take", "buffer")),
    Part("async for", {"n": 1, "m": 1, "k": 0, "v": 0}),
    hooked=True,
)


def test_a_failing_plan_is_brought_to_its_least() -> None:
    least = shrunk(PLAN, lambda plan: "take" in plan.names and plan.source.parameters["n"] >= 1)
    assert least.names == ["range", "take", "to_list"]
    assert (least.source.parameters["n"], least.hooked) == (1, False)


def test_the_printed_program_reproduces_the_run() -> None:
    pipeline = PLAN.pipeline()
    run_script(pipeline.script)
    pipeline.expected = replace(pipeline.expected, values=pipeline.expected.values[:-1])
    with pytest.raises(AssertionError, match="was delivered, and this is expected"):
        run_script(pipeline.script)


def run_script(text: str) -> None:
    exec(compile(text, "<script>", "exec"), {})
